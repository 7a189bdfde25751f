/* SPDX-License-Identifier: MIT */
/* text.c - growing texts, JSON values and sizes for people. */
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

/* Make room for `more` bytes and the NUL. */
static void reserve(nami_text *t, size_t more)
{
    size_t need = t->length + more + 1;
    if (need <= t->capacity)
        return;
    size_t capacity = t->capacity ? t->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    t->data = nami_realloc(NAMI_MEM_OTHER, t->data, capacity);
    t->capacity = capacity;
}

/* Append what vsnprintf makes of the arguments. */
static void __attribute__((format(printf, 2, 0)))
add_list(nami_text *t, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    NAMI_CHECK(length >= 0);
    reserve(t, (size_t)length);
    vsnprintf(t->data + t->length, (size_t)length + 1, format, arguments);
    t->length += (size_t)length;
}

void nami_text_add(nami_text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_list(t, format, arguments);
    va_end(arguments);
}

char *nami_strf(const char *format, ...)
{
    nami_text t = {0};
    va_list arguments;
    va_start(arguments, format);
    add_list(&t, format, arguments);
    va_end(arguments);
    return t.data;
}

/* Length of the UTF-8 sequence at s, 0 when it is malformed. */
static int utf8_length(const unsigned char *s)
{
    int n = s[0] < 0x80                   ? 1
            : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
            : (s[0] & 0xF0) == 0xE0       ? 3
            : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                          : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))
        return 0; /* overlong; surrogate */
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0; /* overlong; above U+10FFFF */
    return n;
}

void nami_text_json(nami_text *t, const char *string)
{
    const unsigned char *s = (const unsigned char *)string;
    nami_text_add(t, "\"");
    while (*s) {
        int n = utf8_length(s);
        if (*s == '"' || *s == '\\')
            nami_text_add(t, "\\%c", *s);
        else if (*s == '\n')
            nami_text_add(t, "\\n");
        else if (*s == '\t')
            nami_text_add(t, "\\t");
        else if (*s < 0x20 || *s == 0x7F)
            nami_text_add(t, "\\u%04x", *s);
        else if (n == 0)
            nami_text_add(t, "\\ufffd"); /* not UTF-8: the replacement character */
        else
            nami_text_add(t, "%.*s", n, (const char *)s);
        s += n ? n : 1;
    }
    nami_text_add(t, "\"");
}

/* Whether people would write x without an exponent. */
static bool plain(double x)
{
    return fabs(x) >= 1e-4 && fabs(x) < 1e15;
}

void nami_text_number(nami_text *t, double x)
{
    char digits[40];
    if (!isfinite(x)) {
        nami_text_add(t, "null");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (strtod(digits, NULL) == x && !(plain(x) && strchr(digits, 'e')))
            break;
    }
    nami_text_add(t, "%s", digits);
}

const char *nami_text_get(const nami_text *t)
{
    return t->data ? t->data : "";
}

void nami_text_free(nami_text *t)
{
    nami_free(t->data);
    *t = (nami_text){0};
}

char *nami_strdup(const char *s)
{
    if (!s)
        return NULL;
    size_t bytes = strlen(s) + 1;
    return memcpy(nami_alloc(NAMI_MEM_OTHER, bytes), s, bytes);
}

const char *nami_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

const char *nami_human_bytes(double bytes, char buf[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;
    while (fabs(bytes) >= 1024.0 && u < 5) {
        bytes /= 1024.0;
        u++;
    }
    snprintf(buf, 32, "%.*f %s", u ? 1 : 0, bytes, unit[u]);
    return buf;
}
