#!/bin/sh
# SPDX-License-Identifier: MIT
# test_advise.sh - advice from the command line: its deck is planned as it is, refusals, JSON.
. "$NAMI_SOURCE/tests/cli/lib.sh"

rest=$NAMI_SOURCE/input/gpt2-124m.ini
costs='--flops 1e12 --bandwidth 1e10 --top 3'
awk '/^\[/ { skip = $0 == "[pipeline]" } !skip' "$rest" >rest.ini

# memory in bytes of a rank: plenty, and too little for one rank to hold the model
for memory in 16e9 1.6e9; do
    expect 0 'schedule = ' plan --advise "$rest" --ranks 8 --memory $memory $costs
    sed -n '/^\[pipeline\]$/,$p' out >fragment.ini
    cat rest.ini fragment.ini >deck.ini
    schedule=$(sed -n 's/^schedule = //p' fragment.ini)
    expect 0 "schedule  $schedule:" plan deck.ini --ranks 8 \
        run.memory="$(awk "BEGIN { printf \"%.9f\", $memory / 1024 ^ 3 }")"
done
grep -q '^positions = 1$' fragment.ini && { echo "a whole model in 1.6 GB?"; failed=1; }
expect 0 'do not fit into a rank; the first: ' plan --advise "$rest" --ranks 8 --memory 1.6e9 $costs
expect 0 'zero = 1' plan --advise "$rest" --ranks 8 --memory 1.6e9 $costs pipeline.zero=1
expect 0 'schedule = ' plan --advise "$rest" --ranks 8 --memory 1.6e9 $costs
grep -q '^zero' out && { echo "states in slices without being asked?"; failed=1; }
expect 0 '"plain_wins":' plan --advise "$rest" --ranks 8 --memory 1.6e9 $costs --json
expect 0 '"fragment":"[pipeline]\nschedule = ' plan --advise "$rest" --ranks 8 --memory 1.6e9 $costs --json
expect 4 'no layout fits: the smallest needs' plan --advise "$rest" --ranks 8 --memory 1e6 $costs
expect 2 '--json is set, but does nothing without --advise; remove it' plan "$rest" --json
expect 0 'costs     ' plan --advise "$NAMI_SOURCE/input/kjv-small.ini" # measures the rate
expect 0 'matrix peak measured now' plan --advise "$NAMI_SOURCE/input/kjv-small.ini"
exit $failed
