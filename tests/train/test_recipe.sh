#!/bin/sh
# SPDX-License-Identifier: MIT
# test_recipe.sh - every optimiser and learning rate trains, and goes on from a checkpoint at another layout as if it had not stopped.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 12

# whole_and_cut NAME ASSIGNMENT...: 12 steps at once on 2 ranks, and 5 of them on one rank and the rest on 2
whole_and_cut() {
    name=$1
    shift
    nami 2 run deck.ini run.directory="$name" "$@"
    want 0 $? "$name: 12 steps"
    losses "$name" >"$name.losses"
    nami 1 run deck.ini run.directory="$name-cut" train.steps=5 pipeline.schedule=gpipe "$@"
    want 0 $? "$name: 5 steps on another layout"
    nami 2 run deck.ini run.directory="$name-cut" pipeline.schedule=dapple "$@"
    want 0 $? "$name: the rest"
    losses "$name-cut" | grep '^step' >cut.losses
    grep '^step' "$name.losses" >whole.losses
    same whole.losses cut.losses "$name: losses of the steps"
    awk '$1 == "step" { print $3 }' "$name.losses" | sort | uniq -d | grep -q . &&
        { echo "FAIL $name: steps with equal losses"; failed=1; }
    # the run that stopped evaluated there too
    [ "$(losses "$name-cut" | tail -n 1)" = "$(tail -n 1 "$name.losses")" ] || { echo "FAIL $name: last evaluation"; failed=1; }
}

whole_and_cut sgd train.optimizer=sgd train.momentum=0 train.lr=0.1 train.rate_steps=12
whole_and_cut nesterov train.optimizer=sgd train.nesterov=yes train.lr=0.02 train.rate=step train.milestones='6 9'
whole_and_cut adam train.optimizer=adam train.betas="0.9 0.99" train.rate=polynomial train.rate_steps=10
whole_and_cut rmsprop train.optimizer=rmsprop train.momentum=0 train.alpha=0.9 train.rate=exponential train.rate_every=2 \
    train.rate_factor=0.5
whole_and_cut centered train.optimizer=rmsprop train.centered=yes train.momentum=0.5 train.rate=step \
    train.rate_every=3
whole_and_cut constant train.rate=constant
whole_and_cut smooth train.label_smoothing=0.2

# without a step away from the initial weights, a smoothed run trains on another loss and evaluates to the same
for smoothing in 0 0.2; do
    nami 2 run deck.ini run.directory=still-$smoothing train.steps=1 train.lr=0 train.min_lr=0 train.dropout=0 \
        train.label_smoothing=$smoothing
    want 0 $? "one step of no length, smoothing $smoothing"
    losses still-$smoothing | grep '^step' >still-$smoothing.step
    losses still-$smoothing | grep '^eval' >still-$smoothing.eval
done
same still-0.eval still-0.2.eval "evaluations with and without smoothing"
cmp -s still-0.step still-0.2.step && { echo "FAIL: smoothing left the training loss"; failed=1; }

nami 2 run deck.ini run.directory=rmsprop train.steps=14 train.optimizer=adam
want 6 $? "another optimiser on restart is refused" 'train.optimizer is adam, but rmsprop in the checkpoint'
nami 2 run deck.ini run.directory=rmsprop train.steps=14 train.optimizer=rmsprop train.momentum=0 train.centered=yes
want 6 $? "a state that the checkpoint lacks is named" 'optimizer/mean'
nami 1 run deck.ini run.directory=x train.nesterov=yes
want 2 $? "nesterov with adamw is refused" 'train.nesterov belongs to train.optimizer = sgd'
nami 1 run deck.ini run.directory=x train.rate=step
want 2 $? "a stepped rate without steps is refused" 'train.rate = step needs one of'
nami 1 run deck.ini run.directory=x train.correct=yes
want 2 $? "a correction without stale weights is refused" 'train.correct is set, but needs pipeline.weights = newest'
exit $failed
