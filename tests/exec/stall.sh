#!/bin/sh
# SPDX-License-Identifier: MIT
# stall.sh - a rank that stops ends the run with exit code 7 and one sentence that names who waits for what of whom;
# a rank that is killed ends the run at all.
run="$NAMI_BUILD/tests/exec/stalled"
[ -x "$run" ] || exit 77
NAMI_EXPECT_RANKS=3
export NAMI_EXPECT_RANKS
failed=0

timeout 60 $NAMI_LAUNCH -n 3 "$run" STOP >"$NAMI_SCRATCH/stop" 2>&1
code=$?
if [ $code != 7 ]; then
    echo "a stopped rank: exit code $code, expected 7"
    failed=1
fi
# Which of the two depends on the MPI library: Open MPI ends a send of this size only when the other side takes part.
if ! grep -E 'rank 1 \(position 1\) waits for (RECV_B of stage 1 micro-batch 0 from|SEND_F of stage 1 micro-batch 0 to) rank 2' \
    "$NAMI_SCRATCH/stop"; then
    echo "the sentence is missing:"
    cat "$NAMI_SCRATCH/stop"
    failed=1
fi

timeout 60 $NAMI_LAUNCH -n 3 "$run" STOP images >"$NAMI_SCRATCH/share" 2>&1
code=$?
if [ $code != 7 ]; then
    echo "a stopped replica: exit code $code, expected 7"
    failed=1
fi
if ! grep -E 'rank [01] \(position 0\) waits for the batch statistics of 0F[0-9]+ from its 3 replicas, for 2 s' "$NAMI_SCRATCH/share"; then
    echo "the sentence is missing:"
    cat "$NAMI_SCRATCH/share"
    failed=1
fi

timeout 60 $NAMI_LAUNCH -n 3 "$run" KILL >"$NAMI_SCRATCH/kill" 2>&1
code=$?
if [ $code = 0 ] || [ $code = 124 ]; then
    echo "a killed rank: exit code $code"
    cat "$NAMI_SCRATCH/kill"
    failed=1
fi
exit $failed
