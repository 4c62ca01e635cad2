"""A training loop without a GPU: its launches go to the fake driver that FAKE_CUDA names.

usage: fixture.py [WORD...]    what to do, in order; see ACTIONS
"""
import ctypes
import os
import resource
import signal
import sys
import threading
import time

cuda = ctypes.CDLL(os.environ["FAKE_CUDA"])
# What a flush adds to a spool in any case.
CLOCKS = 40

u64, u32 = ctypes.c_uint64, ctypes.c_uint32
cuda.nvtxRangeStartA.restype = u64
cuda.nvtxDomainCreateA.restype = ctypes.c_void_p
cuda.nvtxDomainRegisterStringA.restype = ctypes.c_void_p
cuda.nvtxRangeEnd.argtypes = [u64]


def push(name):
    return cuda.nvtxRangePushA(name.encode())


def pop():
    return cuda.nvtxRangePop()


def launch(duration, which=0, stream=7):
    cuda.fake_launch(which, u64(duration), u32(stream))


def step():
    """Per step: 2 kernels forward (300 us), 3 backward (600 us), 1 copy (50 us), 1 fill (10 us),
    1 kernel of the optimizer (40 us)."""
    push("phase.forward")
    cuda.fake_copy(u64(1 << 20), u64(50_000), u32(7))
    launch(100_000)
    launch(200_000, 1)
    pop()
    push("phase.backward")
    for _ in range(3):
        launch(200_000, 1)
    pop()
    push("phase.optimizer")
    cuda.fake_fill(u64(4096), u64(10_000), u32(7))
    launch(40_000)
    pop()


def steps(count):
    cuda.cuInit(0)
    for _ in range(count):
        step()


def training(count, recompute):
    """Steps of a profiled loop; with checkpointing, the forward pass runs again inside backward."""
    cuda.cuInit(0)
    for number in range(count):
        push(f"ProfilerStep#{number}")
        push("phase.forward")
        launch(100_000)
        pop()
        push("phase.backward")
        if recompute:
            push("phase.recompute")
            launch(100_000)
            pop()
        launch(200_000, 1)
        pop()
        push("phase.optimizer")
        launch(50_000)
        pop()
        cuda.fake_sync()
        pop()


def long():
    """Phases of 100, 200 and 100 ms on the device, which are waited for."""
    cuda.cuInit(0)
    for name, kernels in (("forward", 2), ("backward", 4), ("optimizer", 2)):
        push("phase." + name)
        for _ in range(kernels):
            launch(50_000_000)
        pop()
    cuda.fake_sync()


def many(count):
    cuda.cuInit(0)
    for _ in range(count):
        launch(1_000)


def held(count):
    """Launches under one range, and among them a few with ranges of their own at the end."""
    cuda.cuInit(0)
    push("phase.backward")
    for _ in range(count):
        launch(1_000)
    push("last")
    for _ in range(5):
        launch(7_000, 1)
    pop()
    pop()


def everything():
    """One of each thing that there is."""
    cuda.cuInit(0)
    push("outer")
    launch(5_000, 2)
    cuda.fake_launch_driver(1, u64(6_000), u32(9))
    cuda.fake_launch_graph(u32(4), u64(1_000), u32(7))
    cuda.fake_copy_peer(u64(1 << 16), u64(7_000), u32(7))
    cuda.fake_get_device()
    cuda.fake_overhead(u64(9_000))
    cuda.fake_launch_without_times(0, u32(7))
    cuda.fake_sync()
    cuda.fake_launch_nested(1, u64(3_000), u32(7))
    pop()


class Attributes(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint16), ("size", ctypes.c_uint16), ("category", u32),
                ("color_type", ctypes.c_int32), ("color", u32), ("payload_type", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("payload", u64), ("message_type", ctypes.c_int32),
                ("message", ctypes.c_void_p)]


def attributes(kind, message):
    event = Attributes(version=3, size=48, message_type=kind, message=message)
    return ctypes.byref(event)


def ranges():
    """All ways to make a range."""
    assert [push("a"), push("b"), pop(), pop()] == [0, 1, 1, 0]
    ascii = ctypes.cast(ctypes.c_char_p(b"by attributes"), ctypes.c_void_p)
    cuda.nvtxRangePushEx(attributes(1, ascii))
    pop()
    cuda.nvtxRangePushW(ctypes.c_wchar_p("wide \u00e9\u4e16"))
    pop()
    domain = ctypes.c_void_p(cuda.nvtxDomainCreateA(b"library"))
    name = cuda.nvtxDomainRegisterStringA(domain, b"registered")
    cuda.nvtxDomainRangePushEx(domain, attributes(3, name))
    cuda.nvtxDomainRangePop(domain)
    started = cuda.nvtxRangeStartA(b"started")
    other = threading.Thread(target=lambda: cuda.nvtxRangeEnd(started))
    other.start()
    other.join()
    cuda.nvtxMarkA(b"mark")
    push("phase.recompute, op_id = 1")
    pop()
    push("aten::mm, seq = 4, op_id = 3")
    pop()
    cuda.nvtxNameOsThreadA(u32(threading.get_native_id()), b"trainer")
    push("never closed")


def triggered():
    """Work inside and outside of ranges called `profiled`."""
    cuda.cuInit(0)
    push("run")
    launch(1_000)
    push("before")
    pop()
    for _ in range(2):
        push("profiled")
        push("inside")
        launch(10_000)
        pop()
        pop()
        launch(1_000)
    push("after")
    pop()
    pop()


def block():
    """Puts a folder where the trace of this process is to be written first."""
    host = "".join(c if c.isascii() and c.isalnum() or c in "-_" else "-" for c in os.uname().nodename)
    folder = os.path.dirname(os.environ["TRACEKIT_INJECT_DIR"])
    os.mkdir(os.path.join(folder, f".{host[:64]}_{os.getpid()}.pt.trace.json.gz.tmp"))


def wait_flushed():
    """Until what was recorded is in the file: when nothing else is left, a flush adds its clocks alone."""
    folder = os.environ.get("TRACEKIT_INJECT_DIR")
    if folder is None:
        return

    def spools():
        found = [entry for entry in os.scandir(folder) if entry.name.startswith(f"{os.getpid()}-")]
        try:
            return sorted((entry.name, entry.stat().st_size) for entry in found)
        except FileNotFoundError:
            # A ring has just removed one.
            return None
    before, alone = spools(), 0
    for _ in range(6000 if before != [] else 0):
        time.sleep(0.005)
        now = spools()
        if now == before:
            continue
        if before and now and before[:-1] == now[:-1] and before[-1][0] == now[-1][0]:
            alone = alone + 1 if now[-1][1] - before[-1][1] == CLOCKS else 0
        before = now
        if alone == 2:
            break


def fork_one(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def forked_silent():
    fork_one(lambda: None)


def forked_ranges():
    def work():
        push("in the child")
        pop()
        wait_flushed()
    fork_one(work)


def forked_cuda():
    """The child starts CUDA, the parent has not."""
    def work():
        steps(1)
        wait_flushed()
    fork_one(work)


def tell(path):
    """Writes this process's id to `path`, whole or not at all."""
    with open(path + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(path + ".new", path)


def wait_for(path):
    for _ in range(3000):
        if os.path.exists(path):
            break
        time.sleep(0.01)


def daemon():
    """A process that goes on when this one has ended."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            steps(1)
            wait_flushed()
            tell(os.environ["FIXTURE_DAEMON"])
            # The test takes the file away when it has seen enough.
            while os.path.exists(os.environ["FIXTURE_DAEMON"]):
                time.sleep(0.02)
        os._exit(0)
    wait_for(os.environ["FIXTURE_DAEMON"])


def again():
    """This process becomes another program, with the same id."""
    wait_flushed()
    os.execv(sys.executable, [sys.executable, __file__, "steps:2"])


def say():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    print(sys.stdin.read(), end="")


def wait_signal():
    """Says so when it may be ended, then waits."""
    tell(os.environ["FIXTURE_READY"])
    time.sleep(60)


def count_interrupts():
    """Counts interrupts from the first one on for a while, and has their number as its status."""
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append(time.monotonic()))
    tell(os.environ["FIXTURE_READY"])
    for _ in range(6000):
        if came and time.monotonic() > came[0] + 0.3:
            sys.exit(len(came))
        time.sleep(0.01)


def ignored():
    """Which signals this process ignores."""
    names = ("SIGINT", "SIGHUP", "SIGTERM")
    print(*(name for name in names if signal.getsignal(getattr(signal, name)) == signal.SIG_IGN))


def allocations(count):
    """What the injected library allocates on this thread in a loop of launches, and in one of ranges."""
    cuda.fake_allocations.restype = u64
    cuda.cuInit(0)
    told = []
    for loop in (cuda.fake_time_launches, cuda.fake_time_ranges):
        # Until buffers are in stock and the batch of the thread is there.
        loop(u64(100))
        before = cuda.fake_allocations()
        for _ in range(20):
            loop(u64(count // 20))
            time.sleep(0.02)
        told.append(cuda.fake_allocations() - before)
    print(*told)


def catch(number):
    signal.signal(number, lambda *_: sys.exit(40 + number))


def threads(count):
    cuda.cuInit(0)

    def work():
        for _ in range(100):
            push("threaded")
            launch(1_000)
            pop()
    workers = [threading.Thread(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


ACTIONS = {
    "steps": lambda n: steps(int(n)),
    "training": lambda n: training(int(n), False),
    "checkpointed": lambda n: training(int(n), True),
    "long": lambda _: long(),
    "many": lambda n: many(int(n)),
    "held": lambda n: held(int(n)),
    "file-limit": lambda n: resource.setrlimit(resource.RLIMIT_FSIZE, (int(n), int(n))),
    "count-interrupts": lambda _: count_interrupts(),
    "ignored": lambda _: ignored(),
    "allocations": lambda n: allocations(int(n)),
    "threads": lambda n: threads(int(n)),
    "init": lambda _: cuda.cuInit(0),
    "everything": lambda _: everything(),
    "ranges": lambda _: ranges(),
    "triggered": lambda _: triggered(),
    "forked-silent": lambda _: forked_silent(),
    "forked-ranges": lambda _: forked_ranges(),
    "forked-cuda": lambda _: forked_cuda(),
    "daemon": lambda _: daemon(),
    "exec": lambda _: again(),
    "flushed": lambda _: wait_flushed(),
    "sleep": lambda n: time.sleep(float(n)),
    "steal": lambda _: cuda.fake_steal_callbacks(),
    "pad": lambda _: None,
    "block": lambda _: block(),
    "say": lambda _: say(),
    "env": lambda n: print(os.environ.get(n)),
    "default": lambda n: signal.signal(int(n), signal.SIG_DFL),
    "catch": lambda n: catch(int(n)),
    "wait-signal": lambda _: wait_signal(),
    "kill": lambda n: os.kill(os.getpid(), int(n)),
    "_exit": lambda n: os._exit(int(n)),
    "exit": lambda n: sys.exit(int(n)),
}

for word in sys.argv[1:]:
    action, _, value = word.partition(":")
    ACTIONS[action](value)
