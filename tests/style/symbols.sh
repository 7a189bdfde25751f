#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh - every external symbol of the library starts with nami_.
command -v nm >/dev/null || { echo "nm is not installed"; exit 77; }
[ -s "$NAMI_BUILD/libnami.a" ] || { echo "libnami.a is missing"; exit 99; }
bad=$(nm -A -g --defined-only "$NAMI_BUILD/libnami.a" |
    awk '$NF !~ /^nami_/ && $(NF - 1) ~ /^[TDBRC]$/ && $NF !~ /^__(odr_asan|cuda|fatbin|nv)/')
[ -z "$bad" ] && exit 0
echo "external symbols without the prefix nami_:"
echo "$bad"
exit 1
