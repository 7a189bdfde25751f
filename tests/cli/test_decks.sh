#!/bin/sh
# SPDX-License-Identifier: MIT
# test_decks.sh - every deck of input/ is planned and runs for a few steps: as it is where that fits a small machine,
# else with emulated costs.
. "$NAMI_SOURCE/tests/train/lib.sh"

# steps DECK RANKS OVERRIDE...: three steps of the deck on that data
steps() {
    name=$(basename "$1" .ini) deck=$1 ranks=$2
    shift 2
    nami "$ranks" run "$deck" run.directory="run-$name" train.steps=3 train.eval_every=0 train.eval_batches=0 checkpoint.every=0 \
        data.train=text-train.h5 data.valid=text-valid.h5 "$@"
    want 0 $? "$name runs"
    [ "$(losses "run-$name" | grep -c '^step')" = 3 ] || { echo "FAIL $name: not three steps"; failed=1; }
}

# emulated DECK RANKS: two steps of the deck's schedule, batch and model blocks, whose passes take a set time
emulated() {
    name=$(basename "$1" .ini)
    nami "$2" run "$1" run.directory="run-$name" train.steps=2 train.eval_every=0 train.eval_batches=0 checkpoint.every=0 train.backend=emu \
        train.precision=f32 model.family=synthetic model.heads=6 model.tied=yes model.bias=yes model.width=16 model.context=8 model.vocabulary=0 \
        model.image_height=0 model.image_width=0 model.image_channels=0 model.classes=0 data.train= \
        data.valid= synthetic.forward=1ms synthetic.backward_input=1ms synthetic.backward_weight=1ms
    want 0 $? "$name runs with emulated costs"
    [ "$(losses "run-$name" | grep -c '^step')" = 2 ] || { echo "FAIL $name: not two steps"; failed=1; }
}

# fashion NAME: IDX files of 256 noisy 28x28 images of 9 classes, as a set
fashion() {
    printf '\0\0\010\003\0\0\001\0\0\0\0\034\0\0\0\034' >"$1-images"
    printf '\0\0\010\001\0\0\001\0' >"$1-labels"
    LC_ALL=C awk 'BEGIN {
        for (i = 0; i < 256 * 784; i++)
            printf "%c", 1 + int(120 * rand())
    }' >>"$1-images"
    LC_ALL=C awk 'BEGIN { for (i = 0; i < 256; i++) printf "%c", 1 + i % 9 }' >>"$1-labels"
    "$NAMI_PROGRAM" import idx --classes 10 "$1-images" "$1-labels" "$1.h5" >import.out 2>&1 ||
        { cat import.out; exit 1; }
}
fashion images

# the text as sentences, 5 a document
awk '{ print } NR % 5 == 0 { print "" }' text >lines
sh "$NAMI_SOURCE/input/vocabulary.sh" 4000 lines >vocab.txt
"$NAMI_PROGRAM" import --split 0.9 bert-text vocab.txt lines lines >import.out 2>&1 || { cat import.out; exit 1; }

for deck in "$NAMI_SOURCE"/input/*.ini; do
    name=$(basename "$deck" .ini)
    "$NAMI_PROGRAM" plan "$deck" >out 2>&1
    code=$?
    # what is planned for large machines does not fit a small one unless it says what it needs
    planned=' parameter .* activation .* total MiB$'
    [ "$name" != kjv-ashpipe ] || planned='^\[switch\] at 500 steps$' # one table for each layout
    want 0 $code "$name is planned" "$planned"
    "$NAMI_PROGRAM" plan "$deck" run.memory=0.001 >out 2>&1
    want 4 $? "$name in 1 MiB is refused" 'position 0 .* needs .* but a rank may use'
    case $name in
    kjv-quick | kjv-small | llama-small) steps "$deck" 4 ;;
    kjv-bert) steps "$deck" 4 data.train=lines-train.h5 data.valid=lines-valid.h5 ;;
    kjv-long | kjv-pipedream) steps "$deck" 4 ;;
    kjv-ashpipe)
        steps "$deck" 4 switch.at=1
        grep -q '"event":"switch","step":1,' run-kjv-ashpipe/log.jsonl || { echo "FAIL $name does not switch"; failed=1; }
        ;;
    fashion-lenet | fashion-vit)
        nami 2 run "$deck" run.directory="run-$name" data.train=images.h5 data.valid=images.h5 train.steps=9
        want 0 $? "$name runs for two epochs" "^epoch 2  step 8 "
        ;;
    fashion-vgg)
        nami 2 run "$deck" run.directory=run-vgg data.train=images.h5 data.valid=images.h5 train.steps=3
        want 0 $? "$name runs for an epoch" "^epoch 1  step 2 "
        ;;
    wave-32)
        nami 8 run "$deck" run.directory=run-wave pipeline.positions=8 pipeline.microbatches=8 train.batch=8 \
            synthetic.forward=1ms synthetic.backward_input=1ms synthetic.backward_weight=1ms
        want 0 $? "$name runs on 8 positions"
        ;;
    hanayo-* | ashpipe-*) emulated "$deck" 8 ;;
    gpt2-124m) emulated "$deck" 4 ;;
    *)
        echo "FAIL $name: this test does not run it"
        failed=1
        ;;
    esac
done
exit $failed
