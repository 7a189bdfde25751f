#!/bin/sh
# SPDX-License-Identifier: MIT
# bubble.sh - the bubble of schedules without a flush while they are full, on the imitated device.
#
#   sh validation/async/bubble.sh RESULTS.tsv [CASES]
#
# A case is SCHEDULE:WEIGHTS:P:MS:UPDATES, for example "pipedream:stash:8:100:40 hanayo:stash:8:100:40". Real ranks,
# messages and executor; a position takes MS each for F, BI and BW of a unit, one unit an update. The second of two
# windows of UPDATES counts. Predicted is nami simulate's with the same times and the delay of a message that the run
# itself measured; ideal is that without a delay. One line a case: schedule, weights, P, MS, UPDATES, hop in seconds,
# steady bubble ideal, predicted, measured, whole bubble predicted, measured, smallest and largest delay of stage 0's
# weights when full, measured. Cases that RESULTS.tsv holds are left out.
#
# NAMI_PROGRAM (./nami) and NAMI_LAUNCH (mpiexec) say how to run.
results=${1:?name a file for the results}
cases=${2:-pipedream:stash:8:100:40 pipedream:stash:16:100:40 hanayo:stash:8:100:40 pipedream:stash:8:33:120 pipedream:stash:16:33:120}
program=${NAMI_PROGRAM:-./nami}
launch=${NAMI_LAUNCH:-mpiexec}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# number FILE KEY: a number of a JSON file
number() {
    sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$1" | head -n 1
}

# predict NAME WEIGHTS P MS UPDATES LATENCY
predict() {
    share=$(awk "BEGIN { print $4 / 1000 }")
    "$program" simulate --schedule "$1" --weights "$2" --positions "$3" --microbatches "$5" --per-update 1 --tf "$share" --tbi "$share" \
        --tbw "$share" --latency "$6" --json >"$scratch/predicted.json"
}

# measure NAME WEIGHTS P MS UPDATES
measure() {
    chunks=1
    [ "$1" = hanayo ] && chunks=2
    cat >"$scratch/deck.ini" <<END
[model]
family = synthetic
layers = $(($3 * chunks))
width = 4
context = 4
[synthetic]
forward = $(awk "BEGIN { print $4 / $chunks }")ms
backward_input = $(awk "BEGIN { print $4 / $chunks }")ms
backward_weight = $(awk "BEGIN { print $4 / $chunks }")ms
[pipeline]
schedule = $1
weights = $2
positions = $3
microbatches = 1
window = $5
[train]
steps = $((2 * $5))
batch = 1
clip = 0
backend = emu
[checkpoint]
every = 0
[run]
directory = $scratch/run
END
    rm -rf "$scratch/run"
    # shellcheck disable=SC2086
    if ! $launch -n "$3" "$program" run "$scratch/deck.ini" >"$scratch/out" 2>&1 </dev/null; then
        echo "$1 $2 P=$3 $4 ms: $(tail -n 1 "$scratch/out")" >&2
        return
    fi
    report=$scratch/run/report.json
    hop=$(number "$report" hop_step_seconds)
    predict "$@" 0 || return
    ideal=$(number "$scratch/predicted.json" steady_bubble)
    predict "$@" "$hop" || return
    late=$(sed -n 's/.*"stage":0,.*"steady":{"forward":{"measured":{"units":[0-9]*,"least":\([0-9]*\),"mean":[^,]*,"most":\([0-9]*\)}.*/\1\t\2/p' "$report")
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@" "$hop" "$ideal" \
        "$(number "$scratch/predicted.json" steady_bubble)" "$(number "$report" steady_bubble_measured)" \
        "$(number "$scratch/predicted.json" bubble)" "$(number "$report" bubble_measured)" "$late" | tee -a "$results"
}

for case in $cases; do
    if ! grep -qs "^$(echo "$case" | tr : '\t')	" "$results"; then
        # shellcheck disable=SC2046
        measure $(echo "$case" | tr : ' ')
    fi
done
