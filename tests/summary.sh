#!/bin/sh
# SPDX-License-Identifier: MIT
# summary.sh - one line from automake's test-suite.log
awk '
    FNR > 12 { nextfile }
    /^# (PASS|XFAIL): / { passed += $3 }
    /^# (FAIL|XPASS|ERROR): / { failed += $3 }
    /^# SKIP: / { skipped += $3 }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$@"
