#!/bin/sh
# SPDX-License-Identifier: MIT
# test_profile.sh - nami profile from the command line: its file is planned; classes of links; bad wishes.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 3

nami 3 profile deck.ini model.tied=no --repeats 2 --output deck.csv
want 0 $? "gpt is measured" 'written to deck.csv'
want 0 0 "no link across a node is made up" 'across     not measured: all ranks are on one node'
[ "$(grep -c '^[0-9a-z_.]*,[0-9.e-]*,[0-9.e-]*,[0-9.e-]*,[0-9]*,' deck.csv)" = 8 ] || { echo "FAIL not 8 blocks"; cat deck.csv; failed=1; }
grep -q '^2,3$' deck.csv || { echo "FAIL not 2 samples, 3 ranks a node"; failed=1; }
grep -q '^inside,' deck.csv && ! grep -q '^across,' deck.csv || { echo "FAIL links of the file"; failed=1; }
nami 1 plan deck.ini plan.method=ashpipe plan.profile=deck.csv --ranks 3
want 0 $? "the profile is planned" 'schedule = ashpipe'
nami 1 plan deck.ini plan.method=ashpipe plan.profile=deck.csv --ranks 6
want 2 $? "two nodes of a profile of one" 'no link across nodes, each of 3 ranks; give plan.bandwidth for 2 levels, or plan.levels = 6 for one node'
nami 1 plan deck.ini plan.method=ashpipe plan.profile=deck.csv plan.levels=6 --ranks 6
want 0 $? "one node of more ranks" 'schedule = ashpipe'

# from a profile to a run: the plan's sections replace those of the deck
for wish in '' 'plan.stages=1' '--memory 1.2e6'; do
    # shellcheck disable=SC2086
    nami 1 plan deck.ini --profile deck.csv --ranks 3 train.optimizer=sgd $wish
    want 0 $? "our own plan $wish" 'schedule = ashpipe'
    sed -n '/^\[pipeline\]$/,$p' out >fragment.ini
    awk '/^\[/ { skip = $0 == "[pipeline]" } !skip' deck.ini | sed '/^partials/d; /^clip/d' >planned.ini
    cat fragment.ini >>planned.ini
    ranks=$(sed -n 's/^ranks *\([0-9]*\) in.*/\1/p' out)
    nami "$ranks" run planned.ini run.directory="run$ranks" train.optimizer=sgd train.clip=0 train.steps=30 pipeline.window=10 checkpoint.every=0 model.tied=no
    want 0 $? "the plan trains on $ranks ranks" 's; nami plan predicted'
    grep -q '"step_seconds_planned":[0-9]' "run$ranks/report.json" || { echo "FAIL no prediction in the report"; failed=1; }
    rm -rf "run$ranks"
done

nami 1 profile deck.ini --samples 5 --repeats 1 --warm 0 --output one.csv
want 0 $? "one rank" 'inside     not measured: no two ranks share a node'
want 0 0 "a shared weight is told" 'shared by blocks: a plan that cuts between them'
grep -q '^link' one.csv && { echo "FAIL a link of one rank"; failed=1; }
nami 1 plan deck.ini plan.method=ashpipe plan.profile=one.csv --ranks 2
want 2 $? "a missing link is asked for" 'the profile has no link inside a node; give plan.bandwidth'

case $("$NAMI_PROGRAM" info 2>/dev/null) in
*MPICH*) # told to see odd and even ranks as two nodes
    export MPIR_CVAR_ODD_EVEN_CLIQUES=1
    nami 4 profile deck.ini --repeats 1 --output two.csv
    want 0 $? "two nodes" 'written to two.csv'
    unset MPIR_CVAR_ODD_EVEN_CLIQUES
    grep -q '^2,2$' two.csv && grep -q '^inside,' two.csv && grep -q '^across,' two.csv ||
        { echo "FAIL two nodes of two ranks"; cat two.csv; failed=1; }
    ;;
esac

nami 2 profile deck.ini --output /nowhere/at/all.csv --repeats 1
want 3 $? "a file that cannot be written" 'cannot be written'
nami 1 profile deck.ini --repeats 0
want 2 $? "no repeats" "repeats"
nami 1 profile
want 2 $? "no deck" 'usage: nami profile'
exit $failed
