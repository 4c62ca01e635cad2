#!/usr/bin/env bash
# Fails when tracekit has become slower: benchmarks/guard.sh [--bless]
#
# Counts the instructions of two jobs under valgrind, which do not depend on what else the machine
# does, and compares them with benchmarks/guard.toml. More than 15 % above fails; --bless stores what
# was counted. Installs valgrind where it is missing and apt can; without it, compares the processor
# time of reading with that of tracekit's own scalar reader on the same input.
set -euo pipefail
cd "$(dirname "$0")/.."

stored=benchmarks/guard.toml
most_percent=115
fixture=fixtures/traces/checkpoint/*.gz
bless=${1-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --quiet --bins --examples
bounds=target/release/examples/bounds
target/release/examples/generate small-ops 5000000 >"$work/input.json"

# The value of a key in the file of stored values.
value() {
    sed -n "s/^$1 = \([0-9]*\).*/\1/p" "$stored"
}

# Instructions of one command, all of its threads.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file="$work/callgrind.out" "$@" \
        >"$work/stdout" 2>"$work/stderr" || { cat "$work/stderr" >&2; exit 1; }
    sed -n 's/^summary: *\([0-9]*\).*/\1/p; s/^totals: *\([0-9]*\).*/\1/p' "$work/callgrind.out" | head -1
}

# Least processor milliseconds of seven runs of one command.
milliseconds() {
    local TIMEFORMAT='%3U %3S'
    for _ in 1 2 3 4 5 6 7; do
        { time "$@" >/dev/null; } 2>&1 | awk '{ printf "%d\n", ($1 + $2) * 1000 }'
    done | sort -n | head -1
}

failed=0
compare() {
    local name=$1 now=$2 before
    before=$(value "$name")
    if [ -z "$before" ]; then
        echo "$name: $now, nothing is stored: run $0 --bless"
        failed=1
        return
    fi
    echo "$name: $now, stored $before: $((now * 100 / before)) %"
    if [ $((now * 100)) -gt $((before * most_percent)) ]; then failed=1; fi
}

if ! command -v valgrind >/dev/null && command -v apt-get >/dev/null; then
    apt-get install -y -qq valgrind >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq valgrind; } >/dev/null 2>&1 || true
fi

ratio() {
    local fast slow
    fast=$(milliseconds "$bounds" columns "$work/input.json" -j 1 -n 40)
    slow=$(milliseconds "$bounds" columns-scalar "$work/input.json" -j 1 -n 40)
    # Per mille, so that it fits in integers.
    echo $((fast * 1000 / slow))
}

if [ "$(uname -m)" = x86_64 ] && command -v valgrind >/dev/null; then
    # shellcheck disable=SC2086
    attribute=$(instructions target/release/tracekit attribute -j 1 --progress never $fixture)
    ingest=$(instructions "$bounds" columns "$work/input.json" -j 1)
    if [ "$bless" = --bless ]; then
        per_mille=$(ratio)
        cat >"$stored" <<TOML
# Written by benchmarks/guard.sh --bless. Instructions under valgrind on x86_64, then how much processor
# time reading takes of what the scalar reader takes, in thousandths, for where there is no valgrind.
attribute_instructions = $attribute
ingest_instructions = $ingest
ingest_per_mille_of_scalar = $per_mille
TOML
        cat "$stored"
        exit 0
    fi
    compare attribute_instructions "$attribute"
    compare ingest_instructions "$ingest"
else
    compare ingest_per_mille_of_scalar "$(ratio)"
fi

if [ "$failed" -ne 0 ]; then
    echo "slower than before by more than $((most_percent - 100)) %: find out why, or run $0 --bless and say so in the commit" >&2
    exit 1
fi
