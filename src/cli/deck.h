/* SPDX-License-Identifier: MIT */
/* deck.h - from a deck file and the command line to settings. */
#ifndef NAMI_CLI_DECK_H
#define NAMI_CLI_DECK_H

#include "cli/cli.h"
#include "train/options.h"

/* Read the deck at word[0] and apply word[1..words); bind all tables.
 *
 * Collective on c when given: rank 0 reads the file and broadcasts it. Free `out` with nami_settings_release, also
 * after a failure. Status: NAMI_EINPUT, agreed. */
nami_status nami_cli_deck(nami_comm *c, char **word, int words, nami_settings *out);

/* The same of one process, without completing what only a run needs: the deck may lack a model. Local. */
nami_status nami_cli_deck_bare(char **word, int words, nami_settings *out);

/* Bind the tables to a deck given as text, as a checkpoint keeps it; `where` is named in messages. Local.
 * Free `out` as above. Status: NAMI_EINPUT. */
nami_status nami_cli_deck_text(const char *text, const char *where, nami_settings *out);

/* All keys with their values, appended to `out`. Local. */
void nami_cli_resolved(nami_settings *s, nami_text *out);

#endif
