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
    int64_t zero;          /* 1: each replica keeps a slice of the optimiser's state */
    bool recompute;
    int placement;            /* 0: the preset's, else nami_placement_kind + 1 */
    char *order;              /* "": the preset's */
    int weights;              /* 0: the preset's, else nami_weights + 1 */
    int split;                /* 0: the preset's, else nami_split + 1 */
    nami_ints stage_replicas; /* R of each position */
    nami_ints cuts;  /* first block of each stage; empty: balanced by the partitioner */
    nami_ints depth; /* units that each stage runs ahead, order 1f1b */
    nami_ints stage_recompute; /* 1: the stage runs its forward again */
    int64_t window;            /* updates between drains, without a flush */
} nami_pipeline_options;

extern const nami_option_table nami_pipeline_table;

/* Of a CHOICE: 0 as the named schedule has it, else 1 + nami_weights, 1 + nami_split. */
extern const char *const nami_weights_choices[], *const nami_split_choices[];

/* The recipe of one pipeline on `ranks` ranks: M / D micro-batches a step (M with split = sample); without a flush a
 * whole window of them. The recipe borrows names and lists from `o`.
 *
 * Local. Status: NAMI_EINPUT for values that make no sense, NAMI_EPLAN with the arithmetic for those
 * that do not fit together. */
nami_status nami_recipe_from_options(const nami_pipeline_options *o, int ranks,
                                     nami_recipe *out);

#endif
