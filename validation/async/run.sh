#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh - train the arms of the comparison and keep their validation losses.
#
#   sh validation/async/run.sh RESULTS.tsv [SEEDS [ARMS]]
#
# for example: sh validation/async/run.sh async.tsv "1 2 3" "sync stash". From a directory with kjv-train.h5 and
# kjv-valid.h5 (./quickstart makes them, or nami import) and, for the arms named fashion, fashion-train.h5 and
# fashion-test.h5 (Debian's package dataset-fashion-mnist, nami import idx). RESULTS.tsv gets a line for each evaluation: arm, seed,
# update, validation loss in nats a token, tokens it is the mean of. Runs that it holds already are left out.
#
# NAMI_PROGRAM (./nami) and NAMI_LAUNCH (mpiexec) say how to run.
results=${1:?name a file for the results}
seeds=${2:-1 2 3}
here=$(cd "$(dirname "$0")" && pwd) || exit 1
arms=${3:-$(awk '!/^#/ && NF { print $1 }' "$here/arms")}
program=${NAMI_PROGRAM:-./nami}
launch=${NAMI_LAUNCH:-mpiexec}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# train ARM SEED DECK RANKS OVERRIDE...
train() {
    arm=$1 seed=$2 deck=$3 ranks=$4
    shift 4
    rm -rf "$scratch/run"
    # shellcheck disable=SC2086
    if ! $launch -n "$ranks" "$program" run "$here/$deck.ini" "run.directory=$scratch/run" "train.seed=$seed" "$@" \
        >"$scratch/out" 2>&1 </dev/null; then
        echo "$arm, seed $seed: $(tail -n 1 "$scratch/out")" >&2
        return
    fi
    sed -n 's/^{"event":"eval","step":\([0-9]*\),"loss":\([-+.e0-9]*\),.*"tokens":\([0-9]*\),.*/\1\t\2\t\3/p' \
        "$scratch/run/log.jsonl" | sed "s/^/$arm\t$seed\t/" >>"$results"
    tail -n 1 "$results"
}

for seed in $seeds; do
    for arm in $arms; do
        if ! grep -qs "^$arm	$seed	" "$results"; then
            # shellcheck disable=SC2046
            train "$arm" "$seed" $(awk -v arm="$arm" '$1 == arm { $1 = ""; print }' "$here/arms")
        fi
    done
done
