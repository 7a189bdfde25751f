#!/bin/sh
# SPDX-License-Identifier: MIT
# format.sh - clang-format 14 would change nothing.
cd "$NAMI_SOURCE" || exit 99
for tool in clang-format-14 clang-format; do
    case $($tool --version 2>/dev/null) in *"version 14."*) break ;; esac
    tool=
done
[ -n "$tool" ] || { echo "skipped: clang-format 14 is not installed"; exit 77; }
bad=$(find src kernels tests -name '*.[ch]' -o -name '*.cu' | LC_ALL=C sort |
    xargs $tool --dry-run 2>&1 | sed -n 's/^\([^ ]*\):[0-9]*:[0-9]*: warning.*/\1/p' | sort -u)
[ -z "$bad" ] && exit 0
echo "$tool -i is needed for:"
echo "$bad"
exit 1
