#!/bin/sh
# SPDX-License-Identifier: MIT
# sizes.sh - functions: none over 100 lines, median at most 15, main under 40; files: none over 1000, most under
# 400; configure.ac under 150. A function is what stands between '{' and '}' in the first column, with both.
cd "$NAMI_SOURCE" || exit 99
files=$(find src kernels -name '*.[ch]' -o -name '*.cu' | LC_ALL=C sort)
status=0
# shellcheck disable=SC2086
awk '
    FNR == 1 { if (name) close_file(); name = FILENAME; start = 0 }
    { lines = FNR }
    /^\{/ { start = FNR; head = before }
    /^\}/ && start {
        length_ = FNR - start + 1
        print length_ > "/dev/fd/3"
        if (length_ > 100) { print FILENAME ":" start ": function of " length_ " lines; 100 are allowed"; bad = 1 }
        if (head ~ /[ *]main\(/ && length_ >= 40) { print FILENAME ":" start ": main of " length_ " lines; fewer than 40 are allowed"; bad = 1 }
        start = 0
    }
    /[^ \t]/ { before = $0 }
    function close_file() {
        total++
        if (lines >= 400) big++
        if (lines > 1000) { print name ": " lines " lines; 1000 are allowed"; bad = 1 }
    }
    END {
        close_file()
        print total " files, " big + 0 " of 400 lines or more"
        if (big * 5 > total) { print "more than a fifth of the files have 400 lines or more"; bad = 1 }
        exit bad
    }' $files 3>"$NAMI_SCRATCH/lengths" || status=1
sort -n "$NAMI_SCRATCH/lengths" | awk '
    { a[NR] = $1 }
    END {
        median = a[int((NR + 1) / 2)]
        print NR " functions, median " median " lines, longest " a[NR]
        exit median > 15
    }' || { echo "the median function may have 15 lines"; status=1; }
lines=$(wc -l <configure.ac)
[ "$lines" -lt 150 ] || { echo "configure.ac: $lines lines; fewer than 150 are allowed"; status=1; }
exit $status
