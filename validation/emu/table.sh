#!/bin/sh
# SPDX-License-Identifier: MIT
# table.sh - the results of measure.sh as Markdown tables: sh validation/emu/table.sh RESULTS.tsv
for ms in $(cut -f 5 "$1" | sort -rnu); do
    printf '\n## Stages of %s ms\n\n' "$ms"
    echo '| schedule | stages a position | P | M | hop, ms | predicted, % | measured, % | difference, points | largest gaps, ms measured / predicted |'
    echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
    awk -F '\t' -v ms="$ms" '$5 == ms {
        printf("| %s | %d | %d | %d | %.2f | %.2f | %.2f | %+.2f | %s |\n", $1, $2, $3, $4, 1e3 * $6, 100 * $7,
               100 * $8, 100 * ($8 - $7), $9)
    }' "$1"
    awk -F '\t' -v ms="$ms" '$5 == ms {
        d = 100 * ($8 - $7)
        d = d < 0 ? -d : d
        sum += d
        most = d > most ? d : most
        within += d < 2
        n++
    } END {
        printf("\n%d of %d within 2 points; mean %.2f, largest %.2f points.\n", within, n, sum / n, most)
    }' "$1"
done
