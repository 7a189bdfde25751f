#!/bin/sh
# SPDX-License-Identifier: MIT
# vgg.sh - train a small VGG on Fashion-MNIST, synchronously and by AshPipe, and keep top-1 after each epoch.
#
#   sh validation/async/vgg.sh RESULTS.tsv
#
# From a directory with fashion-train.h5 and fashion-test.h5 (see input/fashion-vgg.ini). RESULTS.tsv gets a line for each
# evaluation: arm, update, validation loss in nats an image, top-1. NAMI_PROGRAM (./nami) and NAMI_LAUNCH (mpiexec) say how to run.
results=${1:?name a file for the results}
deck=$(cd "$(dirname "$0")/../../input" && pwd)/fashion-vgg.ini || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# train ARM OVERRIDE...: 8 epochs on 4 ranks, in f32
train() {
    arm=$1
    shift
    rm -rf "$scratch/run"
    ${NAMI_LAUNCH:-mpiexec} -n 4 "${NAMI_PROGRAM:-./nami}" run "$deck" "run.directory=$scratch/run" train.steps=3752 \
        train.warmup=700 train.precision=f32 checkpoint.best=no "$@" >&2 </dev/null || exit 1
    sed -n 's/^{"event":"eval","step":\([0-9]*\),"loss":\([-+.e0-9]*\),.*"top1":\([.e0-9]*\),.*/\1\t\2\t\3/p' \
        "$scratch/run/log.jsonl" | sed "s/^/$arm\t/" >>"$results"
}

: >"$results"
train sync pipeline.positions=1 pipeline.replicas=4
train ashpipe pipeline.schedule=ashpipe pipeline.positions=0 pipeline.stage_replicas=2-1-1 pipeline.microbatches=1 \
    pipeline.window=100
