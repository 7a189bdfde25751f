/* SPDX-License-Identifier: MIT */
/* bind.c - from assignments to the fields of option tables, and back. */
#include <string.h>

#include "base/memory.h"
#include "deck/deck.h"
#include "deck/entry.h"

/* The tables and objects of a call. */
typedef struct binding {
    const nami_option_table *const *tables;
    void *const *objects;
    int n;
} binding;

/* The row of section.key and its table in *table, NULL when there is none. */
static const nami_option *find_row(const binding *b, const char *section,
                                   const char *key, int *table)
{
    for (int t = 0; t < b->n; t++)
        for (int i = 0; i < b->tables[t]->rows; i++) {
            const nami_option *row = &b->tables[t]->row[i];
            if (!strcmp(row->key, key) && !strcmp(row->section, section)) {
                *table = t;
                return row;
            }
        }
    return NULL;
}

/* No two rows may own the same key. */
static nami_status check_owners(const binding *b)
{
    for (int t = 0; t < b->n; t++)
        for (int i = 0; i < b->tables[t]->rows; i++) {
            const nami_option *row = &b->tables[t]->row[i];
            int table;
            if (find_row(b, row->section, row->key, &table) != row || table != t)
                return nami_fail(NAMI_EBUG, "two option tables own %s.%s", row->section,
                                 row->key);
        }
    return NAMI_OK;
}

/* The names known: of sections, or of the keys of `section`; freed by the caller. */
static const char **list_names(const binding *b, const char *section, int *count)
{
    int rows = 0;
    for (int t = 0; t < b->n; t++)
        rows += b->tables[t]->rows;
    const char **name = nami_alloc(NAMI_MEM_OTHER, ((size_t)rows + 1) * sizeof *name);
    *count = 0;
    for (int t = 0; t < b->n; t++)
        for (int i = 0; i < b->tables[t]->rows; i++) {
            const nami_option *row = &b->tables[t]->row[i];
            if (!section || !strcmp(row->section, section))
                name[(*count)++] = section ? row->key : row->section;
        }
    return name;
}

/* The section that has `key`, NULL when none or several have it. */
static const char *section_of(const binding *b, const char *key)
{
    const char *section = NULL;
    for (int t = 0; t < b->n; t++)
        for (int i = 0; i < b->tables[t]->rows; i++)
            if (!strcmp(b->tables[t]->row[i].key, key)) {
                if (section)
                    return NULL;
                section = b->tables[t]->row[i].section;
            }
    return section;
}

static nami_status refuse_section(const binding *b, const nami_deck_entry *e,
                                  const char *place)
{
    int count;
    const char **name = list_names(b, NULL, &count);
    int near = nami_nearest(e->section, name, count);
    if (near >= 0)
        nami_fail(NAMI_EINPUT, "%s: unknown section [%.80s]; did you mean [%s]?", place,
                  e->section, name[near]);
    else
        nami_fail(NAMI_EINPUT, "%s: unknown section [%.80s]; see nami-deck(5)", place,
                  e->section);
    nami_free(name);
    return NAMI_EINPUT;
}

static nami_status refuse_key(const binding *b, const nami_deck_entry *e,
                              const char *place)
{
    int count;
    const char **name = list_names(b, e->section, &count);
    int near = nami_nearest(e->key, name, count);
    const char *other = section_of(b, e->key);
    nami_status status = NAMI_EINPUT;
    if (count == 0)
        status = refuse_section(b, e, place);
    else if (other)
        nami_fail(status, "%s: unknown key '%s' in [%s]; it belongs to [%s]", place,
                  e->key, e->section, other);
    else if (near >= 0)
        nami_fail(status, "%s: unknown key '%.80s' in [%s]; did you mean '%s'?", place,
                  e->key, e->section, name[near]);
    else
        nami_fail(status, "%s: unknown key '%.80s' in [%s]; see nami-deck(5)", place,
                  e->key, e->section);
    nami_free(name);
    return status;
}

static nami_status bind_entry(const binding *b, const nami_deck *deck,
                              const nami_deck_entry *e)
{
    char place[320];
    int table;
    nami_deck_place(deck, e->line, place, sizeof place);
    const nami_option *row = find_row(b, e->section, e->key, &table);
    if (!row)
        return refuse_key(b, e, place);
    return nami_option_set(row, b->objects[table], e->value, place);
}

/* Name every required key that the deck does not set. */
static nami_status check_required(const binding *b, const nami_deck *deck)
{
    nami_text missing = {0};
    for (int t = 0; t < b->n; t++)
        for (int i = 0; i < b->tables[t]->rows; i++) {
            const nami_option *row = &b->tables[t]->row[i];
            if (!row->fallback && !nami_deck_find(deck, row->section, row->key))
                nami_text_add(&missing, "%s %s.%s", missing.length ? "," : "",
                              row->section, row->key);
        }
    nami_status status = NAMI_OK;
    if (missing.length)
        status = nami_fail(NAMI_EINPUT, "%.300s: required but not set:%s", deck->where,
                           nami_text_get(&missing));
    nami_text_free(&missing);
    return status;
}

nami_status nami_deck_bind(const nami_deck *deck,
                           const nami_option_table *const tables[],
                           void *const objects[], int n)
{
    const binding b = {.tables = tables, .objects = objects, .n = n};
    NAMI_TRY(check_owners(&b));
    for (int t = 0; t < n; t++)
        NAMI_TRY(nami_option_defaults(tables[t], objects[t]));
    for (int i = 0; i < deck->count; i++)
        NAMI_TRY(bind_entry(&b, deck, &deck->entry[i]));
    return check_required(&b, deck);
}

void nami_deck_echo(const nami_option_table *const tables[],
                    const void *const objects[], int n, nami_text *out)
{
    const char *section = "";
    for (int t = 0; t < n; t++)
        for (int i = 0; i < tables[t]->rows; i++) {
            const nami_option *row = &tables[t]->row[i];
            if (strcmp(section, row->section) != 0)
                nami_text_add(out, "%s[%s]\n", *section ? "\n" : "", row->section);
            section = row->section;
            nami_text_add(out, "%s = ", row->key);
            nami_option_echo(row, objects[t], out);
            nami_text_add(out, "\n");
        }
}
