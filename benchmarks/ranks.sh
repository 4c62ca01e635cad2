#!/usr/bin/env bash
# A run of many ranks, made of copies of one or two real traces, and what `tracekit inspect` needs for it.
#
#   benchmarks/ranks.sh [-r RANKS] [-s SIZE] [-t TOPIC]… TRACE [TRACE]
#
# Each rank is its trace, repeated up to SIZE, with its own rank in `distributedInfo`; with two traces,
# even and odd ranks differ. Files are made in a temporary folder and removed at the end. PROGRAMS
# is where the built programs are (target/release).
set -euo pipefail

ranks=64
size=50MB
topics=()
while getopts r:s:t: option; do
    case $option in
        r) ranks=$OPTARG ;;
        s) size=$OPTARG ;;
        t) topics+=("$OPTARG") ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "usage: $0 [-r RANKS] [-s SIZE] [-t TOPIC]… TRACE [TRACE]" >&2; exit 2; }
[ ${#topics[@]} -gt 0 ] || topics=(ranks communication)
programs=${PROGRAMS:-target/release}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/run"
number=0
for trace in "$@"; do
    "$programs/examples/replicate" "$trace" --size "$size" -o "$folder/base$number.json"
    number=$((number + 1))
done
for rank in $(seq 0 $((ranks - 1))); do
    sed -E "/distributedInfo/s/\"rank\": *[0-9]+/\"rank\": $rank/" \
        "$folder/base$((rank % number)).json" >"$folder/run/rank$rank.json"
done
rm "$folder"/base*.json
echo "$ranks ranks, $(du -sb "$folder/run" | cut -f1) bytes"
for topic in "${topics[@]}"; do
    echo "inspect $topic"
    "$(dirname "$0")/measure.sh" -n 3 "$programs/tracekit" inspect "$topic" "$folder/run"
done
