/* SPDX-License-Identifier: MIT */
/* layout.h - a layout is a value: how one model lies on the ranks, and the bytes that takes.
 *
 * Pure given the model: computed alike on every rank, before anything is allocated; nami plan prints it.
 */
#ifndef NAMI_EXEC_LAYOUT_H
#define NAMI_EXEC_LAYOUT_H

#include "model/model.h"
#include "optim/optim.h"
#include "sched/schedule.h"

typedef struct nami_layout {
    nami_recipe recipe;
    nami_schedule train, evaluate; /* lowered and proven */
    int replicas;                  /* D, R_s equal for all stages */
    int partials;                  /* A gradient sums a step */
    int *cut;                      /* [stages+1] first block of each stage */
    int64_t batch;                 /* samples a step, over all replicas */
    int64_t micro;                 /* B samples a micro-batch */
    int64_t time;                  /* T tokens a sample */
    nami_dtype act, wide;
    bool recompute;
} nami_layout;

/* Bytes of one position, by tag, exactly as the executor will ask for them; and what a table shows. */
typedef struct nami_budget {
    size_t bytes[NAMI_MEM_TAGS];
    size_t total;
    int first_block, last_block; /* of its stages, for the table; a position may own several stages */
    int64_t parameters;          /* elements */
    double flops;                /* of its stages, forward of one micro-batch */
    int slots;                   /* activations in flight, sum over its stages */
} nami_budget;

/* [out: positions] Local. Builds and plans the graphs with backend b, allocates nothing that lasts.
 * Status: NAMI_EPLAN, NAMI_EENV. */
nami_status nami_layout_budget(const nami_layout *l, const nami_model *m, const nami_optim_options *o,
                               nami_backend *b, nami_budget *out);
void nami_layout_free(nami_layout *l);

#endif
