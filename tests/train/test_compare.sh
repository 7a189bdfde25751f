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
equal 4 pipeline.schedule=hanayo pipeline.replicas=2 pipeline.zero=1
equal 4 pipeline.schedule=gpipe pipeline.replicas=4
equal 2 pipeline.schedule=dapple train.backend=ref

# six partial sums on two replicas: three are no part of the tree over six, so only rounding is promised
nami 2 compare deck.ini --steps 3 pipeline.schedule=gpipe pipeline.replicas=2 pipeline.microbatches=6 train.batch=12 \
    train.partials=6
want 0 $? "two replicas of six partial sums" "^no equal bits are promised"

# two copies of the weights add the micro-batches that each ran
nami 4 compare deck.ini --steps 3 pipeline.schedule=chimera train.precision=f32
want 0 $? "two copies" "^no equal bits are promised: 2 copies"
# samples split over replicas, and a layout that changes on the way
nami 3 compare deck.ini --steps 3 pipeline.schedule=dapple pipeline.split=sample pipeline.stage_replicas=2-1 train.partials=0
want 0 $? "samples split over two ranks" "^no equal bits are promised: replicas add"
equal 2 pipeline.schedule=gpipe switch.at=2 switch.schedule=hanayo

# a layout behind a switch that promises less; one that is not reached says nothing
nami 4 compare deck.ini --steps 4 pipeline.schedule=dapple pipeline.replicas=2 train.partials=2 switch.at=2 switch.split=sample \
    switch.replicas=2
want 0 $? "samples split behind a switch" "^no equal bits are promised: replicas add"
nami 4 compare deck.ini --steps 4 pipeline.schedule=dapple pipeline.replicas=2 train.partials=0 switch.at=2 switch.replicas=4
want 0 $? "more sums behind a switch" "^no equal bits are promised: \[switch\] makes 4 partial gradient sums"
equal 2 pipeline.schedule=gpipe switch.at=200 switch.schedule=chimera train.partials=4

# the norm of a stage is another one where there is only one stage
nami 2 compare deck.ini pipeline.schedule=dapple train.clip_scope=stage
want 4 $? "norms of stages" "one rank has only one stage"
equal 4 pipeline.schedule=gpipe pipeline.replicas=4 train.clip_scope=stage pipeline.zero=1 model.vocabulary=6000

# late weights part by design
nami 2 compare deck.ini pipeline.schedule=pipedream train.clip=0 model.tied=no train.partials=0
want 4 $? "without a flush" "only schedules with a flush can be compared"
nami 2 compare deck.ini pipeline.schedule=dapple switch.at=50 switch.weights=newest train.clip=0 model.tied=no train.partials=0
want 4 $? "a switch to none" "only schedules with a flush can be compared"
exit $failed
