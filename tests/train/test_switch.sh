#!/bin/sh
# SPDX-License-Identifier: MIT
# test_switch.sh - another layout in the middle of a run gives the bits of a run that was stopped and resumed with it.
. "$NAMI_SOURCE/tests/train/lib.sh"

# arrays FILE FILE WHAT: parameters and optimiser states are equal
arrays() {
    command -v h5diff >/dev/null || return 0
    if h5diff -q "$1" "$2" /parameters && h5diff -q "$1" "$2" /optimizer; then
        echo "ok   $3: arrays equal"
        return
    fi
    echo "FAIL $3: arrays differ"
    failed=1
}

# through NAME RANKS STEP "SWITCH KEYS" [OVERRIDE...]: the deck with the switch after STEP, and the same by a restart
through() {
    name=$1 ranks=$2 at=$3 keys=$4
    shift 4
    set_switch='' set_pipeline=''
    for key in $keys; do
        set_switch="$set_switch switch.$key" set_pipeline="$set_pipeline pipeline.$key"
    done
    # shellcheck disable=SC2086
    nami "$ranks" run deck.ini run.directory="$name-one" "switch.at=$at steps" $set_switch "$@"
    want 0 $? "$name: switched in one run"
    grep -q "\"event\":\"switch\",\"step\":$at," "$name-one/log.jsonl" || { echo "FAIL $name: no switch in the log"; failed=1; }
    nami "$ranks" run deck.ini run.directory="$name-two" train.steps="$at" train.rate_steps=12 "$@"
    want 0 $? "$name: until the switch"
    # shellcheck disable=SC2086
    nami "$ranks" run deck.ini run.directory="$name-two" train.rate_steps=12 "$@" $set_pipeline
    want 0 $? "$name: resumed with the other layout"
    losses "$name-one" >"$name.one"
    losses "$name-two" | grep -v "^eval $at " >"$name.two"
    same "$name.one" "$name.two" "$name: losses"
    arrays "$(newest "$name-one")" "$(newest "$name-two")" "$name"
}

deck 12
through wave 2 5 'schedule=hanayo replicas=1 zero=0' pipeline.schedule=dapple pipeline.replicas=2 pipeline.zero=1
through back 2 6 'schedule=dapple replicas=2 zero=1 microbatches=8 recompute=yes' train.optimizer=sgd train.momentum=0.9 train.partials=2
through cuts 3 7 'schedule=gpipe cuts=0,1,7' pipeline.schedule=gpipe train.precision=bf16 model.tied=yes
through copies 2 4 'schedule=chimera' pipeline.schedule=hanayo-zb
through device 2 5 'schedule=interleaved' pipeline.schedule=zb-h1 train.backend=emu train.optimizer=sgd
through four 4 5 'schedule=hanayo waves=1' pipeline.schedule=dapple pipeline.replicas=4
through sample 4 5 'schedule=dapple split=sample stage_replicas=2-1-1 replicas=1' pipeline.schedule=gpipe pipeline.replicas=4 train.partials=0
through uneven 4 6 'schedule=gpipe split=microbatch stage_replicas= replicas=4 microbatches=4' pipeline.schedule=gpipe \
    pipeline.split=sample pipeline.stage_replicas=3-1 pipeline.microbatches=2 train.partials=0 pipeline.zero=1 model.vocabulary=6000

# images, whose running statistics move too; pixels are letters, labels go round
{ printf '\000\000\010\003\000\000\001\000\000\000\000\034\000\000\000\034'; cat text text text | head -c 200704; } >pixels
{ printf '\000\000\010\001\000\000\001\000'; i=0; while [ $i -lt 32 ]; do printf '\000\001\002\003\004\005\006\007'; i=$((i + 1)); done; } >labels
"$NAMI_PROGRAM" import idx pixels labels images.h5 >out 2>&1 || { cat out; failed=1; }
sed -i 's/^layers.*/family = resnet20/; /^width/d; /^heads/d; /^context/d; /^vocabulary/d; s/text-train/images/; /^valid/d
    s/^dropout.*/clip = 0/; s/^lr.*/lr = 1e-2/' deck.ini
through images 2 5 'schedule=dapple replicas=1' pipeline.schedule=gpipe pipeline.replicas=2 train.optimizer=sgd train.partials=2
deck 12

# by epochs, and there and back; each layout's steps are in the report
# 110603 tokens are 6912 samples of 16: 0.01 epochs are 70 samples, reached in step 9
nami 2 run deck.ini run.directory=twice pipeline.schedule=dapple pipeline.replicas=2 switch.at=3 switch.schedule=hanayo \
    switch2.at='0.01 epochs' switch2.schedule=dapple switch2.replicas=2
want 0 $? "two switches"
sed -n 's/^{"event":"switch","step":\([0-9]*\),"positions":\([0-9]*\),.*"schedule":"\([a-z]*\)".*/\1 \2 \3/p' twice/log.jsonl >switches
printf '3 2 hanayo\n9 1 dapple\n' >expected
same expected switches "steps and layouts of two switches"
sed -n 's/^    {"schedule":"\([a-z]*\)","section":"\[\([a-z0-9]*\)\]","first_step":\([0-9]*\),"last_step":\([0-9]*\),.*/\1 \2 \3 \4/p' \
    twice/report.json >legs
printf 'dapple pipeline 1 3\nhanayo switch 4 9\ndapple switch2 10 12\n' >expected
same expected legs "legs of the report"

# killed around the switch: resumed in the layout of its step, and nothing is lost
kills=${NAMI_KILLS:-2} seed=${NAMI_TEST_SEED:-$$} n=0
echo "seed $seed, $kills kills"
set -- pipeline.schedule=dapple pipeline.replicas=2 switch.at=100 switch.schedule=hanayo train.steps=200 train.eval_every=50 train.eval_batches=4 checkpoint.every=9
nami 2 run deck.ini run.directory=whole "$@"
want 0 $? "never killed"
losses whole >whole.losses
while [ $n -lt "$kills" ]; do
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    rm -rf cut
    # shellcheck disable=SC2086
    $NAMI_LAUNCH -n 2 "$NAMI_PROGRAM" run deck.ini run.directory=cut "$@" >out 2>&1 </dev/null &
    launcher=$!
    until [ "$(grep -c '"event":"step"' cut/log.jsonl 2>/dev/null)" -ge $((91 + seed / 65536 % 20)) ] 2>/dev/null; do
        kill -0 $launcher 2>/dev/null || break
        sleep 0.01
    done
    sleep "$(awk -v s=$seed 'BEGIN { printf "%.3f", s % 997 / 997 * 0.03 }')"
    # shellcheck disable=SC2046
    kill -9 $(below $launcher | awk '$2 ~ /^nami/ { print $1 }') 2>/dev/null
    wait $launcher 2>/dev/null
    nami 2 run deck.ini run.directory=cut "$@"
    code=$?
    [ $code = 76 ] || want 0 $code "resumed after a kill"
    losses cut >cut.losses
    same whole.losses cut.losses "losses after a kill"
    [ "$(grep -c '"event":"switch","step":100,' cut/log.jsonl)" = 1 ] ||
        grep -q '"event":"restart","step":1[0-9][0-9],.*"schedule":"hanayo"' cut/log.jsonl || { echo "FAIL no switch in the log"; failed=1; }
    n=$((n + 1))
done
nami 2 run deck.ini run.directory=cut "$@" train.steps=204
want 0 $? "resumed behind the switch"
tail -n 8 cut/log.jsonl | grep -q '"event":"restart","step":200,.*"positions":2,.*"schedule":"hanayo"' ||
    { echo "FAIL not in the layout behind the switch"; failed=1; }

# a stop at the switch: the switch comes with the restart
nami 2 run deck.ini run.directory=stopped switch.at=1 switch.schedule=gpipe pipeline.schedule=dapple pipeline.replicas=2 run.max_time=0.001
want 75 $? "stopped where the layout changes"
nami 2 run deck.ini run.directory=stopped switch.at=1 switch.schedule=gpipe pipeline.schedule=dapple pipeline.replicas=2 train.steps=2
want 0 $? "resumed where the layout changes"
grep -q '"event":"restart","step":1,.*"schedule":"gpipe"' stopped/log.jsonl || { echo "FAIL not resumed with the other layout"; failed=1; }

# what cannot be is refused before the first step
refuse() {
    code=$1 what=$2 sentence=$3
    shift 3
    nami 2 run deck.ini run.directory=refused "$@"
    want "$code" $? "$what" "$sentence"
    [ ! -f refused/log.jsonl ] || ! grep -q '"event":"step"' refused/log.jsonl || { echo "FAIL $what: steps were made"; failed=1; }
}
refuse 4 "too many positions" '\[switch\]: 3 positions x 1 replica need 3 ranks, but there are 2' switch.at=5 switch.positions=3
refuse 4 "a switch that does not fit" 'needs .* while the layout changes .* but may use 1.5 MiB' \
    switch.at=5 switch.schedule=hanayo pipeline.schedule=gpipe run.memory=0.001465
refuse 4 "a layout that does not fit" '\[switch\]: position 0 .* needs .* but a rank may use' \
    switch.at=5 switch.schedule=gpipe switch.replicas=2 run.memory=0.00099
refuse 2 "no time" '\[switch\] says what changes, but not when' switch.schedule=gpipe
refuse 2 "nothing changes" 'nothing that would change' switch.at=5
refuse 2 "half a step" "switch.at = '2.5': expected" switch.at=2.5 switch.schedule=gpipe
refuse 2 "a unit" "switch.at = '2 weeks': expected" switch.at='2 weeks' switch.schedule=gpipe
refuse 2 "a key" 'switch.waves = .many.: expected' switch.at=5 switch.waves=many
refuse 2 "the second alone" 'no \[switch\] before it' switch2.at=5 switch2.schedule=gpipe
refuse 2 "the second first" '\[switch2\] begins after step 5, which is not behind step 5' \
    switch.at=5 switch.schedule=gpipe switch2.at=5 switch2.schedule=dapple
exit $failed
