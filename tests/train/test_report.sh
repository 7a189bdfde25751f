#!/bin/sh
# SPDX-License-Identifier: MIT
# test_report.sh - what a run writes: names that scripts rely on, predicted bytes = allocated bytes, a picture, a sample.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 30
nami 4 run deck.ini pipeline.replicas=2 train.eval_every=10 train.eval_batches=4 run.directory=run
want 0 $? "run on 2 positions x 2 replicas"

# has FILE PATTERN...: the file holds each pattern
has() {
    file=$1
    shift
    for pattern in "$@"; do
        grep -Eq "$pattern" "$file" || { echo "FAIL $file has no $pattern"; failed=1; }
    done
}

number='-?[0-9][0-9.e+-]*'
has run/log.jsonl \
    "^\{\"event\":\"step\",\"step\":1,\"loss\":$number,\"loss_hex\":\"0x[0-9a-fp.+-]*\",\"tokens\":128,\"step_seconds\":$number,\"tokens_per_second\":$number,\"grad_norm\":$number,\"bubble\":$number," \
    "^\{\"event\":\"eval\",\"step\":10,\"loss\":$number," '"event":"start"' '"event":"checkpoint","step":30' '"event":"end","step":30'
[ "$(grep -c '"event":"step"' run/log.jsonl)" = 30 ] || { echo "FAIL not 30 steps"; failed=1; }
for key in bubble_measured bubble_predicted steady_bubble_measured steady_bubble_predicted peak_bytes_measured peak_bytes_predicted matrix_peak_share phase_seconds \
    versions mpi build ranks rank_hosts parent_checkpoint data_identity; do
    has run/report.json "\"$key\":"
done
for phase in forward 'backward input' 'backward weight' recompute wait reduce update 'input and output'; do
    has run/report.json "\"$phase\":\{\"minimum\":$number,\"average\":$number,\"maximum\":$number\}"
done
! grep -q '^ *,' run/report.json || { echo "FAIL a line of report.json begins with a comma"; failed=1; }
[ "$(grep -c '^  "' run/report.json)" -ge 38 ] || { echo "FAIL not a line for each key of report.json"; failed=1; }
measured=$(sed -n 's/.*"peak_bytes_measured":\(\[[^]]*\]\).*/\1/p' run/report.json)
predicted=$(sed -n 's/.*"peak_bytes_predicted":\(\[[^]]*\]\).*/\1/p' run/report.json)
[ -n "$measured" ] && [ "$measured" = "$predicted" ] || { echo "FAIL bytes $measured, predicted $predicted"; failed=1; }
has run/resolved.ini '^steps = 30$' '^replicas = 2$' '^dropout = 0.1$'
has run/timeline.svg '^<svg ' 'position 3' '</svg>'
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
json.load(open("run/report.json"))
for line in open("run/log.jsonl"): json.loads(line)' || { echo "FAIL no JSON"; failed=1; }
fi

# the resolved deck gives the same run again
nami 4 run run/resolved.ini run.directory=again
want 0 $? "the resolved deck"
losses run >first
losses again >second
same first second "losses of the resolved deck"

# a checkpoint's parameters as a start
nami 2 run deck.ini run.directory=tuned train.init="$(newest run)" train.steps=1 train.lr=0 train.min_lr=0 train.dropout=0
want 0 $? "train.init"
old=$(sed -n 's/.*"event":"eval","step":30,"loss":\([0-9.]*\).*/\1/p' run/log.jsonl)
new=$(sed -n 's/.*"event":"eval","step":1,"loss":\([0-9.]*\).*/\1/p' tuned/log.jsonl)
[ -n "$old" ] && [ "$old" = "$new" ] || { echo "FAIL train.init: loss $new, expected $old"; failed=1; }

# text: the same seed gives the same text, another one another; --temperature 0 is --top-k 1
sample() {
    "$NAMI_PROGRAM" generate "$(newest run)" --prompt '12 men' --tokens 60 "$@" 2>&1
}
sample --seed 3 >a && sample --seed 3 >b && sample --seed 4 >c || { echo "FAIL generate"; failed=1; }
same a b "the same seed"
cmp -s a c && { echo "FAIL another seed gives the same text"; failed=1; }
[ "$(head -c 6 a)" = '12 men' ] && [ "$(wc -c <a)" = 67 ] || { echo "FAIL the sample is not prompt and 60 bytes:"; cat a; failed=1; }
sample --temperature 0 >d && sample --top-k 1 >e
same d e "temperature 0 and top-k 1"
exit $failed
