/* SPDX-License-Identifier: MIT */
/* manual.c - nami manual: the page nami-deck(5), from the option tables. Used by the build. */
#include "base/log.h"
#include "cli/cli.h"
#include "deck/deck.h"
#include "train/options.h"

static nami_status run_manual(const nami_call *call)
{
    nami_text page = {0};
    (void)call;
    nami_deck_manual(nami_settings_tables, NAMI_SETTINGS_PARTS, &page);
    nami_print("%s", nami_text_get(&page));
    nami_text_free(&page);
    return NAMI_OK;
}

const nami_command nami_cli_manual = {
    .name = "manual",
    .words = "",
    .summary = "print nami-deck(5), the manual page of the input deck",
    .hidden = true,
    .run = run_manual,
};
