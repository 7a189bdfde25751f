#!/bin/sh
# SPDX-License-Identifier: MIT
# headers.sh - every header compiles alone, all compile together, each is guarded by NAMI_FOLDER_FILE_H.
cd "$NAMI_SOURCE" || exit 99
status=0
headers=$(find src kernels tests -name '*.h' | LC_ALL=C sort)
# shellcheck disable=SC2086
$NAMI_CC -std=gnu11 -fsyntax-only -x c -I"$NAMI_BUILD" $NAMI_CPPFLAGS $NAMI_CFLAGS -Wno-unused -Werror $headers || status=1
for header in $headers; do
    echo "#include \"${header#src/}\""
done >"$NAMI_SCRATCH/all.c"
$NAMI_CC -std=gnu11 -fsyntax-only -I"$NAMI_BUILD" $NAMI_CPPFLAGS $NAMI_CFLAGS -Wno-unused -Werror "$NAMI_SCRATCH/all.c" || status=1
for header in $(echo "$headers" | grep -v '^tests/'); do
    guard=NAMI_$(echo "${header#src/}" | tr 'a-z/.-' 'A-Z___')
    grep -q "^#ifndef $guard\$" "$header" || { echo "$header: expected the guard $guard"; status=1; }
done
exit $status
