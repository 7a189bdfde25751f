/* SPDX-License-Identifier: MIT */
/* option.h - the row type of the option tables.
 *
 * Each module owns a table of rows beside the struct they fill; deck/ parses, range-checks, echoes and
 * documents an option from the same row. A row fills the field at `offset` of the module's struct.
 */
#ifndef NAMI_BASE_OPTION_H
#define NAMI_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"

typedef enum nami_option_kind {
    NAMI_OPTION_INT,      /* int64_t, minimum..maximum */
    NAMI_OPTION_REAL,     /* double, minimum..maximum */
    NAMI_OPTION_BOOL,     /* bool: yes, no, on, off, true, false, 1, 0 */
    NAMI_OPTION_TEXT,     /* char *, owned by the struct; "" when empty */
    NAMI_OPTION_CHOICE,   /* int: index into choices */
    NAMI_OPTION_DURATION, /* double, seconds; forms of nami_parse_duration */
    NAMI_OPTION_INTS /* nami_ints: whole numbers separated by blanks, commas or '-' */
} nami_option_kind;

typedef struct nami_ints {
    int count;
    int *item; /* count numbers, owned */
} nami_ints;

typedef struct nami_option {
    const char *section; /* "pipeline"; NULL for a flag of the command line */
    const char *key;     /* "positions" */
    nami_option_kind kind;
    size_t offset;           /* of the field in the module's struct */
    const char *fallback;    /* default as text, read like the user's; NULL: required */
    double minimum, maximum; /* inclusive, of a number or each list item; both 0: any */
    const char *const *choices; /* NULL-terminated, for CHOICE */
    const char *unit;           /* "samples", NULL when none */
    const char *help;           /* one sentence for the manual */
} nami_option;

typedef struct nami_option_table {
    const nami_option *row;
    int rows;
} nami_option_table;

/* The row of `key`, NULL when the table has none. Local. */
const nami_option *nami_option_find(const nami_option_table *table, const char *key);

/* Fill the row's field of `object` with the parsed `value` (frees a text or list set before).
 *
 * Local. `where` names the place for the message ("deck.ini:12").
 * Status: NAMI_EINPUT naming the key, the value and what was expected.
 */
nami_status nami_option_set(const nami_option *row, void *object, const char *value,
                            const char *where);

/* Fill all fields of `object` (zeroed before first use) with the defaults. Local. */
nami_status nami_option_defaults(const nami_option_table *table, void *object);

/* Free texts and lists of `object`. Local. */
void nami_option_release(const nami_option_table *table, void *object);

/* The field's value as deck text, appended to `out`. Local. */
void nami_option_echo(const nami_option *row, const void *object, nami_text *out);

/* Whether the field has the row's default. Local. */
bool nami_option_untouched(const nami_option *row, const void *object);

/* When an option does something. */
typedef struct nami_option_reach {
    const char *key;  /* of a row of the table */
    bool read;        /* whether the other options let it do something */
    const char *when; /* else: "without train.clip above 0", "with --evaluate" */
} nami_option_reach;

/* Refuse the first of `reach` [count] that is set, not to its default, and would do nothing.
 *
 * Local. Status: NAMI_EINPUT naming the key and its `when`. In reach.c, as is the above.
 */
nami_status nami_option_check_reach(const nami_option_table *table, const void *object,
                                    const nami_option_reach *reach, int count);

#endif
