#!/bin/sh
# SPDX-License-Identifier: MIT
# test_images.sh - images train: they are learned, augmentation depends on no rank and no restart, wrong sets are refused.
. "$NAMI_SOURCE/tests/train/lib.sh"

stripes learn 512 1
stripes test 256 2

cat >images.ini <<END
[model]
family = lenet
[pipeline]
schedule = dapple
microbatches = 4
[data]
train = learn.h5
valid = test.h5
pad = 8
crop = 1
cutout = 3
cutout_probability = 0.25
cutout_growth = 0.25
last_batch = short
[train]
steps = 64
batch = 32
lr = 3e-3
warmup = 5
partials = 4
eval_epochs = 2
log_every = 1000
[checkpoint]
every = 20
best = yes
[run]
directory = one
stall_seconds = 500
END

nami 1 run images.ini pipeline.positions=1
want 0 $? "4 epochs on one rank" "^step 64  validation loss .*  top-1 [0-9.]* %  top-5 100.00 %  (256 images, "
awk '/"event":"eval","step":64,/ { split($0, part, "\"top1\":"); right = part[2] + 0 } END { exit !(right >= 0.95) }' \
    one/log.jsonl || { grep '"eval"' one/log.jsonl; echo "FAIL less than 95 % right"; failed=1; }
[ "$(grep -c '"event":"epoch"' one/log.jsonl)" = 4 ] || { echo "FAIL not four epochs"; failed=1; }
losses one >want

nami 2 run images.ini run.directory=two pipeline.positions=2
want 0 $? "two positions"
losses two >got
same want got "losses of two positions"
nami 2 run images.ini run.directory=replicas pipeline.positions=1 pipeline.replicas=2
want 0 $? "two replicas"
losses replicas >got
same want got "losses of two replicas"

# stopped in the middle of an epoch and resumed with another layout
nami 2 run images.ini run.directory=again pipeline.positions=2 train.steps=23 train.eval_epochs=0
want 0 $? "23 steps"
rm -rf part && cp -r again part
nami 1 run images.ini run.directory=again pipeline.positions=1
want 0 $? "the other steps" "resuming after step 23"
losses again | grep '^step' | tail -n +24 >got
nami 2 run images.ini run.directory=part pipeline.positions=1 pipeline.replicas=2
want 0 $? "the other steps on two replicas"
losses part | grep '^step' | tail -n +24 >got2
same got got2 "losses after a restart"

# augmentation changes what is seen
whole='data.cutout_probability=1 data.cutout_growth=0'
blind='data.last_batch=drop train.eval_epochs=0 checkpoint.best=no'
# shellcheck disable=SC2086
nami 1 run images.ini run.directory=plain pipeline.positions=1 train.steps=2 data.crop=0 data.cutout=0 $whole
want 0 $? "without augmentation"
losses plain | grep '^step' >got
head -n 2 want | cmp -s - got && { echo "FAIL augmentation changes nothing"; failed=1; }

# refused CODE SENTENCE ASSIGNMENT...
refused() {
    code=$1 sentence=$2
    shift 2
    rm -rf no
    nami 1 run images.ini run.directory=no pipeline.positions=1 train.steps=1 "$@"
    want "$code" $? "$*" "$sentence"
}
stripes few 256 3 5
refused 2 "the model takes 28 x 28 x 1" model.image_height=28 model.image_width=28 data.pad=0
refused 2 "data.train has 4 classes, but the model 3" model.classes=3
refused 2 "data.valid has 5 classes, but the model 4" data.valid=few.h5
refused 2 "no array /images" data.train=text-train.h5
refused 2 "data.mean = '1 2'" "data.mean=1 2"
refused 2 "data.deviation = '0'" data.deviation=0
refused 2 "none.h5" data.train=none.h5
refused 2 "which is not set" data.train=
refused 2 "model.layers is set, but family lenet does not read it" model.layers=7
refused 2 "model.chain is set, but family lenet does not read it" model.chain=relu
refused 2 "model.batch_norm is set, but family lenet does not" model.batch_norm=no
wide="conv 1048576 1 pad 1048576"
refused 2 "layer 0 0 makes more than 1073741824 numbers" model.family=chain "model.chain=$wide, $wide, global, flatten, linear classes"
refused 2 "layer 0 0 makes more than 1073741824 numbers" model.family=chain "model.chain=$wide, flatten, linear classes"
refused 2 "layer 1 1 .*or has more than" model.family=chain \
    "model.chain=conv 1048576 1 stride 28, conv 1048576 4096 pad 2048, flatten, linear classes"
refused 2 "model.stem is set, but family gpt does not" model.family=gpt model.stem=small
# shellcheck disable=SC2086
refused 2 "are for images" model.family=synthetic data.train= data.valid= $blind
nami 1 plan images.ini pipeline.positions=1
want 0 $? "plan speaks of images" "4 micro-batches of 8 images, f32"
nami 1 export one/checkpoints/step-00000060.h5 one.safetensors --layout nanogpt
want 2 $? "nanoGPT's layout of LeNet" "is of family lenet, which has torchvision"
# shellcheck disable=SC2086
refused 2 "are for images" model.family=gpt model.layers=1 model.width=8 model.heads=1 model.context=8 \
    data.train=text-train.h5 data.valid= $blind
# shellcheck disable=SC2086
refused 2 "no array /tokens" model.family=gpt model.layers=1 model.width=8 model.heads=1 model.context=8 \
    data.pad=0 data.crop=0 data.cutout=0 $whole
exit $failed
