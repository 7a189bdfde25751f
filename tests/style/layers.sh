#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh - every include obeys src/layers.
cd "$NAMI_SOURCE" || exit 99
bad=$(mktemp) || exit 99
for folder in src/*/; do
    folder=${folder#src/}
    grep -q "^${folder%/}:" src/layers || echo "src/$folder is not in src/layers" >>"$bad"
done
find src kernels -name '*.[ch]' -o -name '*.cu' | LC_ALL=C sort | xargs awk '
    BEGIN {
        while ((getline line < "src/layers") > 0) {
            if (line !~ /^[a-z\/]+:/)
                continue
            name = line
            sub(/:.*/, "", name)
            sub(/^[^:]*:/, "", line)
            foreign = line
            if (sub(/^[^|]*\|/, "", foreign))
                sub(/\|.*/, "", line)
            else
                foreign = ""
            n = split(line, word, " ")
            for (i = 1; i <= n; i++) {
                if (name == "system")
                    system_header[word[i]] = 1
                else if (!(word[i] in known))
                    print "src/layers: " name " includes " word[i] ", which is not above it"
                else
                    may[name, word[i]] = 1
            }
            n = split(foreign, word, " ")
            for (i = 1; i <= n; i++)
                may_foreign[name, word[i]] = 1
            known[name] = 1
        }
    }
    !/^[ \t]*#[ \t]*include/ { next }
    {
        n = split(FILENAME, part, "/")
        folder = part[1] == "kernels" ? "kernels" : part[2]
        sub_folder = n > 3 ? folder "/" part[3] : ""
        header = $0
        quoted = header ~ /include[ \t]*"/
        sub(/^[^"<]*["<]/, "", header)
        sub(/[">].*/, "", header)
        target = header
        sub(/\/.*/, "", target)
        if (header == "config.h" || header == "source-id.h" || (quoted && (target == folder || (target == "base" && folder != "kernels"))))
            next
        if (folder == "kernels" && header ~ /^(cuda|nvtx|cublas|std|string|math)/)
            next
        if (quoted ? (folder, target) in may : header in system_header)
            next
        if (!quoted && ((folder, header) in may_foreign || (sub_folder, header) in may_foreign))
            next
        print FILENAME ":" FNR ": " folder " may not include " header
    }' >>"$bad"
# the parallel file library alone may see a communicator
grep -n '"comm/native.h"' -r src --include='*.[ch]' | grep -vE '^src/(comm|store)/' |
    sed 's/$/   (only store may)/' >>"$bad"
cat "$bad"
! [ -s "$bad" ]
status=$?
rm -f "$bad"
exit $status
