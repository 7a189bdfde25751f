#!/bin/sh
# SPDX-License-Identifier: MIT
# lists.sh - no orphans: each source is in a Makefile.inc, each test in the testlist, each file in the tarball.
cd "$NAMI_SOURCE" || exit 99
status=0
all=$(cat Makefile.am src/Makefile.inc kernels/Makefile.inc tests/Makefile.inc src/*/Makefile.inc tests/*/Makefile.inc docs/Makefile.inc validation/Makefile.inc)
for file in $(find src kernels tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.sh' -o -name '*.awk' \) | LC_ALL=C sort); do
    echo "$all" | grep -qE "(^|[[:blank:]])$file([[:blank:]]|\$)" || { echo "$file is in no Makefile.inc"; status=1; }
done
for test in $(echo "$all" | sed -n 's,^ *check_PROGRAMS += *tests/,,p'); do
    grep -qE "^$test( |\$)" tests/testlist || { echo "tests/testlist does not run $test"; status=1; }
done
for test in $(awk '/^[^#]/ { print $1 }' tests/testlist); do
    [ -f "tests/$test" ] || [ -f "tests/$test.c" ] || { echo "tests/testlist names $test, which does not exist"; status=1; }
done
awk '/^[^#]/ && $1 in seen { print "tests/testlist names " $1 " twice"; bad = 1 } { seen[$1] = 1 } END { exit bad }' tests/testlist || status=1
# what git keeps is in the tarball: by a list, by automake itself, or by dist-hook
for file in $(git ls-files 2>/dev/null | grep -vE '^(src|kernels|tests|m4)/|^\.(ci/|gitignore)|^(check|configure\.ac|Makefile\.am)$|Makefile\.inc$'); do
    echo "$all" | grep -qE "(^|[[:blank:]])($file|${file%/*})([[:blank:]]|\$)" || { echo "$file is in no EXTRA_DIST"; status=1; }
done
exit $status
