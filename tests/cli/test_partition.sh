#!/bin/sh
# SPDX-License-Identifier: MIT
# test_partition.sh - nami plan with a profile: the authors' plan, the fragment, bad profiles and options.
cd "$NAMI_SOURCE" || exit 99
failed=0
out=$NAMI_SCRATCH/out

# expect STATUS TEXT ARGUMENT...: nami exits with STATUS and says TEXT somewhere, failures in one sentence
expect() {
    status=$1 text=$2
    shift 2
    "$NAMI_PROGRAM" "$@" >"$out" 2>&1 </dev/null
    got=$?
    lines=$(grep -c . "$out")
    if [ $got != "$status" ] || ! grep -qF -- "$text" "$out" || { [ "$status" != 0 ] && [ "$lines" != 1 ]; }; then
        echo "nami $*: status $got, expected $status with '$text':"
        cat "$out"
        failed=1
    fi
}

deck=validation/ashpipe/alexnet.ini
expect 0 'stage_replicas = 4-3-1' plan $deck
expect 0 'ranks     8 in 3 stages: 4-3-1' plan $deck --ranks 8
expect 0 'depth = 2-1-0' plan $deck
expect 0 'predicted = 0.0157227' plan $deck
expect 4 'the levels have 8 ranks, but there are 6' plan $deck --ranks 6
expect 4 'no cut of 23 blocks fits 8 ranks of 976.6 KiB' plan $deck --memory 1e6
expect 2 'choose one' plan $deck --advise
expect 2 '--json is set, but does nothing without --advise' plan $deck --json
expect 2 'needs plan.profile' plan $deck plan.profile=
expect 2 'nothing.csv: cannot be opened' plan $deck plan.profile=nothing.csv
expect 2 'plan.bandwidth has 1 word, but there are 2 levels' plan $deck plan.bandwidth=3e9
expect 2 'plan.bandwidth "-1": bytes/s from 1' plan $deck 'plan.bandwidth=-1 2'
expect 2 'plan.bandwidth "nan": bytes/s from 1' plan $deck 'plan.bandwidth=nan 2'
expect 2 'plan.connected "maybe": yes or no' plan $deck 'plan.connected=maybe no'
expect 2 'the profile has no link inside a node; give plan.bandwidth for 2 levels' plan $deck plan.bandwidth=
expect 2 'plan.levels' plan $deck 'plan.levels=0 2'
expect 2 'plan.levels names 5 levels' plan $deck 'plan.levels=1 1 1 1 2'
expect 2 'plan.levels: more than' plan $deck 'plan.levels=2000 2000'
expect 2 'plan.levels names 0 levels' plan $deck plan.levels= plan.bandwidth=1e9 plan.connected=yes

# our own method
expect 0 'ranks     8 in 2 stages: 7-1' plan $deck plan.method=nami plan.connected=
expect 0 'cuts = 0 5' plan $deck plan.method=nami plan.connected=
expect 0 'ranks     8 in 2 stages: 7-1' plan $deck plan.method=nami plan.connected= --memory 1e9
expect 4 'no cut of 23 blocks into at most 8 stages fits 8 ranks of 95.4 MiB' plan $deck plan.method=nami plan.connected= --memory 1e8
expect 0 'weights = 2bw' plan $deck plan.method=nami plan.connected= plan.weights=2bw
expect 0 '4 in 1 stage: 4; 4 more would make no stage faster' plan $deck plan.method=nami plan.connected= plan.stages=1
expect 4 'plan.levels has 3 levels' plan $deck plan.method=nami 'plan.levels=2 2 2' 'plan.bandwidth=3e9 2e9 1e9' plan.connected=

cd "$NAMI_SCRATCH" || exit 99
head='layer,forward_ms,backward_ms,activation_bytes,parameter_bytes'
bad() {
    printf "$2" >bad.csv
    expect 2 "bad.csv$1" plan "$NAMI_SOURCE/$deck" plan.profile=bad.csv
}
bad ': no layers are in it' ''
bad ': no layers are in it' "$head\n"
bad ':2: 5 columns are named, but here are 3' "$head\nconv,1,2"
bad ':2: column forward_ms: "-1"' "$head\nconv,-1,2,3,4\n"
bad ':2: column backward_ms: "nan"' "$head\nconv,1,nan,3,4\n"
bad ':2: column activation_bytes: "1e300"' "$head\nconv,1,2,1e300,4\n"
bad ': is no text' "$head\nconv,1,2\\000,3,4\n"
head -c 100000 /dev/urandom >bad.csv
expect 2 'bad.csv:' plan "$NAMI_SOURCE/$deck" plan.profile=bad.csv
exit $failed
