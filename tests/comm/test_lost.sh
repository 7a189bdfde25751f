#!/bin/sh
# SPDX-License-Identifier: MIT
# test_lost.sh - failures end with one sentence and the documented exit code, and soon.
lost=$NAMI_BUILD/tests/comm/lost
[ -x "$lost" ] || exit 77
failed=0

# expect RANKS HOW CODE SENTENCE: the sentence is there exactly once
expect()
{
    timeout 60 $NAMI_LAUNCH -n $1 "$lost" $2 >"$NAMI_SCRATCH/out" 2>&1
    code=$?
    times=$(grep -c -- "$4" "$NAMI_SCRATCH/out")
    [ $code = $3 ] && [ $times = 1 ] && { echo "ok   $2: $4"; return; }
    echo "FAIL $2: exit $code, expected $3; sentence $times times, expected once:"
    sed 's/^/     /' "$NAMI_SCRATCH/out"
    failed=1
}

expect 3 agree 4 'nami\[0\]: error: rank one cannot do this'
expect 3 miss-1 7 "phase 'the test': rank 0 waited 1 s in a barrier for rank 1$"
expect 3 miss-0 7 "phase 'the test': rank [12] waited 1 s in a barrier, and rank 0 did not answer"
expect 2 short 70 'a message of 10 bytes came from rank 0 with tag 5 where 100 bytes were expected'
expect 2 long 70 'MPI reports: .*runcate'
expect 1 peer 70 'peer >= 0 && peer < c->size. does not hold'

# Late but not too late is no failure; nor is a limit that was extended.
for how in late extend; do
    timeout 60 $NAMI_LAUNCH -n 3 "$lost" $how || { echo "FAIL $how: exit $?"; failed=1; }
done

# Started by the launcher of another MPI: each process is alone.
for variable in PMI_SIZE OMPI_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS; do
    said=$(env -u PMI_RANK -u PMI_FD $variable=4 "$lost" 2>&1)
    code=$?
    case $code$said in
    3*'srun started 4 processes ('$variable')'*'--mpi=TYPE'* | 3*'launcher started 4 processes ('$variable')'*)
        echo "ok   $variable" ;;
    *) echo "FAIL $variable: exit $code: $said"; failed=1 ;;
    esac
done
exit $failed
