/* SPDX-License-Identifier: MIT */
/* json.c - the part of JSON that headers of weights are made of (RFC 8259), read strictly. */
#include <string.h>

#include "base/memory.h"
#include "exchange/inner.h"

enum { DEPTH = 32 };

nami_status nami_json_fail(nami_json *j, const char *expected)
{
    if (j->status == NAMI_OK)
        j->status = nami_fail(NAMI_EINPUT, "%s: byte %lld of its JSON: expected %s",
                              j->path, (long long)(j->at - j->from), expected);
    return j->status;
}

static void skip_blanks(nami_json *j)
{
    while (j->at < j->end &&
           (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t'))
        j->at++;
}

bool nami_json_try(nami_json *j, char c)
{
    skip_blanks(j);
    if (j->status != NAMI_OK || j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

void nami_json_take(nami_json *j, char c)
{
    char expected[] = {'\'', c, '\'', '\0'};
    if (!nami_json_try(j, c))
        (void)nami_json_fail(j, expected);
}

/* Four hex digits; -1 when they are not there. */
static int take_hex(nami_json *j)
{
    int value = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *d = j->at < j->end && *j->at ? strchr(digits, *j->at) : NULL;
        if (!d)
            return -1;
        int n = (int)(d - digits);
        value = 16 * value + (n < 16 ? n : n - 6);
    }
    return value;
}

/* The character behind "\u", with the second half of a pair; -1: none. */
static int32_t take_unicode(nami_json *j)
{
    int32_t high = take_hex(j), low;
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || j->end - j->at < 6 || j->at[0] != '\\' || j->at[1] != 'u')
        return -1;
    j->at += 2;
    low = take_hex(j);
    if (low < 0xdc00 || low > 0xdfff)
        return -1;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* Append a character as UTF-8; returns behind it. */
static char *put_unicode(char *to, int32_t c)
{
    static const int first[] = {0, 0xc0, 0xe0, 0xf0};
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(first[more] | c >> 6 * more);
    for (int i = more - 1; i >= 0; i--)
        *to++ = (char)(0x80 | (c >> 6 * i & 0x3f));
    return to;
}

/* The character behind a backslash; -1: none that a name may have. */
static int32_t take_escape(nami_json *j)
{
    const char c = j->at < j->end ? *j->at++ : '\0';
    if (c == '"' || c == '\\' || c == '/')
        return c;
    int32_t u = c == 'u' ? take_unicode(j) : -1;
    return u >= 0x20 && u != 0x7f ? u : -1;
}

/* No control characters: names are printed. */
static char *take_characters(nami_json *j, char *to)
{
    while (j->at < j->end && *j->at != '"') {
        const unsigned char c = (unsigned char)*j->at++;
        int32_t u = c == '\\' ? take_escape(j) : c;
        if (u < 0x20 || u == 0x7f) {
            (void)nami_json_fail(j, "a character that can be printed");
            return to;
        }
        if (c == '\\')
            to = put_unicode(to, u);
        else
            *to++ = (char)c;
    }
    nami_json_take(j, '"');
    return to;
}

char *nami_json_string(nami_json *j)
{
    nami_json_take(j, '"');
    if (j->status != NAMI_OK)
        return NULL;
    const char *close = j->at;
    while (close < j->end && *close != '"')
        close += *close == '\\' && j->end - close > 1 ? 2 : 1;
    char *s = nami_alloc(NAMI_MEM_OTHER, (size_t)(close - j->at) + 1);
    *take_characters(j, s) = '\0';
    if (j->status == NAMI_OK)
        return s;
    nami_free(s);
    return NULL;
}

int64_t nami_json_whole(nami_json *j)
{
    int64_t n = 0;
    skip_blanks(j);
    const char *from = j->at;
    bool fits = true;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9') {
        fits = fits && !__builtin_mul_overflow(n, 10, &n) &&
               !__builtin_add_overflow(n, *j->at - '0', &n);
        j->at++;
    }
    if (!fits || j->at == from || (*from == '0' && j->at - from > 1) ||
        (j->at < j->end && *j->at && strchr(".eE", *j->at)))
        (void)nami_json_fail(j, "a whole number below 2^63");
    return j->status == NAMI_OK ? n : 0;
}

char *nami_json_member(nami_json *j, bool *first)
{
    if (nami_json_try(j, '}'))
        return NULL;
    if (!*first)
        nami_json_take(j, ',');
    *first = false;
    char *name = nami_json_string(j);
    nami_json_take(j, ':');
    if (j->status == NAMI_OK)
        return name;
    nami_free(name);
    return NULL;
}

static void skip_value(nami_json *j, int depth);

static void skip_members(nami_json *j, int depth)
{
    bool first = true;
    for (char *name = nami_json_member(j, &first); name;
         name = nami_json_member(j, &first)) {
        nami_free(name);
        skip_value(j, depth);
    }
}

static void skip_elements(nami_json *j, int depth)
{
    for (bool first = true; j->status == NAMI_OK && !nami_json_try(j, ']');
         first = false) {
        if (!first)
            nami_json_take(j, ',');
        skip_value(j, depth);
    }
}

/* A number, true, false or null; told apart only so far. */
static void skip_word(nami_json *j)
{
    static const char in[] = "+-.0123456789Eabcdefghijklmnopqrstuvwxyz";
    const char *from = j->at;
    while (j->at < j->end && *j->at && strchr(in, *j->at))
        j->at++;
    if (j->at == from)
        (void)nami_json_fail(j, "a value");
}

static void skip_value(nami_json *j, int depth)
{
    skip_blanks(j);
    if (depth == DEPTH)
        (void)nami_json_fail(j, "fewer brackets inside each other");
    else if (j->at < j->end && *j->at == '"')
        nami_free(nami_json_string(j));
    else if (nami_json_try(j, '{'))
        skip_members(j, depth + 1);
    else if (nami_json_try(j, '['))
        skip_elements(j, depth + 1);
    else
        skip_word(j);
}

void nami_json_skip(nami_json *j)
{
    skip_value(j, 0);
}
