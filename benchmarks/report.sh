#!/usr/bin/env bash
# What a page takes beside the attribution that it rests on, and how large the page of many ranks and steps is.
#
#   benchmarks/report.sh [-n RUNS] [-s SIZE] TRACE [RANK…]
#
# TRACE is repeated up to SIZE. Its commands run in turn, RUNS times; processor time is the median. Each RANK, a
# trace of one rank of a run, is repeated 100 times. PROGRAMS is where the built programs are (target/release).
set -euo pipefail

runs=5
size=100MB
while getopts n:s: option; do
    case $option in
        n) runs=$OPTARG ;;
        s) size=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "usage: $0 [-n RUNS] [-s SIZE] TRACE [RANK…]" >&2; exit 2; }
programs=${PROGRAMS:-target/release}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trace=$1
shift
"$programs/examples/replicate" "$trace" --size "$size" -o "$folder/trace.json"

commands=(
    "attribute --format json -o $folder/out.json"
    "report --no-inferences -o $folder/out.html"
    "report -o $folder/out.html"
    "annotate -o $folder/out.json.gz"
)
TIMEFORMAT='%U %S %R'
for number in "${!commands[@]}"; do
    read -ra words <<<"${commands[number]}"
    "$programs/tracekit" "${words[0]}" "$folder/trace.json" "${words[@]:1}" -q
done
for _ in $(seq "$runs"); do
    for number in "${!commands[@]}"; do
        read -ra words <<<"${commands[number]}"
        { time "$programs/tracekit" "${words[0]}" "$folder/trace.json" "${words[@]:1}" -q; } 2>>"$folder/times$number"
    done
done
for number in "${!commands[@]}"; do
    awk '{ print $1 + $2, $3 }' "$folder/times$number" | sort -n |
        awk -v name="${commands[number]%% -o*}" '{ cpu[NR] = $1; wall[NR] = $2 }
            END { m = int((NR + 1) / 2); printf "%-28s processor time %.3f s, wall time of that run %.3f s\n", name, cpu[m], wall[m] }'
done

[ $# -gt 0 ] || exit 0
mkdir "$folder/run"
number=0
for rank in "$@"; do
    "$programs/examples/replicate" "$rank" --copies 100 -o "$folder/run/rank$number.json"
    number=$((number + 1))
done
"$programs/tracekit" report "$folder/run" -o "$folder/run.html" -q
echo "page of $# ranks with 100 copies each: $(stat -c %s "$folder/run.html") bytes of $(du -sb "$folder/run" | cut -f1)"
