#!/usr/bin/env bash
# Wall time and peak anonymous memory of one command over several runs.
#
#   benchmarks/measure.sh [-n RUNS] COMMAND…
#
# Timed runs and runs whose memory is watched are different runs, so that watching costs no time.
# The command's standard output is thrown away. One run before the measured ones warms the page cache.
set -euo pipefail

runs=9
if [ "${1-}" = "-n" ]; then
    runs=$2
    shift 2
fi
[ $# -gt 0 ] || { echo "usage: $0 [-n RUNS] COMMAND…" >&2; exit 2; }

# Lower median of the numbers on standard input, with the least and the most.
spread() {
    sort -n | awk '{ v[NR] = $1 } END { printf "min %s, median %s, max %s\n", v[1], v[int((NR + 1) / 2)], v[NR] }'
}

# Microseconds of one run.
timed() {
    local from=${EPOCHREALTIME/[.,]/}
    "$@" >/dev/null
    local to=${EPOCHREALTIME/[.,]/}
    echo $((to - from))
}

# Most kilobytes of anonymous memory seen in one run, looked at about every millisecond.
watched() {
    "$@" >/dev/null &
    local pid=$! most=0 key value
    exec 9<> <(:)
    while :; do
        value=$({ while read -r key value _; do
            [ "$key" = RssAnon: ] && echo "$value" && break
        done <"/proc/$pid/status"; } 2>/dev/null || true)
        [ -n "$value" ] || break
        [ "$value" -gt "$most" ] && most=$value
        read -rt 0.001 -u 9 || true
    done
    wait "$pid"
    echo "$most"
}

"$@" >/dev/null
for _ in $(seq "$runs"); do timed "$@"; done | spread | sed 's/^/wall time in us: /'
for _ in $(seq "$runs"); do watched "$@"; done | spread | sed 's/^/peak anonymous memory in kB: /'
