/* SPDX-License-Identifier: MIT */
/* reach.c - options that are set though nothing would read them. */
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"

/* Room for a field of any kind. */
typedef union field {
    int64_t whole;
    double real;
    bool truth;
    char *text;
    int choice;
    nami_ints list;
} field;

static bool same_ints(const nami_ints *a, const nami_ints *b)
{
    return a->count == b->count &&
           (a->count == 0 ||
            memcmp(a->item, b->item, (size_t)a->count * sizeof *a->item) == 0);
}

/* Whether two fields of the row's kind have one value. */
static bool same(nami_option_kind kind, const void *a, const field *b)
{
    switch (kind) {
    case NAMI_OPTION_INT:
        return *(const int64_t *)a == b->whole;
    case NAMI_OPTION_REAL:
    case NAMI_OPTION_DURATION:
        return *(const double *)a >= b->real && *(const double *)a <= b->real;
    case NAMI_OPTION_BOOL:
        return *(const bool *)a == b->truth;
    case NAMI_OPTION_TEXT:
        return strcmp(*(char *const *)a ? *(char *const *)a : "", b->text) == 0;
    case NAMI_OPTION_CHOICE:
        return *(const int *)a == b->choice;
    case NAMI_OPTION_INTS:
        return same_ints(a, &b->list);
    }
    return false;
}

bool nami_option_untouched(const nami_option *row, const void *object)
{
    field own = {0};
    nami_option alone = *row; /* the row of a struct with this field alone */
    alone.offset = 0;
    const nami_option_table table = {.row = &alone, .rows = 1};
    if (!row->fallback)
        return false;
    NAMI_CHECK(nami_option_set(&alone, &own, row->fallback, "default") == NAMI_OK);
    bool untouched = same(row->kind, (const char *)object + row->offset, &own);
    nami_option_release(&table, &own);
    return untouched;
}

nami_status nami_option_check_reach(const nami_option_table *table, const void *object,
                                    const nami_option_reach *reach, int count)
{
    for (int i = 0; i < count; i++) {
        const nami_option *row = nami_option_find(table, reach[i].key);
        NAMI_CHECK(row);
        if (!reach[i].read && !nami_option_untouched(row, object))
            return nami_fail(NAMI_EINPUT,
                             "%s%s%s is set, but does nothing %s; remove it",
                             row->section ? row->section : "--",
                             row->section ? "." : "", row->key, reach[i].when);
    }
    return NAMI_OK;
}
