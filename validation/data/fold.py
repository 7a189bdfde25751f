# SPDX-License-Identifier: MIT
# fold.py - tables of src/data/fold_tables.c from Python's unicodedata, and the checksum that tests/data/test_wordpiece.c has.
#
#   python3 fold.py tables >src/data/fold_tables.c    (Python 3.11: Unicode 14.0.0, as src/data/unicode.c)
#   python3 fold.py sum
import sys, unicodedata as u, zlib

assert u.unidata_version == "14.0.0"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
category = {c: u.category(chr(c)) for c in ALL}


def fold(c):
    """lower case, then NFD without marks (Mn): code points"""
    return [ord(x) for x in u.normalize("NFD", chr(c).lower()) if u.category(x) != "Mn"]


def kind(c):
    if chr(c) in "\t\n\r" or category[c] in ("Zs", "Zl", "Zp"):
        return 1  # space
    if c == 0xFFFD or category[c] in ("Cc", "Cf", "Co"):
        return 2  # left out
    if category[c] == "Mn":
        return 3
    if 33 <= c <= 47 or 58 <= c <= 64 or 91 <= c <= 96 or 123 <= c <= 126 or category[c][0] == "P":
        return 4
    return 0


def ranges(want):
    out = []
    for c in ALL:
        if want(c):
            if out and out[-1][1] == c - 1:
                out[-1][1] = c
            else:
                out.append([c, c])
    return out


def runs(pairs):
    """[first, last, stride, what is added]"""
    out = []
    for c, t in pairs:
        if out and out[-1][3] == t - c:
            f, l, s, d = out[-1]
            if (s == 0 and c - l in (1, 2)) or c - l == s:
                out[-1] = [f, c, c - l, d]
                continue
        out.append([c, c, 0, t - c])
    return [[f, l, s or 1, d] for f, l, s, d in out]


def shown(r):
    if isinstance(r, list):
        return "{" + ", ".join(map(shown, r)) + "}"
    return hex(r) if r >= 0 else f"-{hex(-r)}"


def show(name, kind, rows):
    print(f"\nconst {kind} nami_{name}[] = {{")
    line = "   "
    for r in rows:
        cell = f" {shown(r)},"
        if len(line + cell) > 88:
            print(line)
            line = "   "
        line += cell
    print(line + "\n};")
    print(f"const size_t nami_{name}_count = {len(rows)};")


def ideograph(c):
    return 0xF900 <= c < 0xFB00 or 0x2F800 <= c < 0x2FA20


def tables():
    hangul = range(0xAC00, 0xD7A4)
    changed = [(c, fold(c)) for c in ALL if c not in hangul and category[c] != "Mn" and not ideograph(c)]
    print("/* SPDX-License-Identifier: MIT */")
    print("/* fold_tables.c - tables of fold.c; made by validation/data/fold.py from Unicode 14.0.0. */")
    print('#include "data/fold_tables.h"\n\n/* clang-format off */', end="")
    for i, name in enumerate(("fold_spaces", "fold_controls", "fold_marks", "fold_signs")):
        show(name, "nami_unicode_range", ranges(lambda c: c >= 128 and kind(c) == i + 1))
    show("fold_runs", "nami_fold_run", runs([(c, t[0]) for c, t in changed if len(t) == 1 and t[0] != c]))
    show("fold_many", "nami_fold_pieces", [[c, t] for c, t in changed if len(t) > 1])
    assert all(t for c, t in changed)
    for name, first, end in (("ideographs", 0xF900, 0xFB00), ("more_ideographs", 0x2F800, 0x2FA20)):
        assert all(len(fold(c)) == 1 for c in range(first, end))
        show("fold_" + name, "uint32_t", [fold(c)[0] for c in range(first, end)])
    print("/* clang-format on */")


def checksum():
    crc = 0
    for c in ALL:
        f = [] if kind(c) == 3 else fold(c)
        crc = zlib.crc32(b"".join(x.to_bytes(4, "little") for x in [c, kind(c), len(f), *f]), crc)
    print(f"{crc:08x}")


tables() if sys.argv[1] == "tables" else checksum()
