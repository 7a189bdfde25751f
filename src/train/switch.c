/* SPDX-License-Identifier: MIT */
/* switch.c - [switch] and [switch2] of the deck: another pipeline from some step on. */
#include "train/switch.h"

#include <string.h>

#include "base/memory.h"

#define ROW(name, field, text)                                                         \
    {                                                                                  \
        .section = name, .key = #field, .kind = NAMI_OPTION_TEXT,                      \
        .offset = offsetof(nami_switch_options, field), .fallback = "", .help = text   \
    }
#define KEY(name, field) ROW(name, field, "As in [pipeline], from the switch on.")
#define KEPT(name, field)                                                              \
    ROW(name, field, "As in [pipeline], from the switch on; empty: as before.")
#define ROWS(name)                                                                     \
    ROW(name, at,                                                                      \
        "When the layout changes: N steps, or N epochs of data.train. Parameters "     \
        "and optimiser state go from rank to rank. Empty: never."),                    \
        ROW(name, schedule,                                                            \
            "As in [pipeline], from the switch on. Without it every key that is "      \
            "empty stays as before; with it those that shape a layout (positions, "    \
            "replicas, placement, order, weights, split, stage_replicas, cuts, "       \
            "depth, ...) start from their defaults."),                                 \
        KEY(name, positions), KEPT(name, waves), KEPT(name, chunks),                   \
        KEPT(name, slices), KEPT(name, microbatches), KEY(name, replicas),             \
        KEPT(name, zero), KEPT(name, recompute), KEY(name, placement),                 \
        KEY(name, order), KEY(name, weights), KEY(name, split),                        \
        KEY(name, stage_replicas), KEY(name, cuts), KEY(name, depth),                  \
        KEY(name, stage_recompute), KEPT(name, window)

static const nami_option first_rows[] = {ROWS("switch")};
static const nami_option second_rows[] = {ROWS("switch2")};

const nami_option_table nami_switch_tables[NAMI_SWITCHES] = {
    {.row = first_rows, .rows = sizeof first_rows / sizeof *first_rows},
    {.row = second_rows, .rows = sizeof second_rows / sizeof *second_rows},
};

static const char *text_of(const nami_switch_options *o, const nami_option *row)
{
    return *(char *const *)(const void *)((const char *)o + row->offset);
}

nami_switch_options nami_switch_none(void)
{
    static char nothing[] = "";
    const nami_option_table *t = &nami_switch_tables[0];
    nami_switch_options o = {0};
    for (int i = 0; i < t->rows; i++)
        *(char **)(void *)((char *)&o + t->row[i].offset) = nothing;
    return o;
}

/* Keys that the section sets, beside `at`. */
static int count_keys(const nami_switch_options *o, const nami_option_table *t)
{
    int count = 0;
    for (int i = 0; i < t->rows; i++)
        count += strcmp(t->row[i].key, "at") != 0 && *text_of(o, &t->row[i]) != '\0';
    return count;
}

/* "60 epochs": the number, and whether epochs are meant. */
static bool read_time(const char *text, double *number, bool *epochs)
{
    size_t digits = strcspn(text, " \t");
    const char *unit = text + digits + strspn(text + digits, " \t");
    char *first = nami_strf("%.*s", (int)digits, text);
    bool good = nami_parse_real(first, number);
    nami_free(first);
    *epochs = !strcmp(unit, "epochs") || !strcmp(unit, "epoch");
    return good &&
           (*epochs || !*unit || !strcmp(unit, "steps") || !strcmp(unit, "step"));
}

nami_status nami_switch_read(const nami_switch_options *o, int number, bool *given,
                             nami_switch_time *out)
{
    const nami_option_table *t = &nami_switch_tables[number];
    const char *section = t->row[0].section;
    int keys = count_keys(o, t);
    double x = 0;
    bool epochs = false;
    *given = *o->at != '\0';
    *out = (nami_switch_time){0};
    if (!*given && keys > 0)
        return nami_fail(NAMI_EINPUT,
                         "[%s] says what changes, but not when: set %s.at, as '5000 "
                         "steps' or '60 epochs'",
                         section, section);
    if (!*given)
        return NAMI_OK;
    if (!read_time(o->at, &x, &epochs) || !(x > 0) || x > 1e12 ||
        (!epochs && x != (double)(int64_t)x))
        return nami_fail(
            NAMI_EINPUT,
            "%s.at = '%.60s': expected '5000 steps' (whole, at least 1) or "
            "'60 epochs'",
            section, o->at);
    if (keys == 0)
        return nami_fail(NAMI_EINPUT,
                         "%s.at is set, but nothing that would change: set "
                         "%s.schedule, or other keys of [pipeline]",
                         section, section);
    *out =
        (nami_switch_time){.steps = epochs ? 0 : (int64_t)x, .epochs = epochs ? x : 0};
    return NAMI_OK;
}

bool nami_switch_keeps(const char *key)
{
    static const char *const kept[] = {"waves",     "chunks", "slices", "microbatches",
                                       "recompute", "window", "zero"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strcmp(key, kept[i]))
            return true;
    return false;
}

/* Set `row` in `to` as it is in `from`. */
static nami_status copy_row(const nami_option *row, const nami_pipeline_options *from,
                            nami_pipeline_options *to)
{
    if (row->kind == NAMI_OPTION_TEXT) { /* its echo may be quoted */
        const char *text =
            *(char *const *)(const void *)((const char *)from + row->offset);
        return nami_option_set(row, to, text, "[pipeline]");
    }
    nami_text value = {0};
    nami_option_echo(row, from, &value);
    nami_status status = nami_option_set(row, to, nami_text_get(&value), "[pipeline]");
    nami_text_free(&value);
    return status;
}

nami_status nami_switch_copy(const nami_pipeline_options *from,
                             nami_pipeline_options *out)
{
    for (int i = 0; i < nami_pipeline_table.rows; i++)
        NAMI_TRY(copy_row(&nami_pipeline_table.row[i], from, out));
    return NAMI_OK;
}

nami_status nami_switch_apply(const nami_switch_options *o, int number,
                              const nami_pipeline_options *before,
                              nami_pipeline_options *out)
{
    const nami_option_table *t = &nami_switch_tables[number];
    bool fresh = *o->schedule != '\0';
    NAMI_TRY(nami_option_defaults(&nami_pipeline_table, out));
    for (int i = 0; i < nami_pipeline_table.rows; i++) {
        const nami_option *key = &nami_pipeline_table.row[i];
        const nami_option *row = nami_option_find(t, key->key);
        NAMI_CHECK(row);          /* every key of [pipeline] is one of [switch] */
        nami_option named = *key; /* so that a complaint names this section */
        named.section = row->section;
        if (*text_of(o, row) != '\0')
            NAMI_TRY(nami_option_set(&named, out, text_of(o, row), row->section));
        else if (!fresh || nami_switch_keeps(key->key))
            NAMI_TRY(copy_row(key, before, out));
    }
    return NAMI_OK;
}
