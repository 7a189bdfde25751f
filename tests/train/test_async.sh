#!/bin/sh
# SPDX-License-Identifier: MIT
# test_async.sh - runs without a flush: the same bits after stops and kills, other layouts, staleness, exit codes.
#
# NAMI_KILLS sets the number of kills (2); NAMI_TEST_SEED repeats a sequence.
. "$NAMI_SOURCE/tests/train/lib.sh"
kills=${NAMI_KILLS:-2} seed=${NAMI_TEST_SEED:-$$}
echo "seed $seed, $kills kills"

# A deck without a flush: windows of 8 steps, evaluations, checkpoints, and a switch that drain in between.
deck 40
sed -i 's/^partials = 4//; s/^microbatches = 4/microbatches = 1\nwindow = 8/; s/^\[model\]/[model]\ntied = no/
    s/^every = 5/every = 7/; s/^dropout/clip = 0\neval_every = 10\neval_batches = 4\ndropout/' deck.ini
ashpipe='pipeline.schedule=ashpipe pipeline.stage_replicas=2-1-1'

# run RANKS DIRECTORY ARGUMENT...
run() {
    ranks=$1 directory=$2
    shift 2
    nami "$ranks" run deck.ini run.directory="$directory" "$@"
}

# shellcheck disable=SC2086
run 4 whole $ashpipe
want 0 $? "ashpipe 2-1-1"
losses whole >whole.losses
[ "$(grep -c '^step' whole.losses)" = 40 ] || { echo "FAIL not 40 steps"; failed=1; }
first=$(sed -n 's/.*"event":"step","step":1,"loss":\([0-9.]*\),.*/\1/p' whole/log.jsonl)
last=$(sed -n 's/.*"event":"step","step":40,"loss":\([0-9.]*\),.*/\1/p' whole/log.jsonl)
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a - 1) }' || { echo "FAIL the loss goes from $first to $last"; failed=1; }

# versions and delays of asynchronous.md, counted while it ran and in the lists
sed -n 's/^ *{"stage":\([0-9]\),"versions":{"measured":\([0-9]\),"lists":\([0-9]\)},.*"steady":{"forward":{"measured":{"units":[0-9]*,"least":\([0-9]\),"mean":\([0-9]\),"most":\([0-9]\)},"lists":{"units":[0-9]*,"least":\([0-9]\),"mean":\([0-9]\),"most":\([0-9]\)}},"backward".*/\1 versions \2 \3 delays \4 \5 \6 \7 \8 \9/p' \
    whole/report.json >staleness
for s in 0 1 2; do
    echo "$s versions $((3 - s)) $((3 - s)) delays $((2 - s)) $((2 - s)) $((2 - s)) $((2 - s)) $((2 - s)) $((2 - s))"
done >expected
same expected staleness "versions and delays of three stages"
grep -q 'stage 0: 3 versions; updates late when steady: forward 2 to 2' whole/run.log || { echo "FAIL run.log tells no staleness"; failed=1; }

# a stop is obeyed at a drain, and the rest gives the same bits
# shellcheck disable=SC2086
run 4 stopped $ashpipe run.max_time=0.001
want 75 $? "stopped at the first drain" 'stopped after step 7 of 40'
# shellcheck disable=SC2086
run 4 stopped $ashpipe
want 0 $? "resumed"
losses stopped >stopped.losses
same whole.losses stopped.losses "losses after a stop"

# last DIRECTORY: the last step of its log, 0 when there is none
last() {
    tail -n 6 "$1/log.jsonl" 2>/dev/null | sed -n 's/^{"event":"step","step":\([0-9]*\),.*/\1/p' | tail -n 1 | grep . || echo 0
}

# killed NAME ARGUMENT...: kill runs at random moments; what is left in the end is as if there had been none
killed() {
    name=$1 n=0
    shift
    set -- "$@" train.steps=$((100 * (kills + 1))) train.eval_every=50 checkpoint.every=9
    run 4 "$name-whole" "$@"
    want 0 $? "$name: never killed"
    while [ $n -lt "$kills" ]; do
        seed=$(((seed * 1103515245 + 12345) % 2147483648))
        begin=$(last "$name")
        $NAMI_LAUNCH -n 4 "$NAMI_PROGRAM" run deck.ini run.directory="$name" "$@" >out 2>&1 </dev/null &
        launcher=$!
        # the log is cut back at first
        while kill -0 $launcher 2>/dev/null; do
            now=$(last "$name")
            [ "$now" != "$begin" ] && [ "$now" -ge $((begin + seed / 65536 % 60)) ] && break
            sleep 0.01
        done
        # shellcheck disable=SC2046
        kill -9 $(below $launcher | awk '$2 ~ /^nami/ { print $1 }') 2>/dev/null
        wait $launcher 2>/dev/null
        echo "kill $((n + 1)) after step $(last "$name")"
        n=$((n + 1))
    done
    run 4 "$name" "$@"
    code=$?
    [ $code = 76 ] || want 0 $code "$name: the rest after $kills kills"
    losses "$name-whole" >"$name.whole"
    losses "$name" >"$name.cut"
    same "$name.whole" "$name.cut" "$name: losses after kills"
}

# AshPipe, and Switch Parallel: data parallel, then AshPipe, in one run
# shellcheck disable=SC2086
killed cut $ashpipe
killed both pipeline.schedule=gpipe pipeline.replicas=4 pipeline.microbatches=4 switch.at=60 switch.schedule=ashpipe \
    switch.stage_replicas=2-1-1 switch.microbatches=1 switch.stage_recompute=1-0-0
grep -q '"event":"switch","step":60,.*"schedule":"ashpipe"' both-whole/log.jsonl || { echo "FAIL no switch"; failed=1; }

# another layout with the same policy, then another policy, then a flush, in one directory
run 3 other pipeline.schedule=pipedream train.steps=8
want 0 $? "pipedream on 3 ranks"
run 2 other pipeline.schedule=pipedream pipeline.microbatches=2 train.steps=16
want 0 $? "resumed on 2 ranks, two micro-batches an update"
run 2 other pipeline.schedule=hanayo pipeline.weights=stash train.steps=24
want 0 $? "resumed as an asynchronous wave"
run 2 other pipeline.schedule=hanayo pipeline.weights=2bw pipeline.microbatches=4 train.steps=32
want 0 $? "resumed as a wave with two versions"
run 4 other pipeline.schedule=dapple pipeline.replicas=2 pipeline.microbatches=4 pipeline.window=100
want 0 $? "resumed with a flush"
[ "$(losses other | grep -c '^step')" = 40 ] || { echo "FAIL not 40 steps over five layouts"; failed=1; }
last=$(sed -n 's/.*"event":"step","step":40,"loss":\([0-9.]*\),.*/\1/p' other/log.jsonl)
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < a - 1) }' || { echo "FAIL the loss over five layouts goes from $first to $last"; failed=1; }

# warm-up with a flush, then newest weights (PipeMare's third technique), then back; the same through checkpoints
run 2 warm pipeline.schedule=dapple pipeline.microbatches=2 switch.at=12 switch.weights=newest switch2.at=30 switch2.weights=flush
want 0 $? "flush, newest, flush"
run 2 steps pipeline.schedule=dapple pipeline.microbatches=2 pipeline.window=100 train.steps=12 train.rate_steps=40
want 0 $? "until the first switch"
run 2 steps pipeline.schedule=dapple pipeline.microbatches=2 pipeline.weights=newest train.steps=30 train.rate_steps=40
want 0 $? "until the second"
run 2 steps pipeline.schedule=dapple pipeline.microbatches=2 pipeline.window=100 train.steps=40
want 0 $? "until the end"
losses warm >warm.losses
losses steps | grep -v '^eval \(12\|30\) ' >steps.losses
grep -v '^eval 30 ' warm.losses >warm.some
same warm.some steps.losses "losses of two switches"

# lists from a file are those of the named schedule: training, and evaluations, which read the newest weights
run 3 named pipeline.schedule=pipedream
want 0 $? "a named schedule"
"$NAMI_PROGRAM" simulate --schedule pipedream --positions 3 --microbatches 8 --csv lists.csv >out 2>&1
want 0 $? "its lists in a file"
run 3 lists pipeline.schedule=file:lists.csv pipeline.weights=stash
want 0 $? "lists from a file"
losses named >named.losses
losses lists >lists.losses
same named.losses lists.losses "losses of lists from a file"

# techniques for the newest weights leave other weights alone
run 2 plain pipeline.schedule=spectrain switch.at=20 switch.weights=newest train.steps=20 train.rate_steps=40
run 2 told pipeline.schedule=spectrain switch.at=20 switch.weights=newest train.steps=20 train.rate_steps=40 train.anneal=1000 train.correct=yes
want 0 $? "prediction, then newest weights with PipeMare's techniques"
losses plain >plain.losses
losses told >told.losses
same plain.losses told.losses "losses of predicted weights"

# a number that is not finite ends the run at a drain, and nothing of its window is saved
run 3 blown pipeline.schedule=pipedream train.steps=14
want 0 $? "14 steps"
run 3 blown pipeline.schedule=pipedream train.lr=1e6 train.rate=constant checkpoint.every=1000
want 5 $? "a loss that is not finite" 'is .*not .*finite'
[ "$(newest blown)" = blown/checkpoints/step-00000014.h5 ] || { echo "FAIL saved after the failure"; failed=1; }
tail -n 1 blown/log.jsonl | grep -q '"event":"failed","step":1[4-9]' || { echo "FAIL no event failed:"; tail -n 1 blown/log.jsonl; failed=1; }
run 3 blown pipeline.schedule=pipedream train.steps=20
want 0 $? "resumed from the checkpoint before"

# refuse CODE RANKS WHAT SENTENCE ARGUMENT...: before the first step
refuse() {
    code=$1 ranks=$2 what=$3 sentence=$4
    shift 4
    run "$ranks" refused "$@"
    want "$code" $? "$what" "$sentence"
    [ ! -f refused/log.jsonl ] || ! grep -q '"event":"step"' refused/log.jsonl || { echo "FAIL $what: steps were made"; failed=1; }
}
refuse 4 4 "ranks that do not add up" '3 + 2 + 1 = 6 ranks, but there are 4' pipeline.schedule=ashpipe pipeline.stage_replicas=3-2-1
refuse 4 4 "too few samples" 'has 3 replicas, but .* 2 samples' pipeline.schedule=ashpipe pipeline.stage_replicas=3-1 pipeline.microbatches=4
refuse 4 3 "the norm of all stages" 'train.clip = 1 needs the norm of all stages' pipeline.schedule=pipedream train.clip=1
refuse 4 3 "tied weights" 'share transformer.wte.weight' pipeline.schedule=pipedream model.tied=yes
refuse 4 2 "too deep for the memory" 'position 0 .* needs .* but a rank may use' pipeline.schedule=pipedream pipeline.depth=60-0 \
    pipeline.window=100 run.memory=0.002
refuse 4 2 "partial sums of none" 'which no section of this deck has' pipeline.schedule=pipedream switch.at=5 switch.weights=newest train.partials=2
refuse 4 4 "a switch that does not fit" '\[switch\]: .* 7 ranks, but there are 4' switch.at=5 switch.schedule=ashpipe switch.stage_replicas=4-2-1
exit $failed
