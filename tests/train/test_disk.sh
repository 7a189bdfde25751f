#!/bin/sh
# SPDX-License-Identifier: MIT
# test_disk.sh - no room for a checkpoint: exit 3 with a sentence, the older checkpoints stay, and the run resumes.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 40
# large enough that a limit of its size lets MPI make its shared memory
cat >>deck.ini <<END
[train]
rate_steps = 40
END
sed -i 's/^width = .*/width = 160/' deck.ini
nami 2 run deck.ini run.directory=whole
want 0 $? "uninterrupted"
losses whole | grep ^step >whole.losses
nami 2 run deck.ini train.steps=10
want 0 $? "ten steps"
size=$(wc -c <"$(newest run)")
before=$(newest run)

# a file may have at most three quarters of a checkpoint's size, in blocks of 512 bytes
(
    ulimit -f $((size / 512 * 3 / 4))
    nami 2 run deck.ini
    echo $? >code
)
want 3 "$(cat code)" "file size limit" "File too large"
[ -e "$before" ] || { echo "FAIL $before is gone"; failed=1; }
[ "$(ls run/checkpoints | wc -l)" = "$(ls run/checkpoints | grep -c '^step-[0-9]*\.h5$')" ] ||
    { echo "FAIL something is left in:"; ls run/checkpoints; failed=1; }
nami 2 run deck.ini
want 0 $? "with room again"
losses run | grep ^step >run.losses
same whole.losses run.losses "losses"

# a full disk, where a small file system can be mounted
mkdir small
if mount -t tmpfs -o size=$((size * 3 / 2)) none small 2>/dev/null; then
    nami 2 run deck.ini run.directory=small/run checkpoint.keep=1
    code=$?
    want 3 $code "full disk" "No space left"
    ls small/run/checkpoints
    umount small
else
    echo "note: tmpfs cannot be mounted here"
fi
exit $failed
