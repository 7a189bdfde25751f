#!/bin/sh
# SPDX-License-Identifier: MIT
# calls.sh - outside base/ nobody prints, exits or allocates by the C library.
cd "$NAMI_SOURCE" || exit 99
find src kernels -name '*.[ch]' | grep -v '^src/base/' | LC_ALL=C sort | xargs awk -f tests/style/strip.awk | awk '
    {
        code = $0
        sub(/^[^:]*:[^:]*:/, "", code)
        if (match(code, /(^|[^A-Za-z0-9_>.])(printf|vprintf|puts|putchar|perror|exit|_exit|_Exit|abort|assert|malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign|asprintf|vasprintf)[ \t]*\(|(^|[^A-Za-z0-9_>.])std(out|err)([^A-Za-z0-9_]|$)/)) {
            print $0
            bad = 1
        }
    }
    END {
        if (bad)
            print "use nami_print, nami_log, nami_die, nami_alloc and their friends"
        exit bad
    }'
