#!/bin/sh
# SPDX-License-Identifier: MIT
# test_import.sh - nami import from the command line: pipes, exit codes, a full disk, an interrupted run.
cd "$NAMI_SCRATCH" || exit 99
failed=0

# expect CODE SENTENCE COMMAND...: the exit code, and one line on stderr that contains the sentence ("": none).
expect() {
    code=$1 sentence=$2
    shift 2
    "$@" >out 2>err
    got=$?
    if [ $got != "$code" ] || { [ -n "$sentence" ] && ! grep -qF -- "$sentence" err; } ||
        { [ "$code" != 0 ] && [ "$(grep -c . err)" != 1 ]; }; then
        echo "exit $got, expected $code and '$sentence': $*"
        cat out err
        failed=1
    fi
}

# same FILE FILE: equal bytes
same() {
    cmp "$1" "$2" || failed=1
}

seq 1 200000 >a.txt
gzip -c a.txt >a.txt.gz
cat a.txt a.txt >aa.txt
nami=$NAMI_PROGRAM

expect 0 "a.h5: 1288895 tokens, vocabulary 256" "$nami" import text a.txt a.h5
expect 0 "" "$nami" import text a.txt.gz gz.h5
expect 0 "" "$nami" import text - stdin.h5 <a.txt
expect 0 "" sh -c "cat a.txt | '$nami' import text - pipe.h5"
expect 0 "" sh -c "cat a.txt | '$nami' import text a.txt - both.h5"
expect 0 "" "$nami" import text aa.txt aa.h5
mkfifo fifo && { cat a.txt.gz >fifo & }
expect 0 "" "$nami" import text fifo fifo.h5
expect 0 "both-train.h5: 2320011" "$nami" import text a.txt a.txt both.h5 --split 0.9
expect 0 "" "$nami" import --split=0.5 text a.txt half

# what follows from the tokens alone is the same, whatever way they came
for i in gz stdin pipe; do
    "$nami" baseline a.h5 --order 3 | sed 1,2d >one
    "$nami" baseline $i.h5 --order 3 | sed 1,2d >two
    same one two
done
"$nami" baseline aa.h5 | sed 1,2d >one
"$nami" baseline both.h5 | sed 1,2d >two
same one two

expect 2 "unknown format 'cifar1'; did you mean 'cifar10'?" "$nami" import cifar1 a.txt x.h5
expect 2 "unknown format 'words': expected one of text, " "$nami" import words a.txt x.h5
expect 2 "unknown format 'txt'" "$nami" import txt a.txt x.h5
expect 2 "usage" "$nami" import text a.txt
expect 2 "none.txt" "$nami" import text none.txt x.h5
expect 2 "is a directory" "$nami" import text . x.h5
expect 2 "not one token" "$nami" import text /dev/null x.h5
expect 2 "not replaced" "$nami" import text a.txt aa.txt
expect 2 "not gzip" sh -c "cp a.txt b.gz && '$nami' import text b.gz x.h5"
expect 2 "give --vocabulary" "$nami" import nanogpt a.txt x.h5
expect 2 "magic" "$nami" import llmc a.txt x.h5
expect 2 "split" "$nami" import text a.txt x.h5 --split 1.5
expect 2 "unknown flag" "$nami" import text a.txt x.h5 --splitt 0.5
[ ! -e x.h5 ] || { echo "x.h5 was made by a refused import"; failed=1; }

# images: an IDX pair made by printf, exit codes and sentences
printf '\0\0\010\003\0\0\0\2\0\0\0\1\0\0\0\3abcdef' >images
printf '\0\0\010\001\0\0\0\2\0\1' >labels
gzip -c images >images.gz
expect 0 "i.h5: 2 images of 1 x 3, 1 channel, 2 classes" "$nami" import idx images labels i.h5
expect 0 "i.h5: 2 images" sh -c "cat images | '$nami' import idx - labels i.h5 --classes 4"
expect 0 "j-train.h5: 1 images" "$nami" import idx --split 0.5 images.gz labels j
expect 2 "the order is IMAGES LABELS" "$nami" import idx labels images x.h5
expect 2 "pairs" "$nami" import idx images x.h5
expect 2 "truncated" sh -c "head -c 20 images >short && '$nami' import idx short labels x.h5"
expect 2 "is not an IDX file" "$nami" import idx a.txt labels x.h5
expect 2 "has 0 bytes" "$nami" import idx /dev/null labels x.h5
expect 2 "not a multiple" "$nami" import cifar10 a.txt x.h5
expect 2 "one a class" sh -c "mkdir -p empty && '$nami' import folder empty x.h5"
expect 2 "no array /tokens" "$nami" baseline i.h5
expect 2 "for tokens" "$nami" import idx images labels x.h5 --vocabulary 7
expect 2 "for images" "$nami" import text a.txt x.h5 --size 7
[ ! -e x.h5 ] || { echo "x.h5 was made by a refused import"; failed=1; }

# a full disk: the limit of file sizes stands for it; the old set stays
cp a.h5 old.h5
expect 3 "" sh -c "ulimit -f 512; exec '$nami' import text aa.txt a.h5"
same a.h5 old.h5
expect 3 "" sh -c "ulimit -f 512; cat aa.txt | { '$nami' import text - x.h5; }"
[ -z "$(find . -maxdepth 1 \( -name '*tmp*' -o -name '*nami-*' \))" ] || { ls; echo "left-overs"; failed=1; }

# killed in the middle: never a part under the final name
mkfifo slow
{ cat a.txt; sleep 2; } >slow &
feeder=$!
"$nami" import text slow killed.h5 &
sleep 0.3
kill -9 $!
wait $! 2>/dev/null
kill $feeder 2>/dev/null
[ ! -e killed.h5 ] || { echo "a killed import left killed.h5"; failed=1; }
exit $failed
