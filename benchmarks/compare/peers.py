"""One job of one peer on one file: peers.py JOB FILE.

The last line of standard output is {"seconds": …}: the job without starting Python and importing the
peer. Whoever wants those too times the process.
"""

import json
import sys
import time


def hta_parse(path):
    """Holistic Trace Analysis: the file to its data frame."""
    from hta.common.trace_parser import parse_trace_dataframe
    from hta.configs.parser_config import ParserConfig

    def job():
        return len(parse_trace_dataframe(path, ParserConfig.get_default_cfg())[1])

    return job


def hta_breakdown(path):
    """Holistic Trace Analysis: the temporal breakdown, from the file to the table."""
    from hta.trace_analysis import TraceAnalysis

    def job():
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir="")
        return analysis.get_temporal_breakdown(visualize=False).to_string()

    return job


def tensorboard_load(path):
    """The profiler plugin of TensorBoard: a run folder as its server loads it."""
    import os
    import tempfile

    from torch_tb_profiler.io import Cache
    from torch_tb_profiler.profiler.loader import RunLoader

    def job():
        with tempfile.TemporaryDirectory() as folder, Cache() as cache:
            os.symlink(os.path.abspath(path), os.path.join(folder, "worker0.pt.trace.json"))
            run = RunLoader("run", folder, cache).load()
            if not run.profiles:
                sys.exit("the plugin loaded nothing")
            return sorted(map(str, run.profiles))

    return job


def orjson_load(path):
    """orjson: Python objects for everything in the file."""
    import orjson

    def job():
        with open(path, "rb") as file:
            return len(orjson.loads(file.read())["traceEvents"])

    return job


def duckdb_read(path):
    """DuckDB: read_json, one row an event, counted and summed."""
    import duckdb

    def job():
        limit = 2**32 - 1
        events = f"select unnest(traceEvents) as e from read_json('{path}', maximum_object_size={limit})"
        return duckdb.connect().sql(f"select count(*), sum(e.dur) from ({events})").fetchall()

    return job


def polars_read(path):
    """polars: read_json of the document."""
    import polars

    def job():
        return polars.read_json(path).shape

    return job


JOBS = {
    "hta-parse": hta_parse,
    "hta-breakdown": hta_breakdown,
    "tensorboard-load": tensorboard_load,
    "orjson-load": orjson_load,
    "duckdb-read": duckdb_read,
    "polars-read": polars_read,
}

if __name__ == "__main__":
    job = JOBS[sys.argv[1]](sys.argv[2])
    start = time.perf_counter()
    answer = job()
    seconds = time.perf_counter() - start
    print(answer)
    print(json.dumps({"seconds": seconds}))
