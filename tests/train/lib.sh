# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# lib.sh - what the script tests of whole runs share: a tiny data set, a tiny deck, and reading results. Sourced.
failed=0
cd "$NAMI_SCRATCH" || exit 99

# 24,000 lines of numbers with words: enough structure for a loss to fall
awk 'BEGIN { for (i = 1; i <= 4000; i++) print i, "men went to mow", i % 7, "meadows" }' >text
"$NAMI_PROGRAM" import --split 0.9 text text text >import.out 2>&1 || { cat import.out; exit 1; }

# deck STEPS: write the deck `deck.ini`, 8 blocks, dropout on
deck() {
    cat >deck.ini <<END
[model]
layers = 3
width = 32
heads = 2
context = 16
vocabulary = 256
[pipeline]
schedule = hanayo
microbatches = 4
[data]
train = text-train.h5
valid = text-valid.h5
[train]
steps = $1
batch = 8
lr = 3e-3
warmup = 5
dropout = 0.1
partials = 4
log_every = 1000
[checkpoint]
every = 5
keep = 2
[run]
directory = run
stall_seconds = 120
END
}

# nami RANKS ARGUMENT...: run the program under the launcher; its exit code, its output in `out`
nami() {
    ranks=$1
    shift
    # shellcheck disable=SC2086
    $NAMI_LAUNCH -n "$ranks" "$NAMI_PROGRAM" "$@" >out 2>&1 </dev/null
}

# losses DIRECTORY: step and loss bits of all steps, evaluations marked
losses() {
    sed -n 's/^{"event":"\(step\|eval\)","step":\([0-9]*\),.*"loss_hex":"\([^"]*\)".*/\1 \2 \3/p' "$1/log.jsonl"
}

# want CODE GOT WHAT [SENTENCE]: an exit code, and a sentence that `out` must hold exactly once
want() {
    times=1
    [ -z "$4" ] || times=$(grep -c -- "$4" out)
    if [ "$2" = "$1" ] && [ "$times" = 1 ]; then
        echo "ok   $3: exit $1"
        return
    fi
    echo "FAIL $3: exit $2, expected $1; sentence '$4' $times times in:"
    sed 's/^/     /' out | tail -n 20
    failed=1
}

# same FILE FILE WHAT
same() {
    if cmp -s "$1" "$2" && [ -s "$1" ]; then
        echo "ok   $3: $(wc -l <"$1") lines equal"
        return
    fi
    echo "FAIL $3:"
    diff "$1" "$2" | head -n 10
    failed=1
}

# newest DIRECTORY: the newest checkpoint
newest() {
    ls "$1"/checkpoints/step-*.h5 | sort | tail -n 1
}

# below PID: the processes below a launcher, each with its name: "123 nami"; a rank is "nami", before it "nami-guard"
below() {
    for child in $(pgrep -P "$1"); do
        echo "$child $(cat "/proc/$child/comm" 2>/dev/null)"
        below "$child"
    done
}

# rank_of PID N: the process of the N-th rank (from 1) below a launcher
rank_of() {
    below "$1" | awk -v n="$2" '$2 == "nami" && ++seen == n { print $1 }'
}
