#!/bin/sh
# SPDX-License-Identifier: MIT
# Pipelines of made-up blocks on the imitated device, through the program: measured and predicted bubble agree, the
# device's failures end the run with the right code, and options that do not fit are refused.
. "$NAMI_SOURCE/tests/train/lib.sh"

cat >deck.ini <<END
[model]
family = synthetic
layers = 8
width = 4
context = 4
[synthetic]
forward = 30ms
backward_input = 30ms
backward_weight = 30ms
[pipeline]
schedule = hanayo
microbatches = 8
[train]
steps = 2
batch = 8
backend = emu
[run]
directory = run
stall_seconds = 500
END

# number KEY: its value in the report
number() {
    sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" run/report.json
}

nami 4 run deck.ini
want 0 $? "a run without data"
measured=$(number bubble_measured)
predicted=$(number bubble_predicted)
hop=$(number hop_step_seconds)
echo "bubble measured $measured predicted $predicted, hop $hop s"
# no idle machine is promised here, so only gross faults fail; validation/emu measures
if ! awk "BEGIN { d = $measured - $predicted; exit !(d < 0.15 && d > -0.15 && $predicted > 0.1) }"; then
    echo "FAIL the bubbles are too far apart"
    failed=1
fi
if [ "$(grep -c '"before"' run/report.json)" != 3 ]; then
    echo "FAIL the report does not name three gaps"
    failed=1
fi

# three ranks of stage 0 share its 90 ms a pass: neither a prediction nor a run is faster than three passes of 30 ms
rm -rf run
nami 4 run deck.ini pipeline.schedule=ashpipe pipeline.stage_replicas=3-1 pipeline.microbatches=1 pipeline.window=4 \
    model.layers=2 synthetic.samples=6 train.batch=6 train.steps=8 train.clip=0 \
    synthetic.forward='90ms 10ms' synthetic.backward_input='90ms 10ms' synthetic.backward_weight='90ms 10ms'
want 0 $? "samples split over ranks"
measured=$(number span_seconds_measured)
predicted=$(number span_seconds_predicted)
echo "a step of split samples: measured $measured predicted $predicted s"
if ! awk "BEGIN { exit !($predicted > 0.09 && $measured > 0.09 && $predicted < 1.1 * $measured && $predicted < 0.5) }"; then
    echo "FAIL the prediction of a step with split samples"
    failed=1
fi

rm -rf run
nami 4 run deck.ini emu.fail_launch=20
want 3 $? "a launch that fails"
if ! grep -q "launch 20 (.*) failed, as emu.fail_launch asks" out; then
    echo "FAIL the failed launch is not named"
    failed=1
fi
rm -rf run
nami 2 run deck.ini pipeline.schedule=dapple emu.fail_alloc=3
want 3 $? "an allocation that fails"
rm -rf run
nami 4 run deck.ini data.train=text-train.h5
want 2 $? "made-up samples and a data set" "makes up its samples"
nami 4 run deck.ini synthetic.forward=fast
want 2 $? "a time that is none" "'fast' is not a duration"
nami 4 run deck.ini model.layers=6 synthetic.forward="1ms 2ms"
want 2 $? "two times for six blocks" "synthetic.forward has 2 times"

# a GPT on the device learns what it learns without one, bit for bit
deck 6
nami 2 run deck.ini train.backend=ref run.directory=ref
want 0 $? "ref"
nami 2 run deck.ini train.backend=emu run.directory=emu emu.jitter=20us
want 0 $? "emu"
losses ref >ref.losses
losses emu >emu.losses
same ref.losses emu.losses "losses of ref and emu"
nami 1 run deck.ini train.backend=emu run.directory=emu train.steps=8
want 0 $? "a checkpoint of the device, resumed on another number of ranks"
exit $failed
