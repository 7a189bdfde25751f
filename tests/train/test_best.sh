#!/bin/sh
# SPDX-License-Identifier: MIT
# test_best.sh - epochs are told and evaluated, the best checkpoint is kept, also over restarts; perplexity and accuracy.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 20
head -c 2000 text >few && "$NAMI_PROGRAM" import text few few.h5 >import.out 2>&1 || { cat import.out; exit 1; }
deck="deck.ini data.train=few.h5 checkpoint.best=yes checkpoint.keep=1 checkpoint.every=7"

# shellcheck disable=SC2086
nami 2 run $deck pipeline.positions=2 train.eval_every=5 train.eval_batches=4
want 0 $? "20 steps" "^epoch 1  step 16  training loss [0-9.]*  (2048 tokens, "
events() {
    grep "\"event\":\"$1\"" run/log.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/' | tr '\n' ' '
}
[ "$(events epoch)" = "16 " ] || { echo "FAIL epochs: $(events epoch)"; failed=1; }
[ "$(events eval)" = "5 10 15 20 " ] || { echo "FAIL evaluations: $(events eval)"; failed=1; }

# best_loss: the lowest loss of the evaluations, and its step
best_loss() {
    sed -n 's/.*"event":"eval","step":\([0-9]*\),"loss":\([0-9.e+]*\),.*/\1 \2/p' run/log.jsonl | sort -g -k 2 | head -n 1
}
# named: the step that checkpoints/best names; its file must be there
named() {
    name=$(cut -d ' ' -f 1 run/checkpoints/best)
    [ -s "run/checkpoints/$name" ] || echo "no $name"
    echo "$name" | sed 's/step-0*\([0-9]*\).h5/\1/'
}
[ "$(named)" = "$(best_loss | cut -d ' ' -f 1)" ] || { echo "FAIL best: $(named), not $(best_loss)"; failed=1; }
awk -v best="$(best_loss | cut -d ' ' -f 2)" '{ exit !($2 - best < 1e-12 && best - $2 < 1e-12) }' run/checkpoints/best ||
    { echo "FAIL the measure in checkpoints/best"; failed=1; }
before=$(named)

# it gets worse: the best stays, though only one is kept
# shellcheck disable=SC2086
nami 2 run $deck pipeline.positions=2 train.eval_epochs=1 train.eval_batches=4 train.steps=32 train.lr=0.5 train.min_lr=0.5
want 0 $? "12 steps at a rate that hurts" "^epoch 2  step 31 "
[ "$(events eval)" = "5 10 15 20 31 32 " ] || { echo "FAIL evaluations: $(events eval)"; failed=1; }
[ "$(named)" = "$before" ] || { echo "FAIL best after worse steps: $(named), not $before"; failed=1; }
[ "$(ls run/checkpoints | grep -c '^step-')" = 2 ] || { ls run/checkpoints; echo "FAIL not two checkpoints"; failed=1; }
grep -q "\"best_step\":$before," run/report.json || { echo "FAIL report.json: no best_step"; failed=1; }

# the numbers of an evaluation fit together
sed -n 's/.*"event":"eval".*"loss":\([0-9.e+-]*\),.*"tokens":\([0-9]*\),"perplexity":\([0-9.e+-]*\),"top1":\([0-9.e+-]*\),"top5":\([0-9.e+-]*\),.*/\1 \2 \3 \4 \5/p' \
    run/log.jsonl >numbers
awk '{ p = exp($1); if ($3 / p > 1.0001 || p / $3 > 1.0001 || $4 > $5 || $5 > 1 || $5 <= 0) bad = 1 }
    END { exit bad || NR != 6 }' numbers || { cat numbers; echo "FAIL perplexity, top-1 or top-5"; failed=1; }

# a name of a checkpoint that is gone is forgotten
printf 'step-00000003.h5 0.0\n' >run/checkpoints/best
# shellcheck disable=SC2086
nami 2 run $deck pipeline.positions=2 train.eval_every=1 train.eval_batches=4 train.steps=34
want 0 $? "two steps more"
case $(named) in
33 | 34) ;;
*)
    echo "FAIL best after a lost one: $(named)"
    failed=1
    ;;
esac
exit $failed
