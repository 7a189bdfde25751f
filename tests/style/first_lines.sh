#!/bin/sh
# SPDX-License-Identifier: MIT
# first_lines.sh - every source names its licence, and every C source itself and its one idea.
cd "$NAMI_SOURCE" || exit 99
bad=$(find . \( -path './build*' -o -path './.git' -o -path ./autom4te.cache -o -path './nami-[0-9]*' -o -path '*.scratch' \) -prune -o \
    \( -name '*.[ch]' -o -name '*.cu' -o -name '*.sh' -o -name '*.awk' -o -name '*.m4' -o -name '*.inc' \
    -o -name '*.ini' -o -name '*.py' -o -name configure.ac -o -name Makefile.am -o -name '*.sh.in' \) ! -name aclocal.m4 -print |
    LC_ALL=C sort | xargs awk '
    function check() {
        if (file == "") return
        if (!licence) print file ": no line SPDX-License-Identifier: MIT at the top"
        if (file ~ /\.([ch]|cu)$/ && !idea) print file ": expected \"/* " base " - ...\" as the second line"
    }
    FNR == 1 { check(); file = FILENAME; base = file; sub(/.*\//, "", base); licence = idea = 0 }
    FNR <= 3 && /SPDX-License-Identifier: MIT/ { licence = 1 }
    FNR == 2 && index($0, "/* " base " - ") == 1 { idea = 1 }
    END { check() }')
[ -z "$bad" ] && exit 0
echo "$bad"
exit 1
