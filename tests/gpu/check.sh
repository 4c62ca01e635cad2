#!/usr/bin/env bash
# Checks tracekit collect on a machine with an NVIDIA GPU and PyTorch, in less than six minutes:
# tests/gpu/check.sh BIN [OUT]
# BIN holds tracekit and libtracekit_inject.so (cargo build --release --workspace); nothing is fetched.
# OUT gets a small trace of each profiler, a spool, and the tables. The last line is PASS or FAIL.
set -uo pipefail
bin=$(cd "$1" && pwd)
out=${2:-gpu-check}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
mkdir -p "$out"
failed=0

say() { printf '\n== %s\n' "$*"; }
collect() { timeout 90 "$bin/tracekit" collect "$@"; }
train() { timeout 90 python3 "$here/train.py" "$@"; }
must() {
    local what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}
# The numbers that a trace holds of a category.
count() { zcat "$1" | grep -c "\"cat\":\"$2\""; }

{
    say system
    nvidia-smi --query-gpu=name,driver_version,power.draw,clocks.sm --format=csv,noheader
    python3 -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda)'
    collect --check

    say one, plain
    train plain

    say two, recorded
    must "the program ends well" collect -o "$work/nvtx" -- python3 "$here/train.py" nvtx
    ours=("$work"/nvtx/*.pt.trace.json.gz)
    "$bin/tracekit" attribute "${ours[0]}"
    "$bin/tracekit" doctor "${ours[0]}"

    say three, torch.profiler
    train profiler "$work/kineto.json"

    say four, the two compared
    must "both see the same" python3 "$here/compare.py" "${ours[0]}" "$work/kineto.json"

    say five, both in one process
    collect -o "$work/both" -- python3 "$here/train.py" both "$work/both.json"
    must "the program ends well all the same" test -s "$work/both.json"

    say six, killed
    STEPS=100000 collect -o "$work/killed" -- timeout -s KILL 15 python3 "$here/train.py" nvtx
    killed=("$work"/killed/*.pt.trace.json.gz)
    must "kernels of a killed program are kept" test "$(count "${killed[0]}" kernel)" -gt 1000

    say seven, emit_nvtx and a CUDA graph
    cat >"$work/graph.py" <<'PYTHON'
import torch
a = torch.randn(512, 512, device="cuda")
(a @ a).relu()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    b = (a @ a).relu()
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
with torch.autograd.profiler.emit_nvtx():
    (a @ a).sum().item()
PYTHON
    collect -o "$work/graph" -- python3 "$work/graph.py"
    graph=("$work"/graph/*.pt.trace.json.gz)
    must "graphs are seen" grep -q '"graph node id"' <(zcat "${graph[0]}")
    must "operators of emit_nvtx are seen" grep -q '"name":"aten::mm"' <(zcat "${graph[0]}")

    say eight, two processes
    # shellcheck disable=SC2016
    collect -o "$work/two" -- bash -c \
        'for rank in 0 1; do RANK=$rank WORLD_SIZE=2 STEPS=5 python3 "$0" nvtx & done; wait' \
        "$here/train.py"
    must "each has its trace" test "$(ls "$work"/two/*_rank[01].pt.trace.json.gz | wc -l)" -eq 2

    say nine, a range and a piece of time
    collect -o "$work/range" --range measured -- python3 "$here/train.py" nvtx
    ranged=("$work"/range/*.pt.trace.json.gz)
    must "only the range is recorded" test "$(count "${ranged[0]}" kernel)" -lt \
        "$(count "${ours[0]}" kernel)"

    say ten, a ring
    STEPS=60 collect -o "$work/ring" --max-spool 1MB --ring --buffer-size 256KiB -- \
        python3 "$here/train.py" nvtx
    ring=("$work"/ring/*.pt.trace.json.gz)
    must "the newest step is kept" grep -q '"name":"ProfilerStep#59"' <(zcat "${ring[0]}")
    must "the first is removed" test "$(zcat "${ring[0]}" | grep -c '"name":"ProfilerStep#0"')" -eq 0

    say fixtures
    STEPS=2 train profiler "$work/small.json"
    gzip -9c "$work/small.json" >"$out/kineto_2_steps.pt.trace.json.gz"
    STEPS=2 collect -o "$work/small" --keep-spool --range measured -- python3 "$here/train.py" nvtx
    cp "$work"/small/*.pt.trace.json.gz "$out/collect_2_steps.pt.trace.json.gz"
    gzip -9c "$work"/small/spool/*.tkspool >"$out/2_steps.tkspool.gz"
    ls -l "$out"

    say "$([ "$failed" -eq 0 ] && echo PASS || echo FAIL)"
} 2>&1 | tee "$out/report.txt"
rm -rf "$work"
tail -1 "$out/report.txt" | grep -q PASS
