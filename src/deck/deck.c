/* SPDX-License-Identifier: MIT */
/* deck.c - the list of assignments: append, find, override, free. */
#include "deck/deck.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "deck/entry.h"

nami_deck *nami_deck_create(const char *where)
{
    nami_deck *deck = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *deck);
    deck->where = nami_strdup(where);
    return deck;
}

void nami_deck_free(nami_deck *deck)
{
    if (!deck)
        return;
    for (int i = 0; i < deck->count; i++) {
        nami_free(deck->entry[i].section);
        nami_free(deck->entry[i].key);
        nami_free(deck->entry[i].value);
    }
    nami_free(deck->entry);
    nami_free(deck->where);
    nami_free(deck);
}

nami_deck_entry *nami_deck_find(const nami_deck *deck, const char *section,
                                const char *key)
{
    for (int i = 0; i < deck->count; i++)
        if (!strcmp(deck->entry[i].key, key) &&
            !strcmp(deck->entry[i].section, section))
            return &deck->entry[i];
    return NULL;
}

const char *nami_deck_place(const nami_deck *deck, int line, char *buf, size_t n)
{
    if (line > 0)
        snprintf(buf, n, "%.300s:%d", deck->where, line);
    else
        snprintf(buf, n, "command line");
    return buf;
}

nami_status nami_deck_append(nami_deck *deck, const char *section, const char *key,
                             const char *value, int line)
{
    char place[320];
    if (deck->count == NAMI_DECK_ENTRIES)
        return nami_fail(NAMI_EINPUT, "%s: more than %d keys; a deck has fewer",
                         nami_deck_place(deck, line, place, sizeof place),
                         NAMI_DECK_ENTRIES);
    if ((deck->count & (deck->count - 1)) == 0)
        deck->entry = nami_realloc(NAMI_MEM_OTHER, deck->entry,
                                   ((size_t)deck->count * 2 + 1) * sizeof *deck->entry);
    deck->entry[deck->count++] = (nami_deck_entry){.section = nami_strdup(section),
                                                   .key = nami_strdup(key),
                                                   .value = nami_strdup(value),
                                                   .line = line};
    return NAMI_OK;
}

size_t nami_deck_name(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && ((s[i] >= 'a' && s[i] <= 'z') ||
                     (i && ((s[i] >= '0' && s[i] <= '9') || s[i] == '_'))))
        i++;
    return i;
}

/* A byte that no deck may hold: the echo could not be read back. */
static bool is_control(char c)
{
    unsigned char u = (unsigned char)c;
    return (u < 0x20 && c != '\n' && c != '\t' && c != '\r') || u == 0x7F;
}

/* Split "section.key=value" in place; false when it has not this form. */
static bool split(char *copy, char **key, char **value)
{
    size_t section = nami_deck_name(copy, strlen(copy));
    if (section == 0 || copy[section] != '.')
        return false;
    *key = copy + section + 1;
    size_t length = nami_deck_name(*key, strlen(*key));
    if (length == 0 || (*key)[length] != '=')
        return false;
    copy[section] = '\0';
    (*key)[length] = '\0';
    *value = *key + length + 1;
    for (const char *c = *value; *c; c++)
        if (is_control(*c))
            return false;
    return true;
}

/* Put `value` in place of the entry's. */
static void replace(nami_deck_entry *entry, const char *value)
{
    nami_free(entry->value);
    entry->value = nami_strdup(value);
    entry->line = 0;
}

nami_status nami_deck_override(nami_deck *deck, const char *assignment)
{
    nami_status status = NAMI_OK;
    char *copy = nami_strdup(assignment), *key, *value;
    if (split(copy, &key, &value)) {
        nami_deck_entry *entry = nami_deck_find(deck, copy, key);
        if (entry)
            replace(entry, value);
        else
            status = nami_deck_append(deck, copy, key, value, 0);
    } else {
        status =
            nami_fail(NAMI_EINPUT, "command line: '%.100s': expected section.key=value",
                      assignment);
    }
    nami_free(copy);
    return status;
}

const char *nami_deck_value(const nami_deck *deck, const char *section, const char *key)
{
    const nami_deck_entry *entry = nami_deck_find(deck, section, key);
    return entry ? entry->value : NULL;
}
