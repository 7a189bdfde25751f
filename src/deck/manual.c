/* SPDX-License-Identifier: MIT */
/* manual.c - nami-deck(5), written from the option rows. */
#include <string.h>

#include "deck/deck.h"

static const char head[] =
    ".\\\" written by nami from its option tables; do not edit\n"
    ".TH NAMI-DECK 5 2026-11-30 nami \"nami manual\"\n"
    ".SH NAME\n"
    "nami-deck \\- input deck of nami(1)\n"
    ".SH DESCRIPTION\n"
    "A deck is a text of at most 1 MiB that describes one training run.\n"
    ".PP\n"
    ".nf\n"
    "# a comment, also behind a value after a blank\n"
    "[section]\n"
    "key = value\n"
    "text = \"quoted: keeps blanks and #, knows \\e\" \\e\\e \\en \\et \\er\"\n"
    ".fi\n"
    ".PP\n"
    "Names consist of small letters, digits and \\(aq_\\(aq.\n"
    "A section may be opened again; a key may not be set twice.\n"
    "An unknown section or key is an error.\n"
    "On the command line\n"
    ".I section.key=value\n"
    "sets a key after the deck was read; the last assignment counts.\n"
    "The resolved deck, with every key of this page, is written into the run "
    "directory.\n"
    ".SH KEYS\n";

/* Append `s` so that roff prints it as it stands. */
static void add_plain(nami_text *out, const char *s)
{
    if (*s == '.' || *s == '\'')
        nami_text_add(out, "\\&");
    for (; *s; s++) {
        if (*s == '\\')
            nami_text_add(out, "\\e");
        else if (*s == '-')
            nami_text_add(out, "\\-");
        else if (*s == '\n')
            nami_text_add(out, " ");
        else
            nami_text_add(out, "%c", *s);
    }
}

static void add_number(nami_text *out, double x)
{
    nami_text digits = {0};
    nami_text_number(&digits, x);
    add_plain(out, nami_text_get(&digits));
    nami_text_free(&digits);
}

static const char *kind_words(nami_option_kind kind)
{
    switch (kind) {
    case NAMI_OPTION_INT:
        return "whole number";
    case NAMI_OPTION_REAL:
        return "number";
    case NAMI_OPTION_BOOL:
        return "yes or no";
    case NAMI_OPTION_TEXT:
        return "text";
    case NAMI_OPTION_CHOICE:
        return "choice";
    case NAMI_OPTION_DURATION:
        return "duration (90, 90s, 15m, 2h, 1:30:00)";
    case NAMI_OPTION_INTS:
        return "whole numbers separated by blanks, commas or \\-";
    }
    return "";
}

static void add_choices(nami_text *out, const nami_option *row)
{
    for (int i = 0; row->choices[i]; i++) {
        nami_text_add(out, "%s\\fB", i ? ", " : "");
        add_plain(out, row->choices[i]);
        nami_text_add(out, "\\fR");
    }
    nami_text_add(out, ".\n");
}

/* What values the row takes: kind, choices, range, unit. */
static void add_values(nami_text *out, const nami_option *row)
{
    if (row->kind == NAMI_OPTION_CHOICE) {
        nami_text_add(out, "One of ");
        add_choices(out, row);
        return;
    }
    nami_text_add(out, "Value: %s", kind_words(row->kind));
    if (row->minimum != 0.0 || row->maximum != 0.0) {
        nami_text_add(out, ", from ");
        add_number(out, row->minimum);
        nami_text_add(out, " to ");
        add_number(out, row->maximum);
    }
    if (row->unit) {
        nami_text_add(out, ", in ");
        add_plain(out, row->unit);
    }
    nami_text_add(out, ".\n");
}

static void add_row(nami_text *out, const nami_option *row)
{
    nami_text_add(out, ".TP\n.B %s\n", row->key);
    add_plain(out, row->help ? row->help : "");
    nami_text_add(out, "\n");
    add_values(out, row);
    if (!row->fallback) {
        nami_text_add(out, "Required.\n");
    } else if (*row->fallback) {
        nami_text_add(out, "Default: \\fB");
        add_plain(out, row->fallback);
        nami_text_add(out, "\\fR.\n");
    } else {
        nami_text_add(out, "Empty by default.\n");
    }
}

/* Whether rows before row i of table t have its section. */
static bool section_seen(const nami_option_table *const tables[], int t, int i)
{
    const char *section = tables[t]->row[i].section;
    for (int s = 0; s <= t; s++)
        for (int j = 0; j < (s == t ? i : tables[s]->rows); j++)
            if (!strcmp(tables[s]->row[j].section, section))
                return true;
    return false;
}

/* All rows of `section`, whichever tables they are in. */
static void add_section(const nami_option_table *const tables[], int n,
                        const char *section, nami_text *out)
{
    nami_text_add(out, ".SS [%s]\n", section);
    for (int t = 0; t < n; t++)
        for (int i = 0; i < tables[t]->rows; i++)
            if (!strcmp(tables[t]->row[i].section, section))
                add_row(out, &tables[t]->row[i]);
}

void nami_deck_manual(const nami_option_table *const tables[], int n, nami_text *out)
{
    nami_text_add(out, "%s", head);
    for (int t = 0; t < n; t++)
        for (int i = 0; i < tables[t]->rows; i++)
            if (!section_seen(tables, t, i))
                add_section(tables, n, tables[t]->row[i].section, out);
    nami_text_add(out, ".SH SEE ALSO\n.BR nami (1)\n");
}
