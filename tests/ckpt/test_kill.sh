#!/bin/sh
# SPDX-License-Identifier: MIT
# test_kill.sh - killed at a random moment of a save, no checkpoint that was reported as saved is lost or wrong.
#
# 6 kills; NAMI_TEST_LONG=1 makes it 200. Each kill hits one rank; the next start has another number of ranks.
saver=$NAMI_BUILD/tests/ckpt/saver
[ -x "$saver" ] || exit 77
kills=6
[ "${NAMI_TEST_LONG-}" ] && kills=200
seed=${NAMI_TEST_SEED-$$}
echo "seed $seed"
directory=$NAMI_SCRATCH/checkpoints
last=0 early=0 broken=0 leftover=0

awk -v seed="$seed" -v kills=$kills 'BEGIN {
    srand(seed)
    for (i = 0; i < kills; i++)
        print int(1 + 3 * rand()), int(1 + 3 * rand()), int(3 * rand()), int(1000 + 250000 * rand())
}' >"$NAMI_SCRATCH/plan"

while read -r savers loaders victim moment; do
    timeout 100 $NAMI_LAUNCH -n $savers "$saver" save "$directory" $((last + 1)) $victim $moment \
        >"$NAMI_SCRATCH/out" 2>"$NAMI_SCRATCH/err" </dev/null
    code=$?
    case $code in 0 | 3 | 6 | 7 | 70 | 124) echo "FAIL: the saver ended with $code"; cat "$NAMI_SCRATCH/err"; exit 1 ;; esac
    reported=$(grep '^[0-9][0-9]*$' "$NAMI_SCRATCH/out" | tail -n 1)
    [ "$reported" ] || { reported=$last; early=$((early + 1)); }
    ls "$directory"/.tmp-step-* >/dev/null 2>&1 && leftover=$((leftover + 1))
    found=$(timeout 100 $NAMI_LAUNCH -n $loaders "$saver" load "$directory" $reported 2>"$NAMI_SCRATCH/err" </dev/null) || {
        echo "FAIL: saved by $savers ranks, rank $victim killed after $moment us, loaded by $loaders:"
        cat "$NAMI_SCRATCH/err"
        exit 1
    }
    grep -q 'is not used' "$NAMI_SCRATCH/err" && { broken=$((broken + 1)); cat "$NAMI_SCRATCH/err"; }
    last=$found
done <"$NAMI_SCRATCH/plan"
echo "$kills kills: $last steps saved, $leftover in the middle of a file, $early before the first save, $broken broken files"
[ $broken = 0 ] # a rename is never seen before the file is whole
