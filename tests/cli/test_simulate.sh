#!/bin/sh
# SPDX-License-Identifier: MIT
# test_simulate.sh - simulate and verify from the command line: keys, files, pictures, exit codes.
. "$NAMI_SOURCE/tests/cli/lib.sh"

size='--positions 4 --microbatches 4'
expect 0 '{"schedule":"hanayo","positions":4,"microbatches":4,"stages":8,"makespan":18,"bubble":0.3333333333333333,"span_bubble":0.3333333333333333,"idle":[6,6,6,6],"peak_activations":[2.5,3,3.5,4],"weight_copies":[1,1,1,1],"messages":48,"bytes_sent":[0,0,0,0],"bytes_received":[0,0,0,0],"critical_path":{' \
    simulate --schedule hanayo $size --json
expect 0 '"makespan":15,' simulate --schedule hanayo $size --waves 2 --json
expect 0 '"makespan":16.5,' simulate --schedule interleaved $size --chunks 2 --json
expect 0 '"makespan":21,' simulate --schedule dapple $size --tf 1 --tbi 1.5 --tbw 0.5 --json
expect 0 '0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1' simulate --positions 2 --microbatches 2 --actions
expect 0 'equation (1) of the Hanayo paper gives 40.00 %' simulate $size
expect 0 '"makespan":33.125,' simulate --schedule hanayo-zb --positions 2 --microbatches 11 --waves 4 --json
expect 0 '"makespan":19,' simulate --schedule terapipe $size --slices 4 --tb 3 --json
expect 0 '"weight_copies":[2,2,2,2]' simulate --schedule chimera $size --json
expect 0 'VALID dualpipe: 4 positions, 8 micro-batches' verify --schedule dualpipe --positions 4 --microbatches 8
expect 4 'even number of positions' simulate --schedule chimera --positions 3 --microbatches 3
expect 4 'one wave, not 2' simulate --schedule zb-v $size --waves 2
expect 4 'terapipe does' verify --schedule dapple $size --slices 2
expect 0 'note: below M = 2P-1 zb-h1 is at least as fast' simulate --schedule zb-h2 $size
expect 0 'critical path from position 0 to 0: F 7, B 14, messages 0 (6)' simulate --schedule dapple $size
expect 0 '"makespan":23,' simulate --schedule dapple --positions 2 --microbatches 1 --latency 1 --ranks-per-node 1 --node-latency 8.5 --json
expect 0 '"makespan":11,' simulate --schedule dapple --positions 2 --microbatches 1 --bytes 10 --bandwidth 4 --json
expect 2 'need --ranks-per-node' simulate $size --node-latency 1
expect 2 '--node-bandwidth "0"' simulate $size --ranks-per-node 2 --node-bandwidth 0
printf 'f,b,bytes\n1,2,5\n2,4,0\n' >profile
expect 0 '"makespan":9,' simulate --schedule dapple --positions 2 --microbatches 1 --profile profile --json
expect 4 '2 rows cannot be shared by 4 stages' simulate --schedule dapple $size --profile profile
expect 2 'leave --tf, --tb' simulate --schedule dapple --positions 2 --microbatches 1 --profile profile --tf 2
expect 0 '2 rows cannot be shared by 8 stages' simulate --compare --positions 2 --microbatches 4 --profile profile
expect 0 'dualpipe needs an even number of micro-batches from 2P = 2 x 4 = 8 on' simulate --compare $size
expect 0 'gems                      4           39   69.231    3.200           1         2        24  too much memory' \
    simulate --compare $size --memory 12 --state 6
expect 0 'hanayo W=8' simulate --compare --positions 32 --microbatches 64
expect 0 'position   0  0000111122223333....' simulate $size --timeline
expect 0 'hanayo             W waves' simulate --list
expect 0 '--bandwidth' simulate --help
expect 0 '--ahead' verify --help
expect 0 'VALID hanayo: 4 positions, 4 micro-batches, 8 stages' verify $size
expect 0 'VALID hanayo' verify $size --evaluate
window='--positions 4 --microbatches 24'
expect 0 '"weights":"stash","per_update":1,"updates":24,"fill":12,"steady":58,"drain":11,"steady_bubble":0,"delay":[{"stage":0,"versions":4,"fill":{"units":4,"forward":[0,1.5,3],"backward":[0,1.5,3]},"steady":{"units":16,"forward":[3,3,3],"backward":[3,3,3]},"drain":{"units":4,"forward":[3,3,3],"backward":[3,3,3]}},' \
    simulate --schedule pipedream $window --json
expect 0 '"weight_copies":[2,2,2,2]' simulate --schedule pipedream-2bw $window --per-update 4 --json
expect 0 'VALID pipedream-2bw: 4 positions, 24 micro-batches' verify --schedule pipedream-2bw $window --per-update 4
expect 4 'needs at least 4 of them, but has 3' verify --schedule pipedream-2bw $window --per-update 3
expect 4 '24 = 4 x 5 + 4' verify --schedule pipedream $window --per-update 5
expect 0 'versions kept 8 7 6 5 4 3 2 1' verify --schedule hanayo --weights stash $window
expect 4 'weights = 2bw: it is of update' verify --schedule hanayo --weights 2bw $window --per-update 4
expect 0 'B 121.167, messages 0 (4)' simulate --schedule ashpipe --stage-replicas 4-3-1 --microbatches 60
expect 0 'ranks        4-3-1 = 8' simulate --schedule ashpipe --stage-replicas 4-3-1 --microbatches 24
expect 4 'names 3 positions, but there are 4' simulate --schedule ashpipe --stage-replicas 4-3-1 $window
expect 4 'it would wait for ever for unit 2' verify --schedule pipedream --depth 1-2-0 --positions 3 --microbatches 9
expect 0 'of forwards at most 5 1 1 0' verify --schedule pipedream --depth 5-1-1-0 $window
expect 0 ' 0R0 ' simulate --schedule pipedream --stage-recompute 1-0-0-0 $window --actions
expect 4 'is made for a flush' verify --schedule gpipe --weights newest $window
expect 0 'without a flush: 24 micro-batches between two drains, 1 an update' simulate --compare $window
expect 0 '' simulate --schedule pipedream $window --csv window.csv
expect 0 'versions kept 4 3 2 1' verify --schedule file:window.csv --weights stash
expect 4 'INVALID file:window.csv' verify --schedule file:window.csv --weights newest
expect 4 'with a flush' verify --schedule file:window.csv
sed 's/,0B4v1,/,0B4,/' window.csv >slot.csv
expect 4 '(0B4): it must read version 1, but slot 0 holds version 4' verify --schedule file:slot.csv --weights stash
expect 2 'did you mean "hanayo"' simulate --schedule hanaya $size
expect 2 'needs --positions and --microbatches' simulate
expect 2 '--bandwidth "0"' simulate $size --bandwidth 0
expect 2 "did you mean '--latency'" simulate $size --latencu 1
expect 4 'holds 4 M_a of activations, but --memory allows 3' verify $size --memory 3
expect 3 'cannot be written' simulate $size --svg /nonexistent/picture.svg
expect 0 '' simulate --schedule dapple $size --csv lists.csv --svg a.svg --trace a.json
grep -q '^0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3$' lists.csv || { echo "lists.csv is wrong"; failed=1; }
grep -q '</svg>' a.svg || { echo "a.svg is not whole"; failed=1; }
expect 0 '"makespan":21,' simulate --schedule file:lists.csv --json
expect 0 'VALID file:lists.csv: 4 positions' verify --schedule file:lists.csv
expect 4 'has 4 positions' verify --schedule file:lists.csv --positions 3

printf '0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n' >stuck
expect 4 'INVALID file:stuck: position 0, entry 1 (0B0) waits for ever' verify --schedule file:stuck
expect 4 '"valid":false,"reason":"position 0, entry 1 (0B0) waits for ever' simulate --schedule file:stuck --json
printf '0F0 0B0\n1F0 1Q0\n' >word
expect 2 'word:2 (position 1): "1Q0"' verify --schedule file:word
expect 2 'cannot be opened' verify --schedule file:nothing
: >empty
expect 2 'no action is in it' verify --schedule file:empty
exit $failed
