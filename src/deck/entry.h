/* SPDX-License-Identifier: MIT */
/* entry.h - what a deck is inside: assignments in the order they were read. */
#ifndef NAMI_DECK_ENTRY_H
#define NAMI_DECK_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "deck/deck.h"

enum { NAMI_DECK_BYTES = 1 << 20, NAMI_DECK_ENTRIES = 4096 };

typedef struct nami_deck_entry {
    char *section; /* owned */
    char *key;     /* owned */
    char *value;   /* owned; quotes removed */
    int line;      /* 1.. in the file, 0 from the command line */
} nami_deck_entry;

struct nami_deck {
    char *where;            /* owned; file name for messages */
    int count;              /* entries */
    nami_deck_entry *entry; /* count entries, room for a power of two */
};

/* An empty deck. Local. */
nami_deck *nami_deck_create(const char *where);

/* The entry of section.key, NULL when there is none. Local. */
nami_deck_entry *nami_deck_find(const nami_deck *deck, const char *section,
                                const char *key);

/* Append an entry; the texts are copied. Local. Status: NAMI_EINPUT when the deck is full. */
nami_status nami_deck_append(nami_deck *deck, const char *section, const char *key,
                             const char *value, int line);

/* "deck.ini:12" or "command line", into buf[n]; returns buf. Local. */
const char *nami_deck_place(const nami_deck *deck, int line, char *buf, size_t n);

/* Length of the name at the start of `s` (at most n bytes), 0 when there is none. Local. */
size_t nami_deck_name(const char *s, size_t n);

#endif
