#!/bin/sh
# SPDX-License-Identifier: MIT
# test_tools.sh - HDF5's own tools read a checkpoint: the arrays, bit for bit, and the attributes.
saver=$NAMI_BUILD/tests/ckpt/saver
[ -x "$saver" ] || exit 77
command -v h5dump >/dev/null || { echo "skipped: no h5dump (package hdf5-tools)"; exit 77; }
cd "$NAMI_SCRATCH" || exit 99
$NAMI_LAUNCH -n 3 "$saver" once "$NAMI_SCRATCH" 12 </dev/null || exit 1
"$saver" raw 12 >expected || exit 1
file=step-00000012.h5
h5dump -d /parameters/token.weight -b LE -o found $file >shape || exit 1
cmp expected found || exit 1
grep -q 'H5T_IEEE_F32LE' shape && grep -q 'SIMPLE { ( 32, 7 )' shape || { cat shape; exit 1; }
h5dump -a /step $file | grep -q '(0): 12$' || { echo "FAIL: attribute step"; exit 1; }
h5dump -a /deck $file | grep -q 'steps = 12' || { echo "FAIL: attribute deck"; exit 1; }
h5dump -d /optimizer/v/token.weight $file | grep -q '( 4, 8, 7 )' || { echo "FAIL: optimizer/v"; exit 1; }
