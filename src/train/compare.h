/* SPDX-License-Identifier: MIT */
/* compare.h - a layout against one rank, bit for bit. */
#ifndef NAMI_TRAIN_COMPARE_H
#define NAMI_TRAIN_COMPARE_H

#include "train/options.h"

/* Where two runs part. */
typedef struct nami_comparison {
    bool exact;         /* whether the layout promises equal bits */
    char promise[256];  /* why, or why not */
    int64_t steps;      /* compared */
    int64_t loss_step;  /* first step (1-based) with another loss, 0: none */
    double loss[2];     /* of that step: one rank, layout */
    int64_t param_step; /* first step after which a parameter differs, 0: none */
    char param[128];    /* the first such in model order */
    int position;       /* that holds it in the layout */
    double difference;  /* largest |difference| of any parameter after the last step */
    double loss_difference; /* largest of all steps, relative */
} nami_comparison;

/* Train `steps` steps with the layout of `settings` on all ranks and, in between, the same steps on rank 0 alone
 * with equal partial sums; compare losses and parameters after each.
 *
 * Collective. `out` is filled on rank 0. Status: as a run's, agreed. */
nami_status nami_train_compare(nami_comm *c, const nami_settings *settings,
                               int64_t steps, nami_comparison *out);

#endif
