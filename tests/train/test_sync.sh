#!/bin/sh
# SPDX-License-Identifier: MIT
# test_sync.sh - batch norm over replicas in whole runs: the same bits on every schedule, position count and restart at
# one number of replicas; one rank beside it.
. "$NAMI_SOURCE/tests/train/lib.sh"
stripes learn 256 1
stripes test 256 2

cat >sync.ini <<END
[model]
family = chain
chain = conv 4 3 pad 1 bias no, norm, relu | conv 6 3 stride 2 pad 1, norm, silu | conv 6 1, norm, relu | global, flatten, linear classes
sync_batch_norm = yes
[pipeline]
schedule = dapple
microbatches = 4
positions = 1
replicas = 2
[data]
train = learn.h5
valid = test.h5
[train]
steps = 6
batch = 16
lr = 3e-3
rate = constant
log_every = 1000
[run]
directory = one
stall_seconds = 120
END

nami 2 run sync.ini
want 0 $? "two replicas" "batch norm takes 2 micro-batches of 2 replicas together"
losses one >expected
[ "$(grep -c . expected)" = 7 ] || { echo "FAIL not 6 steps and an evaluation"; failed=1; }
nami 4 run sync.ini run.directory=two pipeline.positions=2 pipeline.schedule=hanayo pipeline.recompute=yes train.steps=3
want 0 $? "a wave over two positions, three steps"
cp -r two other
nami 2 run sync.ini run.directory=two
want 0 $? "the others on one position" "resuming after step 3"
losses two | grep '^step\|^eval 6' >got
same expected got "losses of another number of positions, and of a restart"

# another number of replicas: other groups, whether by a restart or by a switch
nami 4 run sync.ini run.directory=other pipeline.replicas=4
want 0 $? "a restart with four replicas" "batch norm takes 4 micro-batches of 4 replicas together"
losses other | grep '^step\|^eval 6' >restarted
nami 4 run sync.ini run.directory=switched pipeline.positions=2 pipeline.schedule=hanayo switch.at=3 \
    switch.schedule=dapple switch.positions=1 switch.replicas=4
want 0 $? "a switch to four replicas"
losses switched >got
same restarted got "losses of a restart and of a switch"
cmp -s expected got && { echo "FAIL the number of replicas changes nothing"; failed=1; }

# one rank forms the same groups of whole batches, and of micro-batches that replicas divide
nami 2 compare sync.ini --steps 3 pipeline.microbatches=2
want 0 $? "one micro-batch a replica" "^no equal bits are promised: batch norm takes 2 micro-batches"
nami 3 compare sync.ini --steps 3 pipeline.positions=2 pipeline.replicas=1 \
    pipeline.split=sample pipeline.stage_replicas=1-2
want 0 $? "divided micro-batches" "^no equal bits are promised: replicas add"
nami 2 compare sync.ini --steps 3
want 4 $? "two micro-batches a replica" "compare with one micro-batch a replica"
nami 2 compare sync.ini --steps 3 pipeline.microbatches=2 switch.at=2 switch.positions=2 switch.replicas=1
want 4 $? "other groups behind a switch" "in every section"
exit $failed
