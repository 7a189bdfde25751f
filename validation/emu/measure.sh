#!/bin/sh
# SPDX-License-Identifier: MIT
# measure.sh - run every schedule on the imitated device and set the measured bubble beside the predicted one.
#
#   sh validation/emu/measure.sh RESULTS.tsv [POSITIONS [STAGE_MS [SCHEDULES]]]
#
# for example: sh validation/emu/measure.sh emu.tsv "8 16 32" "100 20" "dapple hanayo:1"
#
# Real ranks, messages and executor; a stage takes STAGE_MS each for F, BI and BW, M = 2 P micro-batches. The
# prediction is nami simulate's with the same times and the delay of a message that the run itself measured (median
# from the end of an action to the start of one that waited for nothing but its message). The second of two steps
# counts. A line is appended for each run; runs that RESULTS.tsv holds already are left out.
#
# NAMI_PROGRAM (./nami) and NAMI_LAUNCH (mpiexec) say how to run.
results=${1:?name a file for the results}
positions=${2:-8 16 32}
times=${3:-100 20}
# NAME:CHUNKS, the stages of a position; of terapipe the token slices
schedules=${4:-gpipe:1 dapple:1 zb-h1:1 zb-h2:1 interleaved:2 hanayo:2 hanayo-paper:2 hanayo-zb:2 zb-v:2 dualpipev:2 hanayo:4 hanayo-zb:4 gems:1 chimera:1 chimera-doubling:1 dualpipe:1 terapipe:4}
program=${NAMI_PROGRAM:-./nami}
launch=${NAMI_LAUNCH:-mpiexec}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# number FILE KEY: a number of a JSON file
number() {
    sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$1" | head -n 1
}

# gaps FILE: "5B2@3 4.1/0.0", the action and its rank, idle milliseconds before it measured and predicted
gaps() {
    sed -n 's/.*"before":"\([^"]*\)","rank":\([0-9]*\),"measured":\([-0-9.e+]*\),"predicted":\([-0-9.e+]*\)}.*/\1 \2 \3 \4/p' "$1" |
        awk '{ printf("%s%s@%d %.1f/%.1f", (NR > 1) ? "; " : "", $1, $2, 1e3 * $3, 1e3 * $4) }'
}

# measure NAME CHUNKS P MS
measure() {
    name=$1 chunks=$2 p=$3 ms=$4 m=$((2 * $3))
    size='' given=$chunks
    case $name in
    hanayo*) size="waves $((chunks / 2))" ;;
    interleaved) size="chunks $chunks" ;;
    terapipe) size="slices $chunks" chunks=1 ;;
    esac
    cat >"$scratch/deck.ini" <<END
[model]
family = synthetic
layers = $((p * chunks))
width = 4
context = 4
[synthetic]
forward = ${ms}ms
backward_input = ${ms}ms
backward_weight = ${ms}ms
[pipeline]
schedule = $name
positions = $p
${size:+${size% *} = ${size#* }}
microbatches = $m
[train]
steps = 2
batch = $m
backend = emu
[run]
directory = $scratch/run
END
    rm -rf "$scratch/run"
    # shellcheck disable=SC2086
    if ! $launch -n "$p" "$program" run "$scratch/deck.ini" >"$scratch/out" 2>&1 </dev/null; then
        echo "$name:$chunks P=$p $ms ms: $(tail -n 1 "$scratch/out")" >&2
        return
    fi
    report=$scratch/run/report.json
    hop=$(number "$report" hop_step_seconds)
    share=$(awk "BEGIN { print $chunks * $ms / 1000 }")
    case $name in
    dualpipe*) apart=--apart ;;
    *) apart= ;;
    esac
    # shellcheck disable=SC2086
    "$program" simulate --schedule "$name" --positions "$p" --microbatches "$m" ${size:+--$size} \
        --tf "$share" --tbi "$share" --tbw "$share" --latency "$hop" $apart --json >"$scratch/predicted.json" || return
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$given" "$p" "$m" "$ms" "$hop" \
        "$(number "$scratch/predicted.json" bubble)" "$(number "$report" bubble_measured)" "$(gaps "$report")" |
        tee -a "$results"
}

for ms in $times; do
    for p in $positions; do
        for s in $schedules; do
            if ! grep -qs "^${s%:*}	${s#*:}	$p	[0-9]*	$ms	" "$results"; then
                measure "${s%:*}" "${s#*:}" "$p" "$ms"
            fi
        done
    done
done
