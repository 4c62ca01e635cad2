"""Compares a trace of tracekit collect with one of torch.profiler: compare.py OURS KINETO

Over the range `measured`: the same number of device events, total device time within 10 %, and no
work that starts before its launch. Prints the table, then PASS or FAIL.
"""
import collections
import gzip
import json
import sys

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)["traceEvents"]


def measured(events):
    ranges = [event for event in events
              if event.get("cat") == "user_annotation" and event.get("name") == "measured"]
    if len(ranges) != 1:
        sys.exit(f"{len(ranges)} ranges are called measured")
    start = float(ranges[0]["ts"])
    end = start + float(ranges[0]["dur"])
    launched = {event["args"]["correlation"]: float(event["ts"]) for event in events
                if event.get("cat") in ("cuda_runtime", "cuda_driver")
                and "correlation" in event.get("args", {})}
    names = collections.defaultdict(lambda: [0, 0.0])
    early = unlinked = 0
    for event in events:
        if event.get("cat") not in DEVICE:
            continue
        launch = launched.get(event["args"].get("correlation"))
        if launch is None:
            unlinked += 1
        elif start <= launch <= end:
            early += float(event["ts"]) < launch
            names[event["name"]][0] += 1
            names[event["name"]][1] += float(event["dur"])
    return names, early, unlinked


ours, early, unlinked = measured(load(sys.argv[1]))
theirs, _, _ = measured(load(sys.argv[2]))
counts = [sum(count for count, _ in names.values()) for names in (ours, theirs)]
times = [sum(time for _, time in names.values()) for names in (ours, theirs)]
print(f"device events: {counts[0]} and {counts[1]}; device time: {times[0] / 1e3:.3f} ms and "
      f"{times[1] / 1e3:.3f} ms; {early} start before their launch, {unlinked} have none")
for name in sorted(set(ours) | set(theirs)):
    if ours[name][0] != theirs[name][0]:
        print(f"  {ours[name][0]} and {theirs[name][0]}: {name[:100]}")
same = counts[0] == counts[1] > 0 and early == 0 and abs(times[0] / times[1] - 1) < 0.1
print("PASS" if same else "FAIL")
sys.exit(0 if same else 1)
