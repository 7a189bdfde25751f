#!/bin/sh
# SPDX-License-Identifier: MIT
# test_unread.sh - a key or flag that is set but would do nothing beside the others is refused with one sentence.
. "$NAMI_SOURCE/tests/cli/lib.sh"

cat >gpt.ini <<END
[model]
layers = 3
width = 32
heads = 2
context = 16
vocabulary = 256
[pipeline]
positions = 2
microbatches = 4
[train]
batch = 8
END
cat >lenet.ini <<END
[model]
family = lenet
image_height = 28
image_width = 28
image_channels = 1
classes = 10
[pipeline]
positions = 2
schedule = dapple
END
cat >synthetic.ini <<END
[model]
family = synthetic
layers = 4
width = 8
context = 4
[pipeline]
positions = 2
schedule = dapple
[train]
backend = emu
END

# dead DECK KEY WHEN ASSIGNMENT...: nami plan DECK ASSIGNMENT... refuses KEY
dead() {
    deck=$1 key=$2 when=$3
    shift 3
    expect 2 "$key is set, but does nothing $when; remove it" plan "$deck.ini" "$@"
    [ "$(grep -c . out)" = 1 ] || { echo "more than one sentence:"; cat out; failed=1; }
}

# foreign DECK KEY FAMILY ASSIGNMENT...: a key of another family
foreign() {
    deck=$1 key=$2 family=$3
    shift 3
    expect 2 "$key is set, but family $family does not read it; remove it" plan "$deck.ini" "$@"
}

foreign lenet model.stem lenet model.stem=small
for family in mlp chain resnet20; do
    foreign lenet model.stem $family model.family=$family model.stem=small
done
foreign lenet model.heads lenet model.heads=4
foreign gpt model.classes gpt model.classes=4
foreign synthetic model.heads synthetic model.heads=2
foreign synthetic model.tied synthetic model.tied=no
foreign synthetic model.bias synthetic model.bias=no
foreign gpt model.bias bert model.family=bert model.bias=no
expect 2 'model.bias = yes, but family llama has no biases; remove it' plan gpt.ini model.family=llama model.bias=yes
expect 2 'model.bias = yes, but family llama has no biases; remove it' plan gpt.ini model.family=llama model.bias=on
for bias in llama llama\ model.bias=no; do
    # shellcheck disable=SC2086
    expect 0 "2 positions" plan gpt.ini model.family=$bias
done
for eps in 0 -1e-5 nan inf 2; do
    expect 2 'model.norm_eps' plan gpt.ini model.family=llama model.norm_eps=$eps
done
foreign gpt synthetic.forward gpt synthetic.forward=1ms
foreign gpt synthetic.samples gpt synthetic.samples=1
foreign gpt model.sync_batch_norm gpt model.sync_batch_norm=yes
for family in lenet mlp; do
    expect 2 "model.sync_batch_norm is set, but this model of family $family has no batch norm; remove it" \
        plan lenet.ini model.family=$family model.sync_batch_norm=yes model.image_height=64 model.image_width=64
done
expect 2 'of family vgg11 has no batch norm' plan lenet.ini model.family=vgg11 model.stem=small \
    model.image_height=32 model.image_width=32 model.batch_norm=no model.sync_batch_norm=yes
expect 2 'of family chain has no batch norm' plan lenet.ini model.family=chain \
    model.chain='conv 4 3, relu | flatten, linear classes' model.sync_batch_norm=yes
expect 0 'batch norm takes 2 micro-batches of 2 replicas together' plan lenet.ini model.family=chain \
    model.chain='conv 4 3, norm, relu | flatten, linear classes' model.sync_batch_norm=yes pipeline.replicas=2 \
    pipeline.microbatches=4
for deck in lenet synthetic; do
    expect 2 'train.dropout is set, but family' plan $deck.ini train.dropout=0.1
done
expect 0 "exact " plan lenet.ini model.family=squeezenet model.stem=small train.dropout=0.1 \
    model.image_height=32 model.image_width=32

dead gpt pipeline.waves 'without placement wave' pipeline.schedule=dapple pipeline.waves=2
dead gpt pipeline.chunks 'without placement looping' pipeline.chunks=4
dead gpt pipeline.window 'with a flush, behind which every step drains' pipeline.window=7
dead gpt switch.waves 'without placement wave' switch.at=5 switch.schedule=dapple switch.waves=2
dead gpt switch.window 'with a flush, behind which every step drains' switch.at=5 switch.schedule=dapple switch.window=7
expect 0 '[switch] at 5' plan gpt.ini pipeline.schedule=dapple pipeline.waves=2 switch.at=5 switch.schedule=hanayo
expect 2 'does nothing without placement wave' plan gpt.ini pipeline.schedule=dapple pipeline.waves=2 \
    switch.at=5 switch.schedule=hanayo switch.waves=1

dead gpt data.last_batch 'without data.valid' data.last_batch=pad
dead lenet data.cutout_probability 'without data.cutout above 0' data.cutout_probability=0.5
dead lenet data.cutout_growth 'without data.cutout above 0' data.cutout_growth=0.1
dead gpt train.eval_every 'without data.valid' train.eval_every=5
dead gpt train.eval_epochs 'without data.valid' train.eval_epochs=1
dead gpt train.eval_batches 'without data.valid' train.eval_batches=5
dead gpt train.eval_batches 'without train.eval_every or eval_epochs, as the evaluation at the end uses all batches' \
    train.eval_batches=5 data.valid=some.h5
dead gpt checkpoint.best 'without data.valid' checkpoint.best=yes
dead gpt train.min_lr 'without train.rate = cosine or polynomial' train.rate=constant train.min_lr=1e-5
dead gpt train.rate_power 'without train.rate = polynomial' train.rate_power=1
dead gpt train.rate_factor 'without train.rate = step or exponential' train.rate_factor=0.5
dead gpt train.betas 'without train.optimizer = adamw or adam' train.optimizer=sgd train.betas='0.8 0.9'
dead gpt train.momentum 'without train.optimizer = sgd or rmsprop' train.momentum=0.8
dead gpt train.alpha 'without train.optimizer = rmsprop' train.alpha=0.9
dead gpt train.eps 'with train.optimizer = sgd' train.optimizer=sgd train.eps=1e-6
dead gpt train.clip_scope 'without train.clip above 0' train.clip=0 train.clip_scope=stage
dead gpt train.correct_decay 'without train.correct = yes' train.correct_decay=0.5

for key in delegate=cpu memory=100 copy_latency=1ms copy_bandwidth=1e9 jitter=1ms seed=2 fail_launch=9 fail_alloc=9; do
    dead gpt "emu.${key%=*}" 'without train.backend = emu' "emu.$key"
done
dead synthetic emu.seed 'without emu.jitter' emu.seed=2
dead gpt train.threads 'with train.backend = ref, which computes in one thread' train.backend=ref train.threads=2
dead synthetic train.threads 'with emu.delegate = ref, which computes in one thread' train.threads=2
expect 0 '2 positions' plan synthetic.ini train.threads=2 emu.delegate=cpu

found='without plan.method = nami or ashpipe'
for key in profile=x.csv weights=2bw levels=2 bandwidth=1e9 memory=1e9; do
    dead gpt "plan.${key%=*}" "$found" "plan.$key"
done
dead gpt plan.stages 'without plan.method = nami' plan.stages=3
dead gpt plan.stages 'without plan.method = nami' plan.method=ashpipe plan.profile=x.csv plan.stages=3
dead gpt plan.connected 'without plan.method = ashpipe' plan.method=nami plan.profile=x.csv plan.connected=yes

for flag in flops=1e9 latency=1ms bandwidth=1e8 overhead=1ms update-rate=1e9 top=3 json; do
    dead gpt "--${flag%=*}" 'without --advise' "--$flag"
done
dead gpt --memory 'without --advise or --profile' --memory 1e9
expect 2 '--flops is set, but does nothing with family synthetic' plan synthetic.ini --advise --ranks 2 --flops 1e9

# useless WHEN FLAG ARGUMENT...: nami simulate refuses FLAG
useless() {
    when=$1 flag=$2
    shift 2
    expect 2 "$flag is set, but does nothing $when; remove it" simulate --positions 4 --microbatches 8 "$@"
}
useless 'with a flush' --per-update --per-update 2
useless 'without a wave placement' --waves --schedule dapple --waves 2
useless 'without a looping placement' --chunks --chunks 4
useless 'without --compare' --memory --memory 4
useless 'without --compare' --state --state 4
useless 'with both --tbi and --tbw' --tb --tb 3 --tbi 1 --tbw 1
useless 'without --recompute or --stage-recompute' --tr --tr 2
useless 'without --node-latency or --node-bandwidth' --ranks-per-node --ranks-per-node 2
useless 'without --latency or --bandwidth' --serial-links --serial-links
useless 'without --reduce' --reduce-alone --reduce-alone
useless 'without pairs of actions in the lists' --apart --apart
useless 'without pairs of actions in the lists' --apart --schedule dualpipe --evaluate --apart
for schedule in dualpipe dualpipev; do
    expect 0 'makespan' simulate --positions 4 --microbatches 8 --schedule $schedule --apart
done
expect 0 'dualpipe' simulate --positions 4 --microbatches 8 --compare --apart
useless 'without --split sample' --samples --samples 4
useless 'with --list' --positions --list
useless 'with --list' --json --list --positions 0 --microbatches 0 --json
for flag in schedule=dapple weights=stash split=sample depth=1 stage-recompute=1 waves=2 chunks=4 slices=2 csv=x svg=x \
    trace=x evaluate lowered actions timeline; do
    useless 'with --compare' "--${flag%=*}" --compare "--$flag"
done
for flag in tb=3 tbi=1 tbw=1 tr=1 update=1 reduce=1 recompute reduce-alone; do
    useless 'with --evaluate' "--${flag%=*}" --evaluate "--$flag"
done
expect 2 '--json prints one JSON object and nothing else' simulate --positions 2 --microbatches 2 --json --timeline
expect 2 '--per-update is set, but does nothing with a flush' verify --positions 4 --microbatches 8 --per-update 2
printf '0F0 0B0\n1F0 1B0\n' >lists
expect 2 '--slices is set, but does nothing with lists from a file' verify --schedule file:lists --slices 2
expect 2 '--seed is set, but does nothing with --temperature 0' generate --temperature 0 --seed 3 missing.h5
expect 2 '--top-k is set, but does nothing with --temperature 0' generate --temperature 0 --top-k 3 missing.h5

# a comparison counts updates and sums of all schedules
"$NAMI_PROGRAM" simulate --compare --positions 2 --microbatches 4 >free
"$NAMI_PROGRAM" simulate --compare --positions 2 --microbatches 4 --update 5 >dear
for schedule in gpipe dapple pipedream; do
    awk -v name=$schedule '$1 == name { print name, $3 }' free dear | uniq | wc -l | grep -qx 2 ||
        { echo "--update 5 changes nothing for $schedule"; failed=1; }
done
exit $failed
