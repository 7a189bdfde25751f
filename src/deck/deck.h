/* SPDX-License-Identifier: MIT */
/* deck.h - the input deck: grammar, binding to option tables, echo, manual.
 *
 *   # a comment, also behind a value after a blank
 *   [section]
 *   key = value
 *   text = "quoted: keeps blanks and #, knows \" \\ \n \t \r"
 *
 * Names are a-z, 0-9 and '_', starting with a letter. A section may be opened again; a key may
 * not be set twice. A deck has at most 1 MiB and 4096 keys. Later assignments from the command
 * line replace the deck's and each other.
 */
#ifndef NAMI_DECK_DECK_H
#define NAMI_DECK_DECK_H

#include <stddef.h>

#include "base/option.h"

typedef struct nami_deck nami_deck;

/* Read the file at `path`; the caller frees *deck with nami_deck_free.
 *
 * Local. Status: NAMI_EINPUT naming file, line and what was expected; *deck is then NULL.
 */
nami_status nami_deck_read(const char *path, nami_deck **deck);

/* Append the text of the file at `path` to `out`, for a caller that hands it to other ranks.
 *
 * Local. Status: NAMI_EINPUT when it cannot be read or cannot be a deck (too long, a NUL in it).
 */
nami_status nami_deck_load(const char *path, nami_text *out);

/* Read `bytes` bytes of text; `where` is named in messages. Otherwise as nami_deck_read. Local. */
nami_status nami_deck_parse(const char *text, size_t bytes, const char *where,
                            nami_deck **deck);

/* Set one key from "section.key=value"; the value is taken as it stands, without quotes.
 *
 * Local. Status: NAMI_EINPUT when it has not this form.
 */
nami_status nami_deck_override(nami_deck *deck, const char *assignment);

/* Fill objects[i] (zeroed, or bound before) from the defaults of tables[i], then from the deck.
 *
 * Local. The caller releases the objects with nami_option_release, also after a failure.
 * Status: NAMI_EINPUT for an unknown section or key (with the nearest known one), a bad value, or
 * required keys that are missing (all named). NAMI_EBUG when two tables own the same key.
 */
nami_status nami_deck_bind(const nami_deck *deck,
                           const nami_option_table *const tables[],
                           void *const objects[], int n);

/* The text of section.key in the deck as it was set, NULL when it was not set. Local. */
const char *nami_deck_value(const nami_deck *deck, const char *section,
                            const char *key);

/* Append all keys of all tables, in order, as a deck that reads back to the same values. Local. */
void nami_deck_echo(const nami_option_table *const tables[],
                    const void *const objects[], int n, nami_text *out);

/* Append the manual page nami-deck(5) in man format, from the rows of the tables. Local. */
void nami_deck_manual(const nami_option_table *const tables[], int n, nami_text *out);

/* Give back; NULL allowed. Local. */
void nami_deck_free(nami_deck *deck);

#endif
