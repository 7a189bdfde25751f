/* SPDX-License-Identifier: MIT */
/* option.c - one row parses, range-checks and echoes one field. */
#include "base/option.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

const nami_option *nami_option_find(const nami_option_table *table, const char *key)
{
    for (int i = 0; i < table->rows; i++)
        if (strcmp(table->row[i].key, key) == 0)
            return &table->row[i];
    return NULL;
}

static void *field_of(const nami_option *row, void *object)
{
    return (char *)object + row->offset;
}

/* The failure sentence of a row: place, key, value, what was expected. */
static nami_status refuse(const nami_option *row, const char *value, const char *where,
                          const char *expected)
{
    return nami_fail(NAMI_EINPUT, "%s: %s%s%s = '%.80s': expected %s", where,
                     row->section ? row->section : "--", row->section ? "." : "",
                     row->key, value, expected);
}

static nami_status check_range(const nami_option *row, double x, const char *value,
                               const char *where)
{
    char expected[120];
    nami_text t = {0};
    if ((row->minimum == 0.0 && row->maximum == 0.0) ||
        (x >= row->minimum && x <= row->maximum))
        return NAMI_OK;
    nami_text_add(&t, "a value from ");
    nami_text_number(&t, row->minimum);
    nami_text_add(&t, " to ");
    nami_text_number(&t, row->maximum);
    if (row->unit)
        nami_text_add(&t, " %s", row->unit);
    strncpy(expected, nami_text_get(&t), sizeof expected - 1);
    expected[sizeof expected - 1] = '\0';
    nami_text_free(&t);
    return refuse(row, value, where, expected);
}

static nami_status set_int(const nami_option *row, void *field, const char *value,
                           const char *where)
{
    int64_t x;
    if (!nami_parse_int(value, &x))
        return refuse(row, value, where, "a whole number");
    NAMI_TRY(check_range(row, (double)x, value, where));
    *(int64_t *)field = x;
    return NAMI_OK;
}

static nami_status set_real(const nami_option *row, void *field, const char *value,
                            const char *where)
{
    double x;
    bool duration = row->kind == NAMI_OPTION_DURATION;
    if (!(duration ? nami_parse_duration(value, &x) : nami_parse_real(value, &x)))
        return refuse(row, value, where,
                      duration ? "a duration such as 90, 90s, 15m, 2h or 1:30:00"
                               : "a number");
    NAMI_TRY(check_range(row, x, value, where));
    *(double *)field = x;
    return NAMI_OK;
}

static nami_status set_bool(const nami_option *row, void *field, const char *value,
                            const char *where)
{
    static const char *const word[] = {"yes",  "no",    "on", "off",
                                       "true", "false", "1",  "0"};
    for (int i = 0; i < 8; i++)
        if (!strcmp(value, word[i])) {
            *(bool *)field = i % 2 == 0;
            return NAMI_OK;
        }
    return refuse(row, value, where, "yes or no");
}

static nami_status set_choice(const nami_option *row, void *field, const char *value,
                              const char *where)
{
    int n = 0;
    nami_text t = {0};
    for (; row->choices[n]; n++)
        if (!strcmp(value, row->choices[n])) {
            *(int *)field = n;
            return NAMI_OK;
        }
    int near = nami_nearest(value, row->choices, n);
    nami_text_add(&t, "one of");
    for (int i = 0; i < n; i++)
        nami_text_add(&t, "%s %s", i ? "," : "", row->choices[i]);
    if (near >= 0)
        nami_text_add(&t, " (did you mean '%s'?)", row->choices[near]);
    nami_status status = refuse(row, value, where, nami_text_get(&t));
    nami_text_free(&t);
    return status;
}

static nami_status set_text(const nami_option *row, void *field, const char *value)
{
    (void)row;
    char **text = field;
    char *fresh = nami_strdup(value);
    nami_free(*text);
    *text = fresh;
    return NAMI_OK;
}

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == ',' || c == '-';
}

/* Read the next number of a list at *cursor, which moves behind it. */
static bool next_number(const char **cursor, int *out)
{
    const char *c = *cursor;
    int64_t x = 0;
    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++) {
        x = 10 * x + (*c - '0');
        if (x > INT32_MAX)
            return false;
    }
    *cursor = c;
    *out = (int)x;
    return *c == '\0' || is_separator(*c);
}

/* Step over blanks and at most one ',' or '-'; false when there are more of them. */
static bool skip_separator(const char **cursor)
{
    int marks = 0;
    for (; is_separator(**cursor); (*cursor)++)
        marks += **cursor == ',' || **cursor == '-';
    return marks <= 1;
}

/* The list in `value`; `list` may hold numbers also after a failure. */
static nami_status read_ints(const nami_option *row, nami_ints *list, const char *value,
                             const char *where)
{
    const char *cursor = value + strspn(value, " \t");
    list->item =
        nami_alloc(NAMI_MEM_OTHER, (strlen(value) / 2 + 1) * sizeof *list->item);
    while (*cursor) {
        int x = 0;
        if (!next_number(&cursor, &x))
            return refuse(row, value, where,
                          "whole numbers separated by blanks, commas or '-'");
        NAMI_TRY(check_range(row, x, value, where));
        list->item[list->count++] = x;
        const char *after = cursor;
        if (!skip_separator(&cursor) || (!*cursor && strpbrk(after, ",-")))
            return refuse(row, value, where,
                          "one separator between two numbers and none at the end");
    }
    return NAMI_OK;
}

static nami_status set_ints(const nami_option *row, void *field, const char *value,
                            const char *where)
{
    nami_ints fresh = {0}, *list = field;
    nami_status status = read_ints(row, &fresh, value, where);
    if (status != NAMI_OK) {
        nami_free(fresh.item);
        return status;
    }
    nami_free(list->item);
    *list = fresh;
    return NAMI_OK;
}

nami_status nami_option_set(const nami_option *row, void *object, const char *value,
                            const char *where)
{
    void *field = field_of(row, object);
    switch (row->kind) {
    case NAMI_OPTION_INT:
        return set_int(row, field, value, where);
    case NAMI_OPTION_REAL:
    case NAMI_OPTION_DURATION:
        return set_real(row, field, value, where);
    case NAMI_OPTION_BOOL:
        return set_bool(row, field, value, where);
    case NAMI_OPTION_TEXT:
        return set_text(row, field, value);
    case NAMI_OPTION_CHOICE:
        return set_choice(row, field, value, where);
    case NAMI_OPTION_INTS:
        return set_ints(row, field, value, where);
    }
    return nami_fail(NAMI_EBUG, "option %s.%s has an unknown kind", row->section,
                     row->key);
}

nami_status nami_option_defaults(const nami_option_table *table, void *object)
{
    for (int i = 0; i < table->rows; i++)
        if (table->row[i].fallback)
            NAMI_TRY(nami_option_set(&table->row[i], object, table->row[i].fallback,
                                     "default"));
    return NAMI_OK;
}

void nami_option_release(const nami_option_table *table, void *object)
{
    for (int i = 0; i < table->rows; i++) {
        void *field = field_of(&table->row[i], object);
        if (table->row[i].kind == NAMI_OPTION_TEXT) {
            nami_free(*(char **)field);
            *(char **)field = NULL;
        } else if (table->row[i].kind == NAMI_OPTION_INTS) {
            nami_free(((nami_ints *)field)->item);
            *(nami_ints *)field = (nami_ints){0};
        }
    }
}

/* A text as a deck value: quoted where the bare form would read back differently. */
static void echo_text(const char *s, nami_text *out)
{
    size_t n = strlen(s);
    bool bare = n > 0 && !strpbrk(s, "\"\\#\n\r\t") && s[0] != ' ' && s[n - 1] != ' ';
    if (bare) {
        nami_text_add(out, "%s", s);
        return;
    }
    nami_text_add(out, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            nami_text_add(out, "\\%c", *s);
        else if (*s == '\n' || *s == '\t' || *s == '\r')
            nami_text_add(out, "\\%c", *s == '\n' ? 'n' : *s == '\t' ? 't' : 'r');
        else
            nami_text_add(out, "%c", *s);
    }
    nami_text_add(out, "\"");
}

static void echo_ints(const nami_ints *list, nami_text *out)
{
    for (int i = 0; i < list->count; i++)
        nami_text_add(out, "%s%d", i ? "," : "", list->item[i]);
}

void nami_option_echo(const nami_option *row, const void *object, nami_text *out)
{
    const void *field = (const char *)object + row->offset;
    switch (row->kind) {
    case NAMI_OPTION_INT:
        nami_text_add(out, "%lld", (long long)*(const int64_t *)field);
        break;
    case NAMI_OPTION_REAL:
    case NAMI_OPTION_DURATION:
        nami_text_number(out, *(const double *)field);
        break;
    case NAMI_OPTION_BOOL:
        nami_text_add(out, "%s", *(const bool *)field ? "yes" : "no");
        break;
    case NAMI_OPTION_TEXT:
        echo_text(*(char *const *)field ? *(char *const *)field : "", out);
        break;
    case NAMI_OPTION_CHOICE:
        nami_text_add(out, "%s", row->choices[*(const int *)field]);
        break;
    case NAMI_OPTION_INTS:
        echo_ints(field, out);
        break;
    }
}
