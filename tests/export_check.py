"""Reads exported tables with DuckDB, a program that is not ours, and compares them with the attribution.

    python3 tests/export_check.py TRACEKIT TRACE...

Row counts and sums of Parquet and CSV must be those of `tracekit attribute --format json`. Needs the
package duckdb.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

BUCKETS = ["forward", "backward", "recompute", "optimizer", "other", "pre_window", "unlinked"]


def numbers(read):
    """Numbers of the tables, by name; `read` gives the SQL that reads a table."""

    def one(sql):
        return duckdb.sql(sql).fetchall()[0][0]

    found = {
        "events": one(f"SELECT COUNT(*) FROM {read('events')}"),
        "findings": one(f"SELECT COUNT(*) FROM {read('health')}"),
        "files": one(f"SELECT COUNT(*) FROM {read('files')}"),
        "device events": one(f"SELECT COUNT(*) FROM {read('device_work')}"),
    }
    work, table = read("device_work"), read("attribution")
    for bucket in BUCKETS:
        where = f"WHERE phase = '{bucket}'"
        found[f"{bucket} of device_work"] = one(
            f"SELECT COALESCE(SUM(CAST(dur_ns AS BIGINT)), 0) FROM {work} {where}"
        )
        found[f"{bucket} of attribution"] = one(
            f"SELECT COALESCE(SUM(CAST(sum_ns AS BIGINT)), 0) FROM {table} "
            f"WHERE step = 'all' AND device IS NOT NULL AND bucket = '{bucket}'"
        )
    # What is held and what is idle fills the window of every device.
    idle = one(
        f"SELECT COALESCE(SUM(CAST(timeline_ns AS BIGINT)), 0) FROM {table} "
        "WHERE step = 'all' AND device IS NOT NULL AND bucket = 'idle'"
    )
    held = one(f"SELECT COALESCE(SUM(CAST(held_ns AS BIGINT)), 0) FROM {work}")
    found["window"] = int(idle) + int(held)
    return {name: int(value) for name, value in found.items()}


def expected(answer):
    """The same numbers from the attribution."""
    # Without device work there are no totals.
    nothing = {"events": 0, "sum_ns": 0}
    totals = {name: answer["totals"].get(name, nothing) for name in [*BUCKETS, "total"]}
    found = {
        "events": sum(file["events"] for file in answer["inputs"]),
        "findings": len(answer["health"]),
        "files": len(answer["ranks"]),
        "device events": totals["total"]["events"],
    }
    for bucket in BUCKETS:
        for table in ["device_work", "attribution"]:
            found[f"{bucket} of {table}"] = totals[bucket]["sum_ns"]
    found["window"] = sum(
        device["timeline"]["window_ns"] for rank in answer["ranks"] for device in rank["devices"]
    )
    return found


def tracekit(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in (0, 4):
        sys.exit(f"tracekit {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def check(program, trace):
    answer = expected(json.loads(tracekit(program, "attribute", trace, "--format", "json", "-q")))
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        readers = {"parquet": "read_parquet('{}')", "csv": "read_csv('{}', sample_size=-1)"}
        for form, reader in readers.items():
            to = Path(folder) / form
            tracekit(program, "export", trace, "-o", to, "--format", form, "-q")
            got = numbers(lambda table: reader.format(to / f"{table}.{form}"))
            for name, value in answer.items():
                if got[name] != value:
                    wrong.append(f"{trace}: {form}: {name}: {got[name]}, not {value}")
    return wrong


def main():
    program, *traces = sys.argv[1:]
    wrong = [line for trace in traces for line in check(program, trace)]
    print("\n".join(wrong) or f"{len(traces)} exports are what the attribution says")
    return 1 if wrong or not traces else 0


if __name__ == "__main__":
    sys.exit(main())
