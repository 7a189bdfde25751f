#!/bin/sh
# SPDX-License-Identifier: MIT
# test_runs.sh - nami export writes what was trained, and runs start from it on any number of ranks with the same bits.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 3
nami 2 run deck.ini pipeline.positions=2
want 0 $? "3 steps"
nami 1 export run/checkpoints/step-00000003.h5 a.safetensors
want 0 $? "export" "a.safetensors: .* arrays of family gpt"
nami 1 export run/checkpoints/step-00000003.h5 own.safetensors --layout nanogpt
want 0 $? "export in nanoGPT's layout"
cmp -s a.safetensors own.safetensors && { echo "FAIL both layouts are the same"; failed=1; }
nami 1 export run/checkpoints/step-00000003.h5 half.safetensors --dtype bf16
want 0 $? "export as bf16"
[ "$(wc -c <half.safetensors)" -lt "$(($(wc -c <a.safetensors) * 6 / 10))" ] || { ls -l; echo "FAIL bf16 is not short"; failed=1; }

# again DIRECTORY RANKS POSITIONS INIT: one step that changes nothing, exported
again() {
    replicas=1
    [ "$2" = "$3" ] || replicas=2
    nami "$2" run deck.ini pipeline.positions="$3" pipeline.replicas=$replicas run.directory="$1" train.init="$4" train.steps=1 train.lr=0 \
        train.min_lr=0 train.decay=0
    want 0 $? "$2 ranks, $3 positions from $4"
    nami 1 export "$1/checkpoints/step-00000001.h5" "$1.safetensors"
    same "$1.safetensors" a.safetensors "parameters of $1"
}
again checkpoint 1 1 run/checkpoints/step-00000003.h5
again one 1 1 a.safetensors
again four 4 2 own.safetensors
again three 3 3 a.safetensors

# what does not fit, and what is damaged, ends the run with one sentence on any number of ranks
nami 2 run deck.ini pipeline.positions=2 run.directory=x1 train.init=a.safetensors model.layers=4
want 2 $? "a missing layer" "parameter transformer.h.3.ln_1.weight of the model is missing"
nami 2 run deck.ini pipeline.positions=2 run.directory=x2 train.init=a.safetensors model.layers=2
want 2 $? "a layer too many" "the model has no parameter of this name"
head -c 5000 a.safetensors >cut.safetensors
nami 3 run deck.ini pipeline.positions=3 run.directory=x3 train.init=cut.safetensors
want 2 $? "half a file" "cut.safetensors"
nami 2 run deck.ini pipeline.positions=2 run.directory=x4 train.init=none.pt
want 2 $? "no file" "none.pt cannot be opened"
nami 1 export a.safetensors b.safetensors
want 6 $? "export of something else than a checkpoint" "a.safetensors"
nami 1 export run/checkpoints/step-00000003.h5 no/such/b.safetensors
want 3 $? "export to nowhere" "cannot be written"
cp run/checkpoints/step-00000003.h5 kept
for other in run/checkpoints/step-00000003.h5 deck.ini run; do
    nami 1 export run/checkpoints/step-00000003.h5 "$other"
    want 2 $? "export over $other" "exists and is not a safetensors file"
done
same run/checkpoints/step-00000003.h5 kept "the checkpoint behind these"
nami 1 export run/checkpoints/step-00000003.h5 own.safetensors
want 0 $? "export over an older one"
[ ! -e b.safetensors ] || { echo "FAIL b.safetensors was written"; failed=1; }

# image models, with statistics: a step from the checkpoint and from its export are the same
i=0
while [ $i -lt 16 ]; do
    printf "\\00$((i % 8))"
    tail -c +$((i * 977 + 1)) text | head -c 3072
    i=$((i + 1))
done >images.bin
"$NAMI_PROGRAM" import cifar10 images.bin images.h5 >import.out 2>&1 || { cat import.out; exit 1; }
sed 's/^layers.*/family = resnet20/; /^width/d; /^heads/d; /^context/d; /^vocabulary/d; /^dropout/d' deck.ini >images.ini
images="images.ini data.train=images.h5 data.valid=images.h5 pipeline.schedule=dapple"
# shellcheck disable=SC2086
nami 1 run $images run.directory=i1 train.steps=2
want 0 $? "2 steps of resnet20"
nami 1 export i1/checkpoints/step-00000002.h5 i1.safetensors
want 0 $? "export of resnet20" "arrays of family resnet20"
nami 1 export i1/checkpoints/step-00000002.h5 same.safetensors --layout torchvision
same i1.safetensors same.safetensors "resnet20 in its one layout"
nami 1 export i1/checkpoints/step-00000002.h5 other.safetensors --layout nanogpt
want 2 $? "resnet20 in a layout of GPT-2" "family resnet20, which has torchvision"
# shellcheck disable=SC2086
nami 1 run $images run.directory=i2 train.steps=1 train.init=i1/checkpoints/step-00000002.h5
nami 1 export i2/checkpoints/step-00000001.h5 i2.safetensors
# shellcheck disable=SC2086
nami 2 run $images run.directory=i3 train.steps=1 pipeline.positions=2 train.init=i1.safetensors
want 0 $? "resnet20 from its export, 2 positions"
nami 1 export i3/checkpoints/step-00000001.h5 i3.safetensors
same i2.safetensors i3.safetensors "resnet20 after a step from a checkpoint and from its export"
cmp -s i1.safetensors i2.safetensors && { echo "FAIL the step changed nothing"; failed=1; }

# the other transformers, on two positions and on one
awk '{ print $3, "went to mow " $7 "."; if (NR % 4 == 0) print "" }' text | head -n 400 >lines
sh "$NAMI_SOURCE/input/vocabulary.sh" 60 lines >vocab.txt || failed=1
"$NAMI_PROGRAM" import bert-text vocab.txt lines lines.h5 >import.out 2>&1 || { cat import.out; exit 1; }
grep -v '^vocabulary' deck.ini >bert.ini
for family in llama bert vit; do
    case $family in
    llama) as="deck.ini model.family=llama model.kv_heads=1" other=nanogpt ;;
    bert) as="bert.ini model.family=bert data.train=lines.h5 data.valid=" other=torchvision ;;
    vit) as="$images model.family=vit model.layers=3 model.width=32 model.heads=2 model.patch=8" other=nanogpt ;;
    esac
    # shellcheck disable=SC2086
    nami 2 run $as run.directory=$family pipeline.schedule=hanayo pipeline.positions=2 train.steps=2
    want 0 $? "2 steps of $family"
    nami 1 export $family/checkpoints/step-00000002.h5 $family.safetensors
    want 0 $? "export of $family" "arrays of family $family"
    nami 1 export $family/checkpoints/step-00000002.h5 other.safetensors --layout "$other"
    want 2 $? "$family in a layout of others" "family $family, which has"
    # shellcheck disable=SC2086
    nami 1 run $as run.directory=$family-one pipeline.schedule=dapple train.init=$family.safetensors train.steps=1 train.lr=0 \
        train.min_lr=0 train.decay=0
    want 0 $? "$family from its export"
    nami 1 export $family-one/checkpoints/step-00000001.h5 one.safetensors
    same one.safetensors $family.safetensors "parameters of $family"
done
exit $failed
