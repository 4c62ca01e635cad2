"""Makes an archive of many traces, and measures a batch of it.

    python3 benchmarks/archive.py make FOLDER [COUNT [SEED]] < list of trace files
    python3 benchmarks/archive.py measure TRACEKIT FOLDER [tracekit batch options]

`make` writes COUNT traces (5,000 by default) in runs of one to eight ranks from the files named on standard
input, each content made its own by white space: half of them gzip, a fiftieth duplicates, and one in a hundred
broken in one of six ways (cut, cut in the compressed data, no JSON, no trace, empty, binary). `measure` runs
`tracekit attribute` file by file over the same folder, then `tracekit batch` twice, and tells bytes per second,
peak memory and the share of the second batch.
"""

import gzip
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def broken(content, how):
    packed = gzip.compress(content, 1)
    return [
        (content[: len(content) * 2 // 3], ".json"),
        (packed[: len(packed) // 2], ".json.gz"),
        (b"no JSON at all", ".json"),
        (b'{"a": 1}', ".json"),
        (b"", ".json"),
        (bytes(range(256)) * 64, ".json"),
    ][how]


def make(folder, count, seed):
    chance = random.Random(seed)
    sources = []
    for line in sys.stdin:
        content = Path(line.strip()).read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        sources.append(content)
    if not sources:
        sys.exit("give trace files on standard input")
    made, run, last = 0, 0, None
    while made < count:
        run += 1
        place = folder / f"2024-0{run % 9 + 1}-{run % 28 + 1:02d}" / f"strategy{run % 5}" / f"repeat{run}"
        place.mkdir(parents=True, exist_ok=True)
        source = chance.choice(sources)
        for rank in range(min(chance.choice([1, 2, 4, 8]), count - made)):
            content = source + b" " * (made + 1)
            end = ".json"
            if chance.random() < 0.02 and last:
                content, end = last
            elif chance.random() < 0.01:
                content, end = broken(source, chance.randrange(6))
            elif chance.random() < 0.5:
                content, end = gzip.compress(content, 1), ".json.gz"
            last = (content, end)
            (place / f"rank{rank}.pt.trace{end}").write_bytes(content)
            made += 1
    print(f"{made} traces in {run} runs")


def run(command):
    start = time.monotonic()
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(done.pid, 0)
    return time.monotonic() - start, os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024


def measure(tracekit, folder, options):
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    seconds, code, peak = run([tracekit, "attribute", str(folder), "--format", "json"])
    rate = stored / seconds / 1e6
    print(f"attribute: {seconds:.1f} s, {rate:.0f} MB/s stored, peak {peak:.0f} MB, exit {code}")
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        command = [tracekit, "batch", str(folder), "-o", f"{place}/dataset", *options]
        first, code, peak = run(command)
        own = stored / first / 1e6
        print(f"batch: {first:.1f} s, {own:.0f} MB/s, peak {peak:.0f} MB, exit {code}: {own / rate:.0%} of attribute")
        again, code, peak = run(command)
        print(f"again: {again:.2f} s, exit {code}: {again / first:.1%} of the first time")
        shutil.rmtree(f"{place}/dataset")


def main():
    what = sys.argv[1]
    if what == "make":
        words = sys.argv[3:]
        make(Path(sys.argv[2]), int(words[0]) if words else 5000, int(words[1]) if len(words) > 1 else 1)
    else:
        measure(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])


if __name__ == "__main__":
    main()
