#!/bin/sh
# SPDX-License-Identifier: MIT
# test_compare.sh - nami compare: every schedule against one rank; and it does object when layouts must part.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 10

# equal RANKS ASSIGNMENT...
equal() {
    ranks=$1
    shift
    nami "$ranks" compare deck.ini --steps 3 "$@"
    want 0 $? "$ranks ranks $*" "^equal: 3 steps"
}

equal 1 pipeline.schedule=gpipe
equal 2 pipeline.schedule=dapple train.precision=bf16 pipeline.recompute=yes
equal 2 pipeline.schedule=interleaved train.optimizer=sgd
equal 3 pipeline.schedule=gpipe model.tied=no
equal 4 pipeline.schedule=hanayo
equal 2 pipeline.schedule=hanayo pipeline.waves=2 pipeline.recompute=yes
equal 4 pipeline.schedule=hanayo pipeline.replicas=2
equal 4 pipeline.schedule=gpipe pipeline.replicas=4
equal 2 pipeline.schedule=dapple train.backend=ref

# six partial sums on two replicas: three are no part of the tree over six, so only rounding is promised
nami 2 compare deck.ini --steps 3 pipeline.schedule=gpipe pipeline.replicas=2 pipeline.microbatches=6 train.batch=12 \
    train.partials=6
want 0 $? "two replicas of six partial sums" "^no equal bits are promised"

# two copies of the weights add the micro-batches that each ran
nami 4 compare deck.ini --steps 3 pipeline.schedule=chimera train.precision=f32
want 0 $? "two copies" "^no equal bits are promised: 2 copies"
exit $failed
