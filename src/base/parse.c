/* SPDX-License-Identifier: MIT */
/* parse.c - whole-string conversions and the nearest known word. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

int nami_distance(const char *a, const char *b)
{
    int m = (int)strlen(a), n = (int)strlen(b);
    size_t width = (size_t)n + 1;
    int *row = nami_alloc(NAMI_MEM_OTHER, 3 * width * sizeof *row);
    int *two = row, *one = row + width, *this = row + 2 * width;
    for (int j = 0; j <= n; j++)
        two[j] = one[j] = j;
    for (int i = 1; i <= m; i++) {
        this[0] = i;
        for (int j = 1; j <= n; j++) {
            int cost = a[i - 1] != b[j - 1];
            this[j] = least(least(one[j] + 1, this[j - 1] + 1), one[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                this[j] = least(this[j], two[j - 2] + 1);
        }
        int *oldest = two;
        two = one;
        one = this;
        this = oldest;
    }
    int distance = one[n];
    nami_free(row);
    return distance;
}

int nami_nearest(const char *s, const char *const *words, int n)
{
    size_t length = strlen(s);
    if (length > 64) /* nobody misspells that much */
        return -1;
    int best = -1, limit = 1 + (int)length / 3;
    for (int i = 0; i < n; i++) {
        int distance = nami_distance(s, words[i]);
        if (distance <= limit &&
            (size_t)distance <
                (length > strlen(words[i]) ? length : strlen(words[i]))) {
            best = i;
            limit = distance - 1;
        }
    }
    return best;
}

/* Whether `s` starts as a decimal number does, with no blank before it. */
static bool starts_number(const char *s)
{
    if (*s == '+' || *s == '-')
        s++;
    if (*s == '.')
        s++;
    return *s >= '0' && *s <= '9';
}

bool nami_parse_int(const char *s, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(s, &end, 10);
    if (!starts_number(s) || *end || end == s || errno)
        return false;
    *out = value;
    return true;
}

bool nami_parse_real(const char *s, double *out)
{
    char *end;
    double value = strtod(s, &end);
    if (!starts_number(s) || *end || end == s || !isfinite(value))
        return false;
    *out = value;
    return true;
}

/* "1:30" or "1:30:00"; the parts after the first are two digits below 60. */
static bool parse_clock(const char *s, double *seconds)
{
    double sum = 0.0;
    int parts = 0;
    while (parts < 3) {
        size_t digits = strspn(s, "0123456789");
        if (digits < 1 || digits > 6 || (parts && (digits != 2 || s[0] > '5')))
            return false;
        sum = 60.0 * sum + (double)strtol(s, NULL, 10);
        s += digits;
        parts++;
        if (*s != ':')
            break;
        s++;
    }
    *seconds = sum;
    return parts >= 2 && *s == '\0' && s[-1] != ':';
}

bool nami_parse_duration(const char *s, double *seconds)
{
    char number[40];
    size_t length = strlen(s);
    double scale = 1.0;
    if (strchr(s, ':'))
        return parse_clock(s, seconds);
    if (length < 1 || length >= sizeof number)
        return false;
    memcpy(number, s, length + 1);
    const char *unit = strchr("smhd", number[length - 1]);
    const char *small = unit && length >= 2 ? strchr("mu", number[length - 2]) : NULL;
    if (small && *unit == 's') {
        scale = *small == 'm' ? 1e-3 : 1e-6;
        number[length - 2] = '\0';
    } else if (unit) {
        scale = *unit == 's'   ? 1.0
                : *unit == 'm' ? 60.0
                : *unit == 'h' ? 3600.0
                               : 86400.0;
        number[length - 1] = '\0';
    }
    double value;
    if (!nami_parse_real(number, &value) || value < 0.0 || !isfinite(value * scale))
        return false;
    *seconds = value * scale;
    return true;
}
