#!/bin/sh
# SPDX-License-Identifier: MIT
# test_inputs.sh - bad input ends with one clear sentence and the documented exit code, and harms nothing.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 4

# refused CODE SENTENCE RANKS ASSIGNMENT...: nami run ends so, and leaves no checkpoint
refused() {
    code=$1 sentence=$2 ranks=$3
    shift 3
    rm -rf run
    nami "$ranks" run deck.ini "$@"
    want "$code" $? "$*" "$sentence"
    [ -z "$(ls run/checkpoints 2>/dev/null)" ] || { echo "FAIL $*: a checkpoint is there"; failed=1; }
}

refused 2 "unknown key 'step' in .train.; did you mean 'steps'" 2 train.step=3
refused 2 "unknown section" 2 trian.steps=3
refused 2 "train.steps = 'many': expected a whole number" 2 train.steps=many
refused 2 "train.steps = '0': expected" 2 train.steps=0
refused 2 "train.precision = 'f16': expected" 2 train.precision=f16
refused 2 "expected section.key=value" 2 steps
refused 2 "model.width\|width = 33" 2 model.width=33
refused 2 "did you mean\|unknown schedule" 2 pipeline.schedule=hanayou
refused 2 "betas" 2 train.betas=2
refused 2 "missing.h5" 2 data.train=missing.h5
refused 2 "data.train is not set" 2 data.train=
refused 2 "text is not a whole HDF5 file" 2 data.train=text
refused 4 "3 ranks\|need 2 ranks\|there are 3" 3 pipeline.positions=2
refused 4 "multiple\|divi\|shared" 2 train.batch=7
refused 4 "multiple\|divi\|shared" 2 pipeline.microbatches=3 pipeline.replicas=2 pipeline.positions=1
refused 4 "8 blocks" 4 pipeline.waves=2
refused 4 "position 0 .* needs .* but a rank may use" 2 run.memory=0.0001
refused 5 "not a finite number" 2 train.lr=1e6 train.clip=0 train.warmup=0 train.optimizer=sgd train.steps=20
refused 6 "nothing.h5" 2 train.init=nothing.h5

nami 2 run nothing.ini
want 2 $? "no deck" "nothing.ini"
head -c 3000 /dev/urandom >noise.ini
nami 2 run noise.ini
want 2 $? "noise as a deck"

# truncated, noisy and foreign data sets
size=$(wc -c <text-train.h5)
head -c $((size / 2)) text-train.h5 >half.h5
refused 2 "half.h5" 2 data.train=half.h5
head -c "$size" /dev/urandom >noise.h5
refused 2 "noise.h5" 2 data.train=noise.h5
: >empty.h5
refused 2 "empty.h5" 2 data.train=empty.h5

# checkpoints: another model, seed or data set; broken ones
rm -rf run
nami 2 run deck.ini
want 0 $? "four steps"
nami 2 run deck.ini
want 76 $? "all steps done" "nothing to do: all 4 steps are done"
nami 2 run deck.ini --restart no
want 2 $? "--restart no" "is not empty"
nami 2 run deck.ini train.steps=6 model.heads=4
want 6 $? "another model" "model.heads is 4, but 2 in the checkpoint"
nami 2 run deck.ini train.steps=6 train.seed=9
want 6 $? "another seed" "train.seed is 9, but 1 in the checkpoint"
nami 2 run deck.ini train.steps=6 data.train=text-valid.h5
want 6 $? "another data set" "data.train is another data set"
cp -r run broken
for checkpoint in broken/checkpoints/step-*.h5; do
    printf 'XXXXXXXX' | dd of="$checkpoint" bs=1 seek=$(($(wc -c <"$checkpoint") / 2)) conv=notrunc 2>/dev/null
done
nami 2 run deck.ini train.steps=6 run.directory=broken
want 6 $? "broken checkpoint" "none of the .* checkpoints in broken/checkpoints is valid"
nami 2 run deck.ini train.steps=6
want 0 $? "two steps more"
exit $failed
