"""Makes a dataset on the workers of a Ray cluster, and compares it with that of one machine.

    python3 tests/batch_ray.py TRACEKIT PARTS PATH...

Every task is one part, `tracekit batch --shard I/PARTS`; the parts are merged. The result must be, byte for byte,
what one batch makes. Starts a local cluster of one worker process a core on the loopback interface; for a real
one, set RAY_ADDRESS and give paths that all its machines see. Needs the package ray.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ray


def batch(tracekit, paths, out, *options):
    done = subprocess.run([tracekit, "batch", *paths, "-o", out, "-q", *options], stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 4):
        raise RuntimeError(f"batch ended with {done.returncode}")
    return os.getpid()


def files(folder):
    folder = Path(folder)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".tracekit" not in path.parts
    }


def main():
    tracekit, parts = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    paths = [os.path.abspath(path) for path in sys.argv[3:]]
    if "RAY_ADDRESS" in os.environ:
        ray.init()
    else:
        ray.init(num_cpus=parts, include_dashboard=False, _node_ip_address="127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        task = ray.remote(num_cpus=1)(batch)
        outs = [f"{folder}/part-{part}" for part in range(1, parts + 1)]
        waiting = [
            task.remote(tracekit, paths, out, "-j", "1", "--shard", f"{part}/{parts}")
            for part, out in enumerate(outs, 1)
        ]
        workers = set(ray.get(waiting))
        merged = [tracekit, "batch", "merge", *outs, "-o", f"{folder}/merged"]
        done = subprocess.run(merged, stdout=subprocess.DEVNULL)
        if done.returncode not in (0, 4):
            sys.exit("the parts cannot be merged")
        batch(tracekit, paths, f"{folder}/whole")
        one, many = files(f"{folder}/whole"), files(f"{folder}/merged")
        wrong = sorted(name for name in one.keys() | many.keys() if one.get(name) != many.get(name))
        print(f"{len(workers)} workers, {len(one)} files, {len(wrong)} differ {wrong[:5]}")
        sys.exit(bool(wrong) or len(one) < 8 or len(workers) < 2)


if __name__ == "__main__":
    main()
