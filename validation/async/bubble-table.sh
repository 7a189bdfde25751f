#!/bin/sh
# SPDX-License-Identifier: MIT
# bubble-table.sh - the results of bubble.sh as a Markdown table: sh validation/async/bubble-table.sh bubble.tsv
echo '| schedule | weights | P | F + B of a position, ms | updates | delay of stage 0 | hop, ms | full: predicted, % | full: measured, % | beyond the hop, points | window: predicted, % | window: measured, % |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
awk -F '\t' '{
    printf("| %s | %s | %d | %d | %d | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", $1, $2, $3, 3 * $4, $5,
           ($12 == $13) ? $12 : $12 ".." $13, 1e3 * $6, 100 * $8, 100 * $9, 100 * ($9 - $8), 100 * $10, 100 * $11)
}' "$1"
