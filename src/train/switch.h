/* SPDX-License-Identifier: MIT */
/* switch.h - [switch] and [switch2] of the deck: another pipeline from some step on.
 *
 * A key of [switch] is a key of [pipeline]. One that is not given keeps its value; but a new `schedule` begins from the
 * defaults with what shapes a layout, and keeps only what nami_switch_keeps names.
 */
#ifndef NAMI_TRAIN_SWITCH_H
#define NAMI_TRAIN_SWITCH_H

#include "base/option.h"
#include "sched/options.h"

enum { NAMI_SWITCHES = 2 };

/* One section; every text is "" where the deck says nothing. */
typedef struct nami_switch_options {
    char *at; /* "60 epochs", "5000 steps", "5000" */
    char *schedule, *positions, *waves, *chunks, *slices, *microbatches, *replicas,
        *zero, *recompute, *placement, *order, *weights, *split, *stage_replicas, *cuts,
        *depth, *stage_recompute, *window;
} nami_switch_options;

extern const nami_option_table nami_switch_tables[NAMI_SWITCHES];

/* A section that says nothing; its texts are not to be released. Local. */
nami_switch_options nami_switch_none(void);

/* When a switch is: after so many steps, or epochs of the training set. */
typedef struct nami_switch_time {
    int64_t steps; /* 0: epochs count */
    double epochs;
} nami_switch_time;

/* Read switch `number`; *given false when the deck has none.
 * Local. Status: NAMI_EINPUT when `at` makes no sense, is missing, or stands alone. */
nami_status nami_switch_read(const nami_switch_options *o, int number, bool *given,
                             nami_switch_time *out);

/* Whether `key` of [pipeline] keeps its value when a switch names another schedule. Local. */
bool nami_switch_keeps(const char *key);

/* A copy of `from`, into zeroed `out`; released with nami_option_release. Local. */
nami_status nami_switch_copy(const nami_pipeline_options *from,
                             nami_pipeline_options *out);

/* The pipeline after switch `number`, from the one before it, into zeroed `out`; released with nami_option_release, also
 * after a failure. Local. Status: NAMI_EINPUT naming the key. */
nami_status nami_switch_apply(const nami_switch_options *o, int number,
                              const nami_pipeline_options *before,
                              nami_pipeline_options *out);

#endif
