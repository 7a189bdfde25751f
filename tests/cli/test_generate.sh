#!/bin/sh
# SPDX-License-Identifier: MIT
# test_generate.sh - nami generate of a model of byte-pair tokens: as numbers, as text by the rank file, from a prompt.
. "$NAMI_SOURCE/tests/train/lib.sh"

# ranks NAME LINE...: all bytes, then merges in base64
ranks() {
    name=$1
    shift
    awk 'BEGIN {
        digit = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for (c = 0; c < 256; c++)
            printf "%s%s== %d\n", substr(digit, int(c / 4) + 1, 1), substr(digit, c % 4 * 16 + 1, 1), c
        for (i = 1; i < ARGC; i++)
            print ARGV[i], 255 + i
    }' "$@" >"$name"
}
ranks ranks bWU= bWVu IG0= IG1l IG1lbg==          # me, men, " m", " me", " men"
ranks more bWU= bWVu IG0= IG1l IG1lbg== bW8= bW93 # also mo, mow
"$NAMI_PROGRAM" import --split 0.9 bpe ranks text tokens >import.out 2>&1 || { cat import.out; exit 1; }
deck 40
sed -i 's/^vocabulary.*/vocabulary = 0/; s/text-/tokens-/; s/^dropout.*//' deck.ini
nami 1 run deck.ini pipeline.positions=1
want 0 $? "a model of 262 tokens"
model=run/checkpoints/step-00000040.h5

# generated NAME ARGUMENT...: what is printed, of likely tokens
generated() {
    name=$1
    shift
    "$NAMI_PROGRAM" generate --temperature 1 --top-k 30 --seed 3 --tokens 200 "$@" $model >"$name" 2>err
    want 0 $? "generate $name"
}
generated numbers
generated text --vocabulary ranks --prompt '
'
tr ' ' '\n' <numbers | LC_ALL=C awk '
    BEGIN { split("me,men, m, me, men", of, ","); printf "\n" }
    /[0-9]/ && $1 < 256 { printf "%c", $1 }
    $1 > 255 && $1 < 261 { printf "%s", of[$1 - 255]; joined++ }
    $1 == 261 { printf "<|endoftext|>" }
    END { print ""; exit !joined }' >decoded || { echo "FAIL no merged token among the numbers"; failed=1; }
same text decoded "numbers and text"
generated prompted --vocabulary ranks --prompt '17 men'
grep -q '^17 men.' prompted || { cat prompted; failed=1; }
generated free --vocabulary ranks
[ "$(wc -c <free)" -gt 30 ] || { cat free; failed=1; }

nami 1 generate --prompt men $model
want 2 $? "text without a vocabulary" 'give their rank file by --vocabulary'
nami 1 generate --vocabulary more $model
want 2 $? "a larger vocabulary" 'more has 263 tokens, but the model only 262'
nami 1 generate --vocabulary text $model
want 2 $? "no rank file" 'text has .* lines, where one for each of 256'
exit $failed
