# SPDX-License-Identifier: MIT
# strip.awk - C sources as "file:line:code", without comments and the insides of strings.
FNR == 1 { inside = 0 }
{
    out = ""
    rest = $0
    while (rest != "") {
        if (inside) {
            at = index(rest, "*/")
            if (!at)
                break
            rest = substr(rest, at + 2)
            inside = 0
        } else if (match(rest, /\/\*|\/\/|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
            token = substr(rest, RSTART, 2)
            out = out substr(rest, 1, RSTART - 1)
            if (token == "//")
                break
            if (token == "/*") {
                inside = 1
                rest = substr(rest, RSTART + 2)
            } else {
                out = out "\"\""
                rest = substr(rest, RSTART + RLENGTH)
            }
        } else {
            out = out rest
            rest = ""
        }
    }
    print FILENAME ":" FNR ":" out
}
