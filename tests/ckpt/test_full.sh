#!/bin/sh
# SPDX-License-Identifier: MIT
# test_full.sh - a full disk: one sentence, exit code 3, no temporary file, and the older checkpoints are whole.
saver=$NAMI_BUILD/tests/ckpt/saver
[ -x "$saver" ] || exit 77
disk=$NAMI_SCRATCH/disk
mkdir -p "$disk"

if [ "$1" != inside ]; then
    unshare -rm true 2>/dev/null || unshare -m true 2>/dev/null || { echo "skipped: no mount namespace here"; exit 77; }
    flags=-m
    [ "$(id -u)" = 0 ] || flags=-rm
    unshare $flags sh "$0" inside
    exit $?
fi

# room for two checkpoints of 0.8 MB but not for a third beside them
mount -t tmpfs -o size=2m none "$disk" 2>/dev/null || { echo "skipped: tmpfs cannot be mounted here"; exit 77; }
for ranks in 1 3; do
    timeout 60 $NAMI_LAUNCH -n $ranks "$saver" save "$disk/$ranks" 1 0 100000000 >"$NAMI_SCRATCH/out" 2>&1 </dev/null
    code=$?
    [ $code = 3 ] || { echo "FAIL: $ranks ranks: exit $code, expected 3"; cat "$NAMI_SCRATCH/out"; exit 1; }
    [ "$(grep -c 'error: .*No space left on device' "$NAMI_SCRATCH/out")" = 1 ] || { cat "$NAMI_SCRATCH/out"; exit 1; }
    ls -A "$disk/$ranks" | tr '\n' ' ' | grep -qx 'step-00000001.h5 step-00000002.h5 ' || { ls -lA "$disk/$ranks"; exit 1; }
    found=$(timeout 60 $NAMI_LAUNCH -n 2 "$saver" load "$disk/$ranks" 2 </dev/null) || exit 1
    echo "$ranks ranks: $(grep error: "$NAMI_SCRATCH/out"); step $found is there"
    rm -r "${disk:?}/$ranks"
done
