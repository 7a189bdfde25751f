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
stall_seconds = 500
END
}

# stripes NAME COUNT SEED: IDX files of COUNT (a multiple of 256) noisy 12x12 images, a bright column 3, 6 or 9 for class 1 to 3
stripes() {
    high=$(printf '\\%03o' $(($2 / 256)))
    # shellcheck disable=SC2059
    printf "\\0\\0\\010\\003\\0\\0$high\\0\\0\\0\\0\\014\\0\\0\\0\\014" >"$1-images"
    # shellcheck disable=SC2059
    printf "\\0\\0\\010\\001\\0\\0$high\\0" >"$1-labels"
    LC_ALL=C awk -v n="$2" -v seed="$3" -v labels="$1-labels" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) {
            class = 1 + int(3 * rand())
            printf "%c", class >>labels
            for (p = 0; p < 144; p++)
                printf "%c", p % 12 == 3 * class ? 100 + int(20 * rand()) : 1 + int(60 * rand())
        }
    }' >>"$1-images"
    "$NAMI_PROGRAM" import idx "$1-images" "$1-labels" "$1.h5" --classes "${4:-4}" >import.out 2>&1 || {
        cat import.out
        exit 1
    }
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
