"""What recording costs: python3 benchmarks/collect.py

Builds the library with a counter of allocations (in target/collect, release), runs loops of ranges and
launches against the fake driver, with and without recording, and prints what is between. Exits with 1
when a bound of benchmarks/README.md is broken.
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(ROOT, "target", "collect")
COUNT = 20_000
ROUNDS = 41
# Between rounds, so that the mean rate is near what a device can take.
PAUSE = 0.1


def loops():
    """In the traced process: nanoseconds and allocations of each loop, after a warm-up."""
    cuda = ctypes.CDLL(os.environ["FAKE_CUDA"])
    for name in ("fake_time_ranges", "fake_time_launches", "fake_allocations"):
        getattr(cuda, name).restype = ctypes.c_uint64
        getattr(cuda, name).argtypes = [ctypes.c_uint64] if "time" in name else []
    cuda.cuInit(0)
    result = {}
    for name in ("ranges", "launches"):
        loop = getattr(cuda, f"fake_time_{name}")
        for _ in range(3):
            loop(COUNT)
            time.sleep(PAUSE)
        before = cuda.fake_allocations()
        times = []
        for _ in range(ROUNDS):
            times.append(loop(COUNT) / COUNT)
            time.sleep(PAUSE)
        times.sort()
        result[name] = {"ns": times[ROUNDS // 2], "least": times[0], "most": times[-1],
                        "allocations": cuda.fake_allocations() - before}
    print(json.dumps(result))


def main():
    build = ["cargo", "build", "--quiet", "--release", "--target-dir", TARGET]
    members = ["-p", "tracekit-inject", "-p", "fake-cuda"]
    subprocess.run(build + members + ["--features", "tracekit-inject/count-allocations"], cwd=ROOT,
                   check=True)
    folder = os.path.join(TARGET, "release")
    inject = os.path.join(folder, "libtracekit_inject.so")
    fake = os.path.join(folder, "libfake_cuda.so")
    environment = dict(os.environ, FAKE_CUDA=fake, TRACEKIT_CUPTI=fake)
    command = [sys.executable, os.path.abspath(__file__), "loops"]

    def run(extra):
        output = subprocess.run(command, env=dict(environment, **extra), check=True,
                                capture_output=True, text=True).stdout
        return json.loads(output)

    plain = run({})
    with tempfile.TemporaryDirectory() as spools:
        recorded = run({"CUDA_INJECTION64_PATH": inject, "NVTX_INJECTION64_PATH": inject,
                        "TRACEKIT_INJECT_DIR": spools, "TRACEKIT_INJECT_KINDS": "8,9,10,5"})
        sizes = [os.path.getsize(os.path.join(spools, name)) for name in os.listdir(spools)]
    loops_made = (ROUNDS + 3) * COUNT
    # A push and a pop are 48 bytes and the name.
    ranges = loops_made * (48 + len("phase.forward"))
    launch_bytes = (sum(sizes) - ranges) / loops_made

    print(f"{COUNT} times, median of {ROUNDS} rounds (least, most)")
    over = {}
    for name in ("ranges", "launches"):
        without, within = plain[name], recorded[name]
        over[name] = within["ns"] - without["ns"]
        print(f"{name:<9} {without['ns']:8.1f} ns plain, {within['ns']:8.1f} ns recorded "
              f"({within['least']:.1f}, {within['most']:.1f}): {over[name]:.1f} ns more, "
              f"{within['allocations']} allocations")
    print(f"spool     {launch_bytes:.0f} bytes a launch")
    broken = [text for text, bad in (
        ("a push and a pop cost more than 300 ns", over["ranges"] > 300),
        ("a launch costs more than 1 us over the driver's own", over["launches"] > 1_000),
        ("a launch takes more than 400 bytes", launch_bytes > 400),
        ("a launch allocates", recorded["launches"]["allocations"] > 0)) if bad]
    for text in broken:
        print(f"broken: {text}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    loops() if sys.argv[1:] == ["loops"] else main()
