"""Reads the dataset of a batch with DuckDB, pyarrow and pandas, programs that are not ours, and compares them.

    python3 tests/batch_check.py TRACEKIT PATH...

Makes a dataset of PATHs and asks each reader for rows and sums of every table; both must say what `tracekit
query` says, and find the columns `run` and `date` of the folders. Needs the packages duckdb, pyarrow and pandas.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

TABLES = {
    "runs": "device_sum_ns",
    "ranks": "events",
    "steps": "wall_ns",
    "phases": "timeline_ns",
    "operators": "host_self_ns",
    "health": "count",
    "inferences": "effect_ns",
}
KEYS = ds.partitioning(pa.schema([("run", pa.string()), ("date", pa.string())]), flavor="hive")


def by_tracekit(tracekit, dataset, table, column):
    sql = f'SELECT run, COUNT(*) AS n, SUM("{column}") AS total FROM {table} GROUP BY run'
    answer = subprocess.run(
        [tracekit, "query", dataset, sql, "--format", "json"], capture_output=True, check=True
    )
    rows = json.loads(answer.stdout)
    return {row["run"]: (row["n"], row["total"] or 0) for row in rows}


def by_duckdb(dataset, table, column):
    read = f"read_parquet('{dataset}/{table}/*/*/*.parquet', hive_partitioning=true, hive_types_autocast=false)"
    sql = f'SELECT run, COUNT(*), COALESCE(SUM("{column}"), 0) FROM {read} GROUP BY run'
    return {run: (count, int(total)) for run, count, total in duckdb.sql(sql).fetchall()}


def by_pyarrow(dataset, table, column):
    whole = ds.dataset(f"{dataset}/{table}", partitioning=KEYS).to_table(columns=["run", column])
    found = {}
    for run in set(whole["run"].to_pylist()):
        own = whole.filter(pc.equal(whole["run"], run))
        found[run] = (own.num_rows, pc.sum(own[column]).as_py() or 0)
    return found


def by_pandas(dataset, table, column):
    whole = pd.read_parquet(f"{dataset}/{table}")
    grouped = whole.groupby(whole["run"].astype(str))[column]
    return {run: (int(grouped.size()[run]), int(grouped.sum()[run])) for run in grouped.groups}


def main():
    tracekit, paths = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        dataset = str(Path(folder) / "dataset")
        made = subprocess.run([tracekit, "batch", *paths, "-o", dataset, "-q", "--infer"])
        if made.returncode not in (0, 4):
            sys.exit("the batch failed")
        wrong, rows = 0, 0
        for table, column in TABLES.items():
            expected = by_tracekit(tracekit, dataset, table, column)
            rows += sum(count for count, _ in expected.values())
            for reader in (by_duckdb, by_pyarrow, by_pandas):
                found = reader(dataset, table, column)
                if found != expected:
                    wrong += 1
                    print(f"{table} by {reader.__name__}: {found} instead of {expected}")
        if rows == 0:
            sys.exit("no rows at all")
        print(f"{len(TABLES)} tables, {rows} rows, {wrong} wrong")
        sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
