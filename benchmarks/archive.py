"""Makes an archive of many traces, and measures what a batch of it takes.

    python3 benchmarks/archive.py make FOLDER [--count N] [--seed N] [--broken FOLDER] < list of trace files
    python3 benchmarks/archive.py speed TRACEKIT FOLDER [tracekit batch options]
    python3 benchmarks/archive.py memory TRACEKIT FOLDER FOLDER…
    python3 benchmarks/archive.py kill TRACEKIT FOLDER TIMES [tracekit batch options]
    python3 benchmarks/archive.py shards TRACEKIT FOLDER PARTS [tracekit batch options]

`make` writes N traces (5,000 by default) in runs of one to eight ranks from the files named on standard input. Three
in four are as they are, the others copied behind themselves to about 1, 4 and 16 MB; each content is made its own by white
space, half of them are gzip, one in fifty is the same as the one before, and one in a hundred is broken: each file
below --broken in turn, and one that is cut, cut in the compressed data, no JSON, no trace, empty, binary.

`speed` runs `tracekit attribute` over the folder, then `tracekit batch` twice, and tells bytes per second, peak memory
and the share of the second batch. `memory` tells the peak of batches of folders. `kill` starts a batch and kills it
(SIGKILL) at a random moment, TIMES times, each time with --resume, starting anew whenever it came to its end; then
compares what the last one leaves, finished, with an uninterrupted one. `shards` compares parts merged with one batch.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Numbers that link events of one copy.
LINKS = ("correlation", "External id", "Sequence number")


def plain(path):
    content = Path(path).read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def copied(content, size):
    """The trace behind itself until it has about `size` bytes, each copy with links of its own."""
    whole = json.loads(content)
    trace = whole if isinstance(whole, dict) else {"traceEvents": whole}
    events = [event for event in trace["traceEvents"] if isinstance(event, dict)]
    starts = [float(event["ts"]) for event in events if event.get("ph") == "X" and "ts" in event]
    if not starts or len(content) > size:
        return content
    ends = [float(e["ts"]) + float(e.get("dur", 0)) for e in events if e.get("ph") == "X" and "ts" in e]
    period = max(ends) - min(starts) + 10
    out = list(events)
    for copy in range(1, size // len(json.dumps(trace))):
        for event in events:
            if event.get("ph") == "M" or "ts" not in event:
                continue
            moved = dict(event, ts=float(event["ts"]) + copy * period)
            if "id" in moved and isinstance(moved["id"], int):
                moved["id"] += copy * 10_000_000
            arguments = moved.get("args")
            if isinstance(arguments, dict):
                links = {
                    key: arguments[key] + copy * 10_000_000
                    for key in LINKS
                    if isinstance(arguments.get(key), int) and arguments[key] > 0
                }
                moved["args"] = arguments | links
            out.append(moved)
    return json.dumps(dict(trace, traceEvents=out)).encode()


def broken_ways(folder):
    ways = []
    if folder:
        for path in sorted(Path(folder).rglob("input*")):
            if path.is_file():
                ways.append(lambda _, path=path: (path.read_bytes(), ".json" + (".gz" if path.suffix == ".gz" else "")))
    cut = lambda content: (content[: len(content) * 2 // 3], ".json")
    cut_gzip = lambda content: (gzip.compress(content, 1)[: len(content) // 40], ".json.gz")
    fixed = [b"no JSON at all", b'{"a": 1}', b"", bytes(range(256)) * 64]
    return ways + [cut, cut_gzip] + [lambda _, text=text: (text, ".json") for text in fixed]


def make(folder, count, seed, broken):
    chance = random.Random(seed)
    small = []
    for line in sys.stdin:
        try:
            content = plain(line.strip())
            if isinstance(json.loads(content), (dict, list)) and b"traceEvents" in content:
                small.append(content)
        except (ValueError, OSError, EOFError):
            continue
    if not small:
        sys.exit("give trace files on standard input")
    sources = {0: small}
    for size in (1, 4, 16):
        picked = chance.sample(small, min(len(small), 24 // size + 2))
        sources[size] = [copied(content, size * 1_000_000) for content in picked]
    ways, used = broken_ways(broken), 0
    made, run, last = 0, 0, None
    while made < count:
        run += 1
        place = folder / f"2024-0{run % 9 + 1}-{run % 28 + 1:02d}" / f"strategy{run % 5}" / f"repeat{run}"
        place.mkdir(parents=True, exist_ok=True)
        size = chance.choices([0, 1, 4, 16], [75, 22, 2.7, 0.3])[0]
        source = chance.choice(sources[size])
        for rank in range(min(chance.choice([1, 2, 4, 8]), count - made)):
            content, end = source + b" " * (made + 1), ".json"
            if chance.random() < 0.02 and last:
                content, end = last
            elif made % 100 == 50:
                content, end = ways[used % len(ways)](source)
                used += 1
            elif chance.random() < 0.5:
                content, end = gzip.compress(content, 1), ".json.gz"
            last = (content, end)
            (place / f"rank{rank}.pt.trace{end}").write_bytes(content)
            made += 1
    print(f"{made} traces in {run} runs, {used} broken, {stored(folder) / 1e6:.0f} MB")


def stored(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def run(command):
    start = time.monotonic()
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(done.pid, 0)
    busy = usage.ru_utime + usage.ru_stime
    return time.monotonic() - start, os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024, busy


def batch(tracekit, folder, out, options):
    return [tracekit, "batch", str(folder), "-o", str(out), "-q", *options]


def speed(tracekit, folder, options):
    size = stored(folder)
    seconds, code, peak, busy = run([tracekit, "attribute", str(folder), "--format", "json"])
    rate, own = size / seconds / 1e6, size / busy / 1e6
    print(f"attribute: {seconds:.1f} s ({busy:.1f} s of processor), {rate:.0f} MB/s stored, peak {peak:.0f} MB, exit {code}")
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as place:
        command = batch(tracekit, folder, f"{place}/dataset", options)
        first, code, peak, busy = run(command)
        print(
            f"batch: {first:.1f} s ({busy:.1f} s of processor), {size / first / 1e6:.0f} MB/s, peak {peak:.0f} MB, exit {code}: "
            f"{size / first / 1e6 / rate:.0%} of attribute's rate, {size / busy / 1e6 / own:.0%} by processor time"
        )
        again, code, peak, busy = run(command)
        print(f"again: {again:.2f} s ({busy:.2f} s of processor), peak {peak:.0f} MB, exit {code}: {again / first:.1%} of the first time")
        size = stored(f"{place}/dataset")
        print(f"dataset: {size / 1e6:.0f} MB")


def memory(tracekit, folders):
    for folder in folders:
        with tempfile.TemporaryDirectory(dir=Path(folder).parent) as place:
            seconds, code, peak, _ = run(batch(tracekit, folder, f"{place}/dataset", []))
            count = sum(1 for path in Path(folder).rglob("*") if path.is_file())
            print(f"{count} traces, {stored(folder) / 1e6:.0f} MB: {seconds:.0f} s, peak {peak:.0f} MB, exit {code}")


def same(one, other):
    def files(folder):
        found = {}
        for path in Path(folder).rglob("*"):
            below = path.relative_to(folder)
            if path.is_file() and below.parts[0] != ".tracekit":
                found[str(below)] = path.read_bytes()
        return found

    one, other = files(one), files(other)
    wrong = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    print(f"{len(one)} files, {len(wrong)} differ {wrong[:5]}")
    return one and not wrong


def kill(tracekit, folder, times, options):
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as place:
        whole, seconds = f"{place}/whole", run(batch(tracekit, folder, f"{place}/whole", options))[0]
        out, killed, ended = f"{place}/killed", 0, 0
        while killed < times:
            resume = ["--resume"] if Path(out, ".tracekit").is_dir() else []
            child = subprocess.Popen(
                batch(tracekit, folder, out, [*options, *resume]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                child.wait(chance.random() * seconds / 8)
                ended += 1
                # Now and then what is done is left, so that tables are written again and again, too.
                if not same(whole, out):
                    sys.exit("a batch that ended differs")
                shutil.rmtree(out)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                killed += 1
        code = run(batch(tracekit, folder, out, options))[1]
        print(f"{killed} killed, {ended} came to their end in between, exit {code}")
        sys.exit(not same(whole, out))


def shards(tracekit, folder, parts, options):
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as place:
        run(batch(tracekit, folder, f"{place}/whole", options))
        outs = [f"{place}/part-{part}" for part in range(1, parts + 1)]
        for part, out in enumerate(outs, 1):
            seconds, code, _, _ = run(batch(tracekit, folder, out, [*options, "--shard", f"{part}/{parts}"]))
            print(f"part {part}: {seconds:.1f} s, exit {code}")
        seconds, code, peak, _ = run([tracekit, "batch", "merge", *outs, "-o", f"{place}/merged"])
        print(f"merge: {seconds:.1f} s, peak {peak:.0f} MB, exit {code}")
        sys.exit(not same(f"{place}/whole", f"{place}/merged"))


def main():
    what = sys.argv[1]
    if what == "make":
        parser = argparse.ArgumentParser()
        parser.add_argument("folder", type=Path)
        parser.add_argument("--count", type=int, default=5000)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--broken")
        words = parser.parse_args(sys.argv[2:])
        make(words.folder, words.count, words.seed, words.broken)
        return
    tracekit, folder, rest = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3]), sys.argv[4:]
    if what == "speed":
        speed(tracekit, folder, rest)
    elif what == "memory":
        memory(tracekit, [folder, *map(os.path.abspath, rest)])
    elif what == "kill":
        kill(tracekit, folder, int(rest[0]), rest[1:])
    elif what == "shards":
        shards(tracekit, folder, int(rest[0]), rest[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
