#!/bin/sh
# SPDX-License-Identifier: MIT
# test_baseline.sh - nami baseline: published values on real text where it is installed, and bad input.
cd "$NAMI_SCRATCH" || exit 99
failed=0
nami=$NAMI_PROGRAM

# refuse CODE SENTENCE ARGUMENTS...
refuse() {
    code=$1 sentence=$2
    shift 2
    "$nami" baseline "$@" >out 2>err
    got=$?
    if [ $got != "$code" ] || ! grep -qF -- "$sentence" err || [ "$(grep -c . err)" != 1 ]; then
        echo "exit $got, expected $code and '$sentence': baseline $*"
        cat out err
        failed=1
    fi
}

seq 1 20000 >a.txt
"$nami" import text a.txt a.h5 --split 0.5 2>/dev/null || exit 1
"$nami" import nanogpt a.txt b.h5 --vocabulary 65536 2>/dev/null || exit 1
refuse 2 "missing.h5" missing.h5
refuse 2 "a.txt" a.txt
refuse 2 "within 0 to 16" a-train.h5 --order 17
refuse 2 "within 0 to 16" a-train.h5 --order 3-2
refuse 2 "within 0 to 16" a-train.h5 --order=-1
refuse 2 "different tokens" a-train.h5 --train b.h5
refuse 4 "choose a lower order" b.h5 --order 16 --memory 0.001

# the forms of the output agree
"$nami" baseline a-valid.h5 --train a-train.h5 --order 2 --json >json || failed=1
"$nami" baseline a-valid.h5 --train a-train.h5 --order 0-6 >table || failed=1
[ "$(grep -c '^ *[0-9]' table)" = 7 ] && [ "$(grep -c best table)" = 1 ] || { cat table; failed=1; }
value=$(sed -n 's/.*"order":2,"loss_nats_per_token":\([0-9.]*\).*/\1/p' json)
printf '%.4f\n' "$value" >one
sed -n 's/^ *2 *\([0-9.]*\).*/\1/p' table >two
cmp one two || { cat json table; failed=1; }

# the King James Bible: 1.3176 nats a byte at order 5, and no order is better
if ! command -v bible >/dev/null; then
    echo "skipped: the value for the King James Bible (package bible-kjv)"
    [ $failed = 0 ] && exit 77
    exit 1
fi
bible -f gen1:1-rev22:21 | sed -E 's/^[0-9A-Za-z]+:[0-9]+ //' |
    "$nami" import text - kjv --split 0.9 2>/dev/null || failed=1
"$nami" baseline kjv-valid.h5 --train kjv-train.h5 --order 0-6 >table || failed=1
cat table
grep -q '^ *5 *1\.3176 .*best$' table || { echo "expected 1.3176 as the best, at order 5"; failed=1; }
exit $failed
