#!/bin/sh
# SPDX-License-Identifier: MIT
# test_sentences.sh - BERT trains on sentences and on ready samples: they are learned, masks depend on no rank and no restart,
# wrong sets are refused.
. "$NAMI_SOURCE/tests/train/lib.sh"

# 60 documents of three to five sentences about a thing of their own
awk 'BEGIN {
    split("king ship tree lamp fish road", thing)
    for (d = 1; d <= 60; d++) {
        it = thing[1 + d % 6]
        for (s = 0; s < 3 + d % 3; s++)
            print "The " it (s % 2 ? " was seen by the other " : " went to the old ") it "."
        print ""
    }
}' >lines
sh "$NAMI_SOURCE/input/vocabulary.sh" 100 lines >vocab.txt || failed=1
"$NAMI_PROGRAM" import --split 0.8 bert-text vocab.txt lines lines >out 2>&1
want 0 $? "sentences" "^lines-train.h5: 1.* tokens in 1.* sentences of 48 documents, vocabulary "
tail -n +2 vocab.txt >short.txt
"$NAMI_PROGRAM" import bert-text short.txt lines no.h5 >out 2>&1
want 2 $? "a vocabulary without padding" "short.txt has no token \[PAD\]"
sed 's/road/roads/' vocab.txt >other.txt
"$NAMI_PROGRAM" import bert-text other.txt lines other.h5 >out 2>&1
want 0 $? "another vocabulary"

cat >bert.ini <<END
[model]
family = bert
layers = 1
width = 32
heads = 2
context = 24
vocabulary = 0
[pipeline]
schedule = dapple
microbatches = 4
[data]
train = lines-train.h5
valid = lines-valid.h5
[train]
steps = 40
batch = 16
lr = 5e-3
warmup = 5
partials = 4
eval_every = 20
log_every = 1000
[checkpoint]
every = 20
[run]
directory = one
stall_seconds = 500
END

nami 1 run bert.ini pipeline.positions=1
want 0 $? "40 steps on one rank"
losses one >want
awk '/"event":"step"/ { split($0, part, "\"loss\":"); last = part[2] + 0; if (!first) first = last }
    END { exit !(first > 4 && last < first - 1.5) }' one/log.jsonl || { echo "FAIL the loss does not fall"; failed=1; }

nami 2 run bert.ini run.directory=two pipeline.positions=2 pipeline.schedule=hanayo
want 0 $? "a wave over two positions"
losses two >got
same want got "losses of two positions"
nami 2 run bert.ini run.directory=replicas pipeline.positions=1 pipeline.replicas=2
want 0 $? "two replicas"
losses replicas >got
same want got "losses of two replicas"

# killed behind step 20, and resumed with another layout
cp -r one again && rm again/checkpoints/step-00000040.h5
nami 2 run bert.ini run.directory=again pipeline.positions=2
want 0 $? "the other steps on two positions" "resuming after step 20"
losses again >got
same want got "losses after a restart"

# both losses and hits are told; exported and read back, an evaluation sees the same
for key in masked_loss masked_accuracy next_loss next_accuracy pairs; do
    [ "$(grep -c "\"event\":\"\(step\|eval\)\".*\"$key\":" one/log.jsonl)" = 42 ] || { echo "FAIL $key"; failed=1; }
done
"$NAMI_PROGRAM" export one/checkpoints/step-00000040.h5 one.safetensors >out 2>&1
want 0 $? "exported" "one.safetensors: 30 arrays of family bert"
nami 1 run bert.ini run.directory=read pipeline.positions=1 train.init=one.safetensors train.steps=1 train.lr=1e-12 \
    train.min_lr=0 train.warmup=0
want 0 $? "read back"
cat one/report.json read/report.json | tr ',' '\n' | awk -F: '
    /"validation_(masked|next)_loss"/ { if ($1 in seen && ($2 - seen[$1]) ^ 2 < 1e-10) equal++; seen[$1] = $2 }
    END { exit equal != 2 }' || { echo "FAIL another evaluation after export"; failed=1; }
nami 1 generate one/checkpoints/step-00000040.h5
want 2 $? "no text of it" "a model of family bert does not continue tokens"

# refused CODE SENTENCE ASSIGNMENT...
refused() {
    code=$1 sentence=$2
    shift 2
    rm -rf no
    nami 1 run bert.ini run.directory=no pipeline.positions=1 train.steps=1 train.eval_every=0 "$@"
    want "$code" $? "$*" "$sentence"
}
refused 2 "text-train.h5 is a set of kind 'bytes', but this model.family takes sentences" data.train=text-train.h5
refused 2 "different vocabulary files" data.train=other.h5
refused 2 "samples of sentences have at least 5 tokens" model.context=4 model.vocabulary=200 model.predictions=1
refused 2 "(the model's)" model.vocabulary=50
refused 2 "model.predictions = 30 is more than" model.predictions=30
refused 2 "are for images" data.flip=yes
refused 2 "which is not set" data.train=
refused 2 "none.h5" data.train=none.h5
refused 2 "is a set of sentences for BERT" model.family=gpt data.valid=
exit $failed
