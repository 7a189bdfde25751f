/* SPDX-License-Identifier: MIT */
/* options.h - section [pipeline] of the deck, and the recipe it gives. */
#ifndef NAMI_SCHED_OPTIONS_H
#define NAMI_SCHED_OPTIONS_H

#include "sched/schedule.h"

/* What [pipeline] says; filled from nami_pipeline_table. */
typedef struct nami_pipeline_options {
    char *schedule;        /* a preset, or "file:PATH" */
    int64_t positions;     /* P; 0: ranks / replicas */
    int64_t waves, chunks; /* W, V; read by the wave and the looping placement */
    int64_t slices;        /* K; above 1 only with an order that slices */
    int64_t microbatches;  /* per step, over all replicas */
    int64_t replicas;      /* D */
    bool recompute;
    int placement;            /* 0: the preset's, else nami_placement_kind + 1 */
    char *order;              /* "": the preset's */
    int weights;              /* 0: the preset's, else nami_weights + 1 */
    int split;                /* 0: the preset's, else nami_split + 1 */
    nami_ints stage_replicas; /* R_s of each stage */
    nami_ints cuts;  /* first block of each stage; empty: balanced by the partitioner */
    nami_ints depth; /* warm-up units of each stage, without flush */
} nami_pipeline_options;

extern const nami_option_table nami_pipeline_table;

/* The recipe of one pipeline (M / D micro-batches) on `ranks` ranks. The recipe borrows names from `o`.
 *
 * Local. Status: NAMI_EINPUT for values that make no sense, NAMI_EPLAN with the arithmetic for those
 * that do not fit together or are not supported yet. */
nami_status nami_recipe_from_options(const nami_pipeline_options *o, int ranks,
                                     nami_recipe *out);

#endif
