/* SPDX-License-Identifier: MIT */
/* fold.c - characters as BERT's uncased tokenizer sees them. */
#include "data/fold.h"

#include <string.h>

#include "data/fold_tables.h"

#define WITHIN(name, c)                                                                \
    nami_unicode_within(nami_fold_##name, nami_fold_##name##_count, c)

static nami_fold_class class_of_ascii(uint32_t c)
{
    if ((c | 32) >= 'a' && (c | 32) <= 'z')
        return NAMI_FOLD_WORD;
    if (c >= '0' && c <= '9')
        return NAMI_FOLD_WORD;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        return NAMI_FOLD_SPACE;
    return c < ' ' || c == 127 ? NAMI_FOLD_CONTROL : NAMI_FOLD_SIGN;
}

nami_fold_class nami_fold_class_of(uint32_t c)
{
    if (c < 128)
        return class_of_ascii(c);
    if (WITHIN(spaces, c))
        return NAMI_FOLD_SPACE;
    if (WITHIN(controls, c))
        return NAMI_FOLD_CONTROL;
    if (WITHIN(marks, c))
        return NAMI_FOLD_MARK;
    return WITHIN(signs, c) ? NAMI_FOLD_SIGN : NAMI_FOLD_WORD;
}

bool nami_fold_is_ideograph(uint32_t c)
{
    static const nami_unicode_range range[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    return nami_unicode_within(range, sizeof range / sizeof *range, c);
}

/* Hangul by arithmetic, The Unicode Standard 14, 3.12. */
static int take_hangul_apart(uint32_t c, uint32_t out[NAMI_FOLD_MOST])
{
    enum { VOWELS = 21, ENDS = 28 };
    uint32_t s = c - 0xac00, end = s % ENDS;
    out[0] = 0x1100 + s / (VOWELS * ENDS);
    out[1] = 0x1161 + s / ENDS % VOWELS;
    out[2] = 0x11a7 + end;
    return end ? 3 : 2;
}

/* The run that c is in; NULL: none. */
static const nami_fold_run *find_run(uint32_t c)
{
    size_t low = 0, high = nami_fold_runs_count;
    while (low < high) { /* the first run that starts behind c */
        size_t half = (low + high) / 2;
        if (nami_fold_runs[half].first <= c)
            low = half + 1;
        else
            high = half;
    }
    const nami_fold_run *r = low > 0 ? &nami_fold_runs[low - 1] : NULL;
    return r && c <= r->last && (c - r->first) % r->stride == 0 ? r : NULL;
}

int nami_fold(uint32_t c, uint32_t out[NAMI_FOLD_MOST])
{
    out[0] = c;
    if (c < 128) {
        out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        return 1;
    }
    if (c >= 0xac00 && c <= 0xd7a3)
        return take_hangul_apart(c, out);
    if (c >= 0xf900 && c - 0xf900 < nami_fold_ideographs_count)
        out[0] = nami_fold_ideographs[c - 0xf900];
    else if (c >= 0x2f800 && c - 0x2f800 < nami_fold_more_ideographs_count)
        out[0] = nami_fold_more_ideographs[c - 0x2f800];
    if (out[0] != c)
        return 1;
    if (WITHIN(marks, c))
        return 0;
    for (size_t i = 0; i < nami_fold_many_count; i++) {
        const nami_fold_pieces *p = &nami_fold_many[i];
        int n = 0;
        if (p->from != c)
            continue;
        memcpy(out, p->to, sizeof p->to);
        while (n < NAMI_FOLD_MOST && out[n])
            n++;
        return n;
    }
    const nami_fold_run *r = find_run(c);
    if (r)
        out[0] = (uint32_t)((int64_t)c + r->add);
    return 1;
}
