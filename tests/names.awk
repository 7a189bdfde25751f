# SPDX-License-Identifier: MIT
# names.awk - from testlist to automake's tests: tests/FOLDER/TEST.RANKS.run
/^[^#]/ { for (i = 2; i <= NF; i++) print "tests/" $1 "." $i ".run" }
