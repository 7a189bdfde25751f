#!/bin/sh
# SPDX-License-Identifier: MIT
# test_stall.sh - a rank that stands still or dies ends the run: exit 7 and who waits for which action of whom.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 1000000000

# halt SIGNAL SECONDS ASSIGNMENT...: start 3 ranks, after SECONDS send the signal to the second one; it must end with 7 and a cause
halt() {
    rm -rf run
    signal=$1 seconds=$2
    shift 2
    $NAMI_LAUNCH -n 3 "$NAMI_PROGRAM" run deck.ini pipeline.schedule=gpipe run.stall_seconds=3 "$@" >out 2>&1 </dev/null &
    launcher=$!
    for _ in $(seq 600); do
        grep -q '"step":2[0-9],' run/log.jsonl 2>/dev/null && break
        sleep 0.05
    done
    sleep "$seconds"
    victim=$(rank_of $launcher 2)
    start=$(date +%s)
    kill -"$signal" "$victim"
    wait $launcher
    want 7 $? "SIG$signal of one rank $*"
    took=$(($(date +%s) - start))
    [ $took -le 60 ] || { echo "FAIL SIG$signal: $took s"; failed=1; }
    grep -Eq "rank [0-9] \(position [0-9]\) waits for .*|phase '.*': rank 0 waited 3 s .* for rank 1" out ||
        { echo "FAIL no cause in:"; cat out; failed=1; }
    [ "$signal" = STOP ] || grep -q "process $victim) was killed by signal" out ||
        { echo "FAIL the guard said nothing:"; cat out; failed=1; }
    newest run | grep -q step- || { echo "FAIL no checkpoint is left"; failed=1; }
}

halt STOP 0
halt KILL 0
halt SEGV 0.1
for seconds in 0.1 0.2 0.3; do
    halt KILL $seconds checkpoint.every=1
done
exit $failed
