#!/bin/sh
# SPDX-License-Identifier: MIT
# vocabulary.sh - a small vocabulary for nami import bert-text out of the user's own text, in ASCII.
#
#   sh vocabulary.sh 4000 TEXT... >vocab.txt
#
# Five special tokens, every printable character by itself and behind another one (##x), and the most frequent words of the
# texts, 4000 of them at most. A word that is not among them becomes its longest listed beginning and then single letters.
most=${1:?'usage: vocabulary.sh WORDS TEXT...'}
shift
export LC_ALL=C
{
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]'
    awk 'BEGIN { for (i = 33; i < 127; i++) if (i < 65 || i > 90) printf "%c\n", i }'
    awk 'BEGIN { for (i = 33; i < 127; i++) if (i < 65 || i > 90) printf "##%c\n", i }' | grep '[a-z0-9]'
    cat -- "$@" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '\n' | grep '..' | sort | uniq -c | sort -k1,1nr -k2 |
        awk -v most="$most" 'NR <= most { print $2 }'
}
