#!/bin/sh
# SPDX-License-Identifier: MIT
# test_decks.sh - every deck of input/ is planned; those that fit a small machine also run for a few steps.
. "$NAMI_SOURCE/tests/train/lib.sh"

# steps DECK RANKS DATA: three steps of the deck on that data
steps() {
    name=$(basename "$1" .ini)
    nami "$2" run "$1" run.directory="run-$name" train.steps=3 train.eval_every=0 checkpoint.every=0 \
        data.train=text-train.h5 data.valid=text-valid.h5
    want 0 $? "$name runs"
    [ "$(losses "run-$name" | grep -c '^step')" = 3 ] || { echo "FAIL $name: not three steps"; failed=1; }
}

for deck in "$NAMI_SOURCE"/input/*.ini; do
    name=$(basename "$deck" .ini)
    "$NAMI_PROGRAM" plan "$deck" >out 2>&1
    code=$?
    # what is planned for large machines does not fit a small one unless it says what it needs
    want 0 $code "$name is planned" 'total MiB$'
    "$NAMI_PROGRAM" plan "$deck" run.memory=0.001 >out 2>&1
    want 4 $? "$name in 1 MiB is refused" 'position 0 .* needs .* but a rank may use'
    case $name in
    kjv-quick | kjv-small) steps "$deck" 4 ;;
    kjv-long) steps "$deck" 4 ;;
    wave-32)
        nami 8 run "$deck" run.directory=run-wave pipeline.positions=8 pipeline.microbatches=8 train.batch=8 \
            synthetic.forward=1ms synthetic.backward_input=1ms synthetic.backward_weight=1ms
        want 0 $? "$name runs on 8 positions"
        ;;
    esac
done
exit $failed
