#!/bin/sh
# SPDX-License-Identifier: MIT
# lists.sh - no orphans: each source is in a Makefile.inc, each test in the testlist, each script distributed.
cd "$NAMI_SOURCE" || exit 99
status=0
all=$(cat Makefile.am src/Makefile.inc kernels/Makefile.inc tests/Makefile.inc src/*/Makefile.inc tests/*/Makefile.inc)
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
exit $status
