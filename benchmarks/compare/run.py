#!/usr/bin/env python3
"""Measures tracekit beside its peers on the same files, in turns, and writes what came out.

    benchmarks/compare/run.py [--trace TRACE] [--out FILE]

Builds tracekit, makes the peers' environment and the inputs in a temporary folder, measures, writes
benchmarks/results/MACHINE.md and removes the folder. Needs Python 3.9 or later with venv, the network
for the peers' packages, 12 GB of memory and, with the largest sizes, 6 GB of disk.

How it measures: each command is a process of its own, all of a table take turns, and each waits until
nothing else runs. A run beside which something else took processor time is run again, and left out of
the median when enough quiet ones are there; the results say how many were not quiet. Memory is watched
in runs of its own.
"""

import argparse
import datetime
import gzip
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TICK = os.sysconf("SC_CLK_TCK")
SECTIONS = ["peers", "bounds", "growth", "layouts", "ranks", "traces"]


# ── measuring ──────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Run:
    wall: float
    cpu: float
    """Most resident memory in bytes, file pages included."""
    resident: int
    """Processor time that others took meanwhile, in seconds."""
    others: float
    output: str

    @property
    def quiet(self):
        # The system counts in ticks of some milliseconds.
        return self.others < 3 / TICK + 0.1 * self.wall

    def said(self, key):
        """A number from the last line of output, which is JSON."""
        return json.loads(self.output.strip().splitlines()[-1])[key]


@dataclass
class Series:
    """One command and its runs."""

    name: str
    command: list
    runs: list = field(default_factory=list)
    noisy: int = 0
    anonymous: int = 0

    def values(self, of):
        return [of(run) for run in self.runs]

    def median(self, of=lambda run: run.wall):
        return statistics.median(self.values(of))

    @property
    def inner(self):
        """Median of the seconds that the command itself counted."""
        return self.median(lambda run: run.said("seconds"))


def busy():
    """Processor time of the whole system, in seconds."""
    with open("/proc/stat") as file:
        numbers = [int(word) for word in file.readline().split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = numbers[:8]
    return (user + nice + system + irq + softirq + steal) / TICK


def wait_until_quiet(seconds):
    """Waits until nobody else runs, at most so long; how long it was."""
    start = time.monotonic()
    while True:
        before = busy()
        time.sleep(0.1)
        waited = time.monotonic() - start
        if busy() - before <= 1.5 / TICK:
            return 0.0
        if waited > seconds:
            return waited


def once(command, environment, realtime=False):
    with tempfile.TemporaryFile() as output:
        before = busy()
        if realtime:
            # The command inherits it, and this process must not wait to see its end.
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        start = time.perf_counter()
        pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - start
        if realtime:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        cpu = usage.ru_utime + usage.ru_stime
        others = busy() - before - cpu
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}\n{text[-2000:]}")
    # What has priority over everything is not disturbed by anything.
    others = 0.0 if realtime else max(0.0, others)
    return Run(wall, cpu, usage.ru_maxrss * 1024, others, text)


def watched(command, environment):
    """Most anonymous memory of one run, looked at twice a millisecond."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    most = 0
    with open(f"/proc/{process.pid}/status", "rb", buffering=0) as status:
        while process.poll() is None:
            status.seek(0)
            found = re.search(rb"RssAnon:\s+(\d+) kB", status.read())
            if not found:
                break
            most = max(most, int(found[1]) * 1024)
            time.sleep(0.0005)
    process.wait()
    return most


class Bench:
    def __init__(self, arguments, work):
        self.arguments = arguments
        self.work = work
        self.tracekit = str(ROOT / "target/release/tracekit")
        examples = ROOT / "target/release/examples"
        self.bounds = str(examples / "bounds")
        self.replicate = str(examples / "replicate")
        self.generate = str(examples / "generate")
        self.python = None
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if key in ("PATH", "HOME", "LANG", "TMPDIR")
        }

    def say(self, text):
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def take_turns(self, plan):
        """Runs each command of [(name, command, runs)] so often, in turns."""
        series = [Series(name, command) for name, command, _ in plan]
        wanted = {name: runs for name, _, runs in plan}
        for one in series:
            if wanted[one.name] > 3:
                once(one.command, self.environment, self.arguments.realtime)
        kept = {one.name: [] for one in series}
        realtime = self.arguments.realtime
        patience = 0 if realtime else self.arguments.patience

        def is_due(one):
            runs = kept[one.name]
            if sum(run.quiet for run in runs) >= wanted[one.name]:
                return False
            if patience <= 0:
                return len(runs) < wanted[one.name]
            # Short runs fit between what others do; long ones are not tried often.
            often = 4 if runs and runs[0].wall < 1 else 2
            return len(runs) < often * wanted[one.name]

        while due := [one for one in series if is_due(one)]:
            for one in due:
                if patience > 0:
                    patience -= wait_until_quiet(min(3, patience))
                kept[one.name].append(once(one.command, self.environment, realtime))
        for one in series:
            quiet = [run for run in kept[one.name] if run.quiet]
            enough = len(quiet) >= max(1, (wanted[one.name] + 1) // 2)
            one.runs = quiet if enough else kept[one.name]
            one.noisy = len(kept[one.name]) - len(quiet)
            self.say(f"{one.name}: {one.median():.3f} s, {len(one.runs)} runs, {one.noisy} not quiet")
        return {one.name: one for one in series}

    def watch(self, series, runs=5):
        for one in series:
            one.anonymous = max(watched(one.command, self.environment) for _ in range(runs))

    # ── inputs ─────────────────────────────────────────────────────────────────────────────────────

    def copies(self, trace, size, name, layout="native"):
        """A file of whole copies of `trace` with at least `size` (such as 200MB or 12 copies)."""
        path = self.work / name
        amount = ["--copies", str(size)] if isinstance(size, int) else ["--size", size]
        command = [self.replicate, str(trace), *amount, "--layout", layout, "-o", str(path)]
        subprocess.run(command, check=True)
        return path

    def columns(self, path, threads=None, reader="columns"):
        count = [] if threads is None else ["-j", str(threads)]
        return [self.bounds, reader, str(path), *count]

    def attribute(self, path, *more):
        return [self.tracekit, "attribute", "--progress", "never", str(path), *more]

    def peer(self, job, path):
        return [self.python, str(HERE / "peers.py"), job, str(path)]

    def install_peers(self):
        folder = Path(self.arguments.venv) if self.arguments.venv else self.work / "venv"
        self.python = str(folder / "bin/python")
        if not Path(self.python).exists():
            self.say("installing the peers")
            venv.create(folder, with_pip=True)
            pip = [self.python, "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)


# ── what is measured ───────────────────────────────────────────────────────────────────────────────


def events_of(series):
    return int(series.runs[0].said("events"))


def peers(bench, path):
    """The peers and tracekit on one file."""
    bench.install_peers()
    fast, slow = bench.arguments.runs, bench.arguments.slow_runs
    plan = [
        ("attribute", bench.attribute(path), fast),
        ("columns", bench.columns(path), fast),
        ("orjson-load", bench.peer("orjson-load", path), 5),
        ("polars-read", bench.peer("polars-read", path), 3),
        ("duckdb-read", bench.peer("duckdb-read", path), 3),
        ("tensorboard-load", bench.peer("tensorboard-load", path), slow),
        ("hta-parse", bench.peer("hta-parse", path), slow),
        ("hta-breakdown", bench.peer("hta-breakdown", path), slow),
    ]
    series = bench.take_turns(plan)
    bench.watch([series["attribute"], series["columns"]])
    return series


def bounds(bench, path):
    """From touching a file to attributing it, on one thread and two."""
    runs = bench.arguments.runs
    packed = path.with_suffix(".json.gz")
    with open(path, "rb") as plain, gzip.open(packed, "wb", 6) as stored:
        shutil.copyfileobj(plain, stored, 1 << 20)
    plan = []
    for threads in (1, 2):
        for what in ("touch", "read", "scan", "columns", "columns-simd-json", "columns-scalar"):
            plan.append((f"{what} {threads}", bench.columns(path, threads, what), runs))
        plan.append((f"attribute {threads}", bench.attribute(path, "-j", str(threads)), runs))
        plan.append((f"gz columns {threads}", bench.columns(packed, threads), runs))
        plan.append((f"gz attribute {threads}", bench.attribute(packed, "-j", str(threads)), runs))
    plan.append(("gz inflate 1", bench.columns(packed, 1, "inflate"), runs))
    series = bench.take_turns(plan)
    bench.watch([series[f"{what} 2"] for what in ("columns", "attribute", "gz columns", "gz attribute")])
    size = packed.stat().st_size
    packed.unlink()
    return series, size


def pair(bench, name, path, runs):
    """attribute and columns of one input."""
    plan = [
        (f"attribute {name}", bench.attribute(path), runs),
        (f"columns {name}", bench.columns(path), runs),
    ]
    series = bench.take_turns(plan)
    bench.watch(series.values(), 3)
    return series[f"attribute {name}"], series[f"columns {name}"]


def growth(bench, trace):
    rows = []
    for size in bench.arguments.sizes.split(","):
        path = bench.copies(trace, size, "growth.json")
        runs = bench.arguments.runs if path.stat().st_size < 2e9 else 5
        rows.append((size, path.stat().st_size, *pair(bench, size, path, runs)))
        path.unlink()
    return rows


def layouts(bench, trace):
    content = open_any(trace)
    copies = max(1, round(200e6 / len(content)))
    rows = []
    for layout in ("native", "pretty", "line", "minified"):
        path = bench.copies(trace, copies, f"{layout}.json", layout)
        rows.append((layout, path.stat().st_size, *pair(bench, layout, path, bench.arguments.runs)))
        path.unlink()
    return rows


def ranks(bench, trace):
    """Folders of more and more files of 50 MB."""
    folder = bench.work / "ranks"
    folder.mkdir()
    rows = []
    for count in (1, 2, 8):
        for rank in range(len(list(folder.iterdir())), count):
            path = bench.copies(trace, "50MB", f"ranks/rank{rank}.json")
            renumber(path, rank)
        size = sum(path.stat().st_size for path in folder.iterdir())
        plan = [
            (f"{count} files, {threads} threads", bench.attribute(folder, "-j", str(threads)), bench.arguments.runs)
            for threads in (1, 2)
        ]
        series = bench.take_turns(plan)
        bench.watch(series.values(), 3)
        rows.append((count, size, *series.values()))
    shutil.rmtree(folder)
    return rows


def traces(bench):
    """Other traces, each brought to 200 MB, and made-up ones."""
    rows = []
    for trace in bench.arguments.also:
        path = bench.copies(trace, "200MB", "other.json")
        name = Path(trace).name.split(".")[0]
        rows.append((name, path.stat().st_size, *pair(bench, name, path, 5)))
        path.unlink()
    for shape in ("small-ops", "python-stacks", "long-args", "numbers"):
        path = bench.work / "made-up.json"
        with open(path, "wb") as file:
            subprocess.run([bench.generate, shape, "200000000"], stdout=file, check=True)
        rows.append((f"made up: {shape}", path.stat().st_size, *pair(bench, shape, path, 5)))
        path.unlink()
    return rows


def open_any(path):
    data = Path(path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def renumber(path, rank):
    """Gives a file its own rank where it names one of one digit."""
    with open(path, "r+b") as file:
        for at in (0, max(0, path.stat().st_size - 65536)):
            file.seek(at)
            part = file.read(65536)
            found = re.search(rb'"distributedInfo":[^}]*?"rank":\s*(\d)[,}\s]', part)
            if found:
                file.seek(at + found.start(1))
                file.write(str(rank).encode())


# ── what is written ────────────────────────────────────────────────────────────────────────────────


def seconds(value):
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def spread(values):
    return f"{seconds(statistics.median(values))} ({seconds(min(values))}–{seconds(max(values))})"


def rate(size, took):
    return f"{size / took / 1e9:.2f}"


def megabytes(size):
    return f"{size / 1e6:,.0f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


PEERS = {
    "orjson-load": "orjson: load",
    "polars-read": "polars: read_json",
    "duckdb-read": "DuckDB: read_json, count and sum",
    "tensorboard-load": "TensorBoard plugin: load of the run",
    "hta-parse": "HTA: parse to a data frame",
    "hta-breakdown": "HTA: temporal breakdown",
}


def peers_table(series, size):
    attribute, columns = series["attribute"], series["columns"]
    rows = []
    for name in ("attribute", "columns", *PEERS):
        one = series[name]
        label = {"attribute": "**tracekit attribute**", "columns": "tracekit, to columns alone"}
        inside = "" if name == "attribute" else spread(one.values(lambda run: run.said("seconds")))
        ratios = ["", ""]
        if name in PEERS:
            ratios = [
                f"{one.median() / attribute.median():,.0f} ×",
                f"{one.inner / columns.inner:,.0f} ×",
            ]
        rows.append(
            [
                label.get(name) or PEERS[name],
                spread(one.values(lambda run: run.wall)),
                inside,
                seconds(one.median(lambda run: run.cpu)),
                megabytes(one.median(lambda run: run.resident)),
                megabytes(one.anonymous) if one.anonymous else "",
                *ratios,
                len(one.runs),
            ]
        )
    return table(
        [
            "job",
            "process, s",
            "inside it, s",
            "CPU, s",
            "peak RSS, MB",
            "anonymous, MB",
            "process ÷ attribute",
            "inside ÷ columns",
            "runs",
        ],
        rows,
    )


def bounds_table(series, size):
    rows = []
    for name, one in series.items():
        what, threads = name.rsplit(" ", 1)
        whole = "attribute" in what
        took = one.values(lambda run: run.wall if whole else run.said("seconds"))
        rows.append(
            [what, threads, spread(took), rate(size, statistics.median(took)), len(one.runs), one.noisy]
        )
    rows.sort(key=lambda row: row[0].startswith("gz"))
    return table(["what", "threads", "seconds", "GB/s", "runs", "not quiet"], rows)


def grown_table(first, rows):
    lines = []
    for name, size, attribute, columns in rows:
        events = events_of(columns)
        lines.append(
            [
                name,
                f"{size / 1e6:,.0f}",
                f"{events:,}",
                spread(attribute.values(lambda run: run.wall)),
                rate(size, attribute.median()),
                f"{attribute.median() / events * 1e9:.0f}",
                spread(columns.values(lambda run: run.said("seconds"))),
                rate(size, columns.inner),
                f"{columns.inner / events * 1e9:.0f}",
                f"{columns.median(lambda run: run.said('anonymous')) / events:.0f}",
                f"{columns.anonymous / events:.0f}",
                f"{attribute.anonymous / events:.0f}",
            ]
        )
    return table(
        [
            first,
            "MB",
            "events",
            "attribute, s",
            "GB/s",
            "ns/event",
            "columns, s",
            "GB/s",
            "ns/event",
            "held B/event",
            "peak in columns",
            "peak in attribute",
        ],
        lines,
    )


def ranks_table(rows):
    return table(
        ["files", "MB", "1 thread, s", "2 threads, s", "gain", "GB/s on 2", "anonymous on 2, MB"],
        [
            [
                count,
                megabytes(size),
                spread(one.values(lambda run: run.wall)),
                spread(two.values(lambda run: run.wall)),
                f"{one.median() / two.median():.2f} ×",
                rate(size, two.median()),
                megabytes(two.anonymous),
            ]
            for count, size, one, two in rows
        ],
    )


class Goals:
    def __init__(self):
        self.rows = []

    def add(self, what, value, goal, unit="", least=True, digits=2):
        reached = value >= goal if least else value <= goal
        sign = "≥" if least else "≤"
        self.rows.append(
            [what, f"{value:,.{digits}f} {unit}".strip(), f"{sign} {goal:g} {unit}".strip(), "yes" if reached else "**no**"]
        )

    def table(self):
        return table(["what", "measured", "goal", "reached"], self.rows)


def goals(results, sizes):
    goal = Goals()
    size = sizes["main"]
    if "peers" in results:
        series = results["peers"]
        attribute, columns = series["attribute"], series["columns"]
        goal.add("`attribute`, 200 MB, process", size / attribute.median() / 1e9, 1.2, "GB/s")
        goal.add("to columns alone", size / columns.inner / 1e9, 2.7, "GB/s")
        goal.add("HTA's temporal breakdown ÷ `attribute`, process", series["hta-breakdown"].median() / attribute.median(), 150, "×", digits=0)
        goal.add("HTA's parse ÷ columns, inside", series["hta-parse"].inner / columns.inner, 200, "×", digits=0)
        goal.add("orjson's load ÷ columns, inside", series["orjson-load"].inner / columns.inner, 50, "×", digits=0)
    if "bounds" in results:
        series = results["bounds"][0]
        goal.add("columns ÷ structural scan of a fresh mapping, speed", 100 * series["scan 2"].inner / series["columns 2"].inner, 30, "%", digits=0)
        goal.add("simd-json path alone", size / series["columns-simd-json 2"].inner / 1e9, 0.9, "GB/s")
        goal.add("columns, 1 → 2 threads", series["columns 1"].inner / series["columns 2"].inner, 1.8, "×")
        goal.add("`attribute`, 1 → 2 threads", series["attribute 1"].median() / series["attribute 2"].median(), 1.8, "×")
        goal.add("gzip to columns, of JSON", size / series["gz columns 2"].inner / 1e9, 1.2, "GB/s")
        goal.add("gzip to columns ÷ inflate alone, speed", 100 * series["gz inflate 1"].inner / series["gz columns 2"].inner, 85, "%", digits=0)
    if "growth" in results:
        rows = results["growth"]
        middle = next((row for row in rows if row[0] == "200MB"), rows[0])
        events = events_of(middle[3])
        goal.add("held after ingest", middle[3].median(lambda run: run.said("anonymous")) / events, 60, "B/event", False, 0)
        goal.add("peak in ingest", middle[3].anonymous / events, 60, "B/event", False, 0)
        goal.add("peak in `attribute`", middle[2].anonymous / events, 120, "B/event", False, 0)
        by_name = {row[0]: row for row in rows}
        if "1GB" in by_name and "4500MB" in by_name:
            def per_byte(row, of):
                return of(row) / row[1]
            for what, of in (("`attribute`", lambda row: row[2].median()), ("columns", lambda row: row[3].inner)):
                more = per_byte(by_name["4500MB"], of) / per_byte(by_name["1GB"], of) - 1
                goal.add(f"{what}: 4.5 GB dearer a byte than 1 GB by", 100 * more, 20, "%", False, 0)
    if "layouts" in results:
        rows = results["layouts"]
        native = rows[0][3].inner / events_of(rows[0][3])
        for name, _, _, columns in rows[1:]:
            goal.add(f"{name} ÷ native, events a second", native / (columns.inner / events_of(columns)), 0.5, "×")
    return goal


def reading(results, size):
    """What the numbers say, in words."""
    out = []
    if "peers" in results:
        series = results["peers"]
        attribute, columns = series["attribute"], series["columns"]
        breakdown = series["hta-breakdown"]
        out.append(
            f"`tracekit attribute` answers from a {size / 1e6:.0f} MB file in {attribute.median():.2f} s, "
            f"start of the process and report included; HTA's temporal breakdown of the same file takes "
            f"{breakdown.median():.0f} s and {breakdown.median(lambda run: run.resident) / attribute.anonymous:.0f} "
            f"times the memory (its resident set against what tracekit allocates; the mapped file is the page "
            f"cache's). The jobs differ: HTA's breakdown is idle, compute and other time by rank, tracekit's "
            f"answer is by phase, step and device, with recompute; HTA's data frame also serves its other "
            f"analyses, tracekit's columns serve this answer."
        )
        out.append(
            f"Reading alone takes {columns.inner * 1e3:.0f} ms of that. orjson, the fastest way to Python "
            f"objects, takes {series['orjson-load'].inner / columns.inner:.0f} times as long and has looked "
            f"at nothing yet."
        )
    if "bounds" in results:
        series = results["bounds"][0]
        scan, columns = series["scan 2"].inner, series["columns 2"].inner
        out.append(
            f"Columns are read at {100 * scan / columns:.0f} % of the speed of a loop that only counts the "
            f"structure of the same file over a fresh mapping, and touching one byte a page takes "
            f"{100 * series['touch 2'].inner / columns:.0f} % of the time: that much is the kernel's."
        )
    return "\n\n".join(out) + "\n"


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as file:
        found = re.search(r"model name\s*:\s*(.*)", file.read())
        model = found[1].strip() if found else model
    with open("/proc/meminfo") as file:
        memory = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1]) / 1e6
    return model, os.cpu_count(), memory


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def report(bench, results, sizes, load):
    model, cores, memory = machine()
    dirty = " and changes to it" if said("git", "status", "--porcelain", "--", "src", "Cargo.toml") else ""
    trace = f"`{Path(bench.arguments.trace).name}`" if bench.arguments.trace else "a made-up trace"
    if bench.arguments.about:
        trace += f" ({bench.arguments.about})"
    lines = [
        f"# {model}, {cores} cores\n",
        f"{memory:.0f} GB of memory, Linux {platform.release().split('-')[0]}, {said('rustc', '--version').split(' (')[0]}, "
        f"Python {platform.python_version()}, {datetime.date.today()}, commit "
        f"`{said('git', 'rev-parse', '--short', 'HEAD')}`{dirty}. Load average {load[0]:.1f} at the start, "
        f"{os.getloadavg()[0]:.1f} at the end. Made by `benchmarks/compare/run.py`; "
        f"[README](../README.md) says how and what.\n",
        f"The input is copies of {trace}, {sizes['main'] / 1e6:,.0f} MB, in the page cache. Times are "
        f"medians, with the least and the most.\n",
        "## Goals\n",
        goals(results, sizes).table(),
        "## Reading\n",
        reading(results, sizes["main"]),
    ]
    if bench.arguments.realtime:
        lines.insert(
            2,
            "Other work was on the machine: measured processes had real-time priority over it, so they did not "
            "wait for a processor, but shared caches and memory with it.\n",
        )
    if "peers" in results:
        lines += [
            "## Peers\n",
            "*Process* is from start to exit, *inside* without starting and importing; the ratios compare "
            "like with like.\n",
            peers_table(results["peers"], sizes["main"]),
            "Versions: " + ", ".join(
                line.strip() for line in (HERE / "requirements.txt").read_text().splitlines() if "==" in line
            ) + ".\n",
        ]
    if "bounds" in results:
        series, packed = results["bounds"]
        lines += [
            "## Bounds and threads\n",
            f"`attribute` is the whole process; the others count inside, from mapping the file on. The gzip "
            f"file has {packed / 1e6:.1f} MB; its rates are of JSON.\n",
            bounds_table(series, sizes["main"]),
        ]
    names = {
        "growth": ("Growth", "size"),
        "layouts": ("Layouts of the same events", "layout"),
        "traces": ("Other traces", "trace"),
    }
    for key, (title, first) in names.items():
        if key in results:
            lines += [f"## {title}\n", grown_table(first, results[key])]
    if "ranks" in results:
        lines += ["## Ranks\n", "Files of 50 MB in one folder, `attribute`.\n", ranks_table(results["ranks"])]
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trace", help="the trace to copy; without one, a made-up one with device work")
    parser.add_argument("--about", default="", help="where the trace is from, for the results")
    parser.add_argument("--also", action="append", default=[], metavar="TRACE", help="more traces for their own table")
    parser.add_argument("--size", default="200MB", help="size of the main input [%(default)s]")
    parser.add_argument("--sizes", default="20MB,200MB,1GB,4500MB", help="sizes of the growth table [%(default)s]")
    parser.add_argument("--sections", default=",".join(SECTIONS), help="which tables [%(default)s]")
    parser.add_argument("--runs", type=int, default=9, help="runs of fast commands [%(default)s]")
    parser.add_argument("--slow-runs", type=int, default=2, help="runs of the slow peers [%(default)s]")
    parser.add_argument("--patience", type=float, default=300, help="seconds a table may wait in vain for quiet [%(default)s]")
    parser.add_argument("--realtime", action="store_true", help="where nothing can be quiet: run ahead of everything else instead of waiting (needs root)")
    parser.add_argument("--venv", help="an environment that has the peers, or where to make it")
    parser.add_argument("--out", help="where to write [benchmarks/results/MACHINE.md]")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    sections = arguments.sections.split(",")
    if unknown := set(sections) - set(SECTIONS):
        sys.exit(f"no section is called {', '.join(unknown)}")
    subprocess.run(["cargo", "build", "--release", "--bins", "--examples"], check=True, cwd=ROOT)
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="tracekit-compare-") as work:
        bench = Bench(arguments, Path(work))
        trace = arguments.trace
        if trace is None:
            trace = Path(work) / "seed.json"
            with open(trace, "wb") as file:
                subprocess.run([bench.generate, "small-ops", "10000000"], stdout=file, check=True)
        results, sizes = {}, {}
        path = bench.copies(trace, arguments.size, "main.json")
        sizes["main"] = path.stat().st_size
        if "peers" in sections:
            results["peers"] = peers(bench, path)
        if "bounds" in sections:
            results["bounds"] = bounds(bench, path)
        path.unlink()
        if "growth" in sections:
            results["growth"] = growth(bench, trace)
        if "layouts" in sections:
            results["layouts"] = layouts(bench, trace)
        if "ranks" in sections:
            results["ranks"] = ranks(bench, trace)
        if "traces" in sections:
            results["traces"] = traces(bench)
        model, cores, _ = machine()
        slug = re.sub(r"[^a-z0-9]+", "-", f"{model} {cores} cores".lower()).strip("-")
        out = Path(arguments.out) if arguments.out else ROOT / "benchmarks/results" / f"{slug}.md"
        out.parent.mkdir(parents=True, exist_ok=True)
        # Notes are written by hand: what a person found behind the numbers.
        _, mark, notes = out.read_text().partition("## Notes\n") if out.exists() else ("", "", "")
        out.write_text(report(bench, results, sizes, load) + (f"\n{mark}{notes}" if mark else ""))
        bench.say(f"wrote {out}")


if __name__ == "__main__":
    main()
