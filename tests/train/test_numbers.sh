#!/bin/sh
# SPDX-License-Identifier: MIT
# test_numbers.sh - a restart on a layout that changes results beyond rounding says so once; on others it is silent.
. "$NAMI_SOURCE/tests/train/lib.sh"
said='from here on results are not those of the run before'
deck 8

# go RANKS STEPS ARGUMENT...: on to that step
go() {
    ranks=$1 steps=$2
    shift 2
    nami "$ranks" run deck.ini data.valid= checkpoint.every=2 train.steps="$steps" "$@"
}

# loud WHAT SENTENCE, silent WHAT: what the last restart said
loud() {
    want 0 $? "$1" "$2"
    [ "$(grep -c "$said" out)" = 1 ] || { echo "FAIL $1: no warning in:"; cat out; failed=1; }
}
silent() {
    want 0 $? "$1"
    grep "$said" out && { echo "FAIL $1: a warning"; failed=1; }
}

clip="run.directory=clip train.clip_scope=stage pipeline.schedule=dapple"
# shellcheck disable=SC2086
{
    go 2 2 $clip
    silent "a new run"
    go 2 4 $clip pipeline.schedule=gpipe
    silent "the same cut with another schedule"
    go 3 6 $clip
    loud "another cut" 'layout gives gradients clipped by stages that begin with blocks 0 3 6, but that of the checkpoint gave gradients clipped by stages that begin with blocks 0 [0-9]*$'
    go 3 8 $clip train.clip_scope=all
    loud "another scope" 'layout gives nothing of its own, but that of the checkpoint gave gradients clipped'
}

late="run.directory=late pipeline.schedule=pipedream pipeline.window=4 pipeline.microbatches=2 train.partials=1 train.clip=0 model.tied=no"
# shellcheck disable=SC2086
{
    go 2 4 $late pipeline.positions=2
    go 2 6 $late pipeline.positions=2
    silent "without a flush as before"
    go 3 8 $late pipeline.positions=3
    loud "without a flush on one position more" 'layout gives weights = stash, drained every 4 updates, of stages that begin with blocks 0 3 6, late by [0-9 ]*, but'
}

# a switch in the deck is no surprise, and neither are layouts that change nothing
go 2 2 run.directory=plain pipeline.schedule=dapple pipeline.replicas=2 switch.at='2 steps' switch.schedule=hanayo
silent "up to a switch"
go 2 4 run.directory=plain pipeline.schedule=dapple pipeline.replicas=2 switch.at='2 steps' switch.schedule=hanayo
silent "behind it"
go 1 6 run.directory=plain pipeline.schedule=gpipe
silent "one rank"

# batch norm sees a micro-batch
i=0
while [ $i -lt 16 ]; do
    printf "\\00$((i % 8))"
    tail -c +$((i * 977 + 1)) text | head -c 3072
    i=$((i + 1))
done >images.bin
"$NAMI_PROGRAM" import cifar10 images.bin images.h5 >import.out 2>&1 || { cat import.out; exit 1; }
sed 's/^layers.*/family = chain/; /^width/d; /^heads/d; /^context/d; /^vocabulary/d; /^dropout/d' deck.ini >images.ini
mv images.ini deck.ini
norm="run.directory=norm data.train=images.h5 pipeline.schedule=dapple pipeline.microbatches=4"
chain="conv 4 3 stride 2, norm, relu | conv 4 3 stride 2, norm, relu | global, flatten, linear classes"
# shellcheck disable=SC2086
{
    go 1 2 $norm model.chain="$chain"
    go 2 4 $norm model.chain="$chain"
    silent "batch norm on two positions"
    go 2 6 $norm model.chain="$chain" pipeline.microbatches=2 train.partials=2
    loud "larger micro-batches" 'layout gives batch norm over 4 samples, but that of the checkpoint gave batch norm over 2 samples'
}
exit $failed
