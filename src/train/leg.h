/* SPDX-License-Identifier: MIT */
/* leg.h - the legs of a run: steps that follow each other with one layout. The first is [pipeline]'s, each switch
 * begins another.
 */
#ifndef NAMI_TRAIN_LEG_H
#define NAMI_TRAIN_LEG_H

#include "exec/layout.h"
#include "train/switch.h"

enum { NAMI_LEGS = 1 + NAMI_SWITCHES };

typedef struct nami_leg {
    nami_pipeline_options pipeline; /* complete; owned */
    nami_switch_time at;            /* when it begins; zeros: with the run */
    int64_t first;       /* steps done when it begins; set by nami_legs_place */
    nami_layout layout;  /* planned; moved away when the leg begins */
    nami_budget *budget; /* [positions]; likewise */
} nami_leg;

/* Read the legs of a deck: its [pipeline] and `change` [NAMI_SWITCHES]. Local; `leg` [NAMI_LEGS] is zeroed on entry and
 * freed with nami_legs_free, also after a failure. Status: NAMI_EINPUT. */
nami_status nami_legs_make(const nami_pipeline_options *pipeline,
                           const nami_switch_options *change, nami_leg *leg, int *legs);
void nami_legs_free(nami_leg *leg);

/* Where a run stands: what epochs are counted from. */
typedef struct nami_leg_place {
    int64_t epoch;        /* samples; 0: there is no data set */
    int64_t batch;        /* samples a step */
    int64_t step, sample; /* done */
} nami_leg_place;

/* Set `first` of all legs, and *current to the one that runs the step after p->step. Local.
 * Status: NAMI_EINPUT when a leg does not begin after the one before it, or epochs of no data set. */
nami_status nami_legs_place(nami_leg *leg, int legs, const nami_leg_place *p,
                            int *current);

/* Append "4 positions x 2 replicas", or "3 positions of 4-3-1 ranks". Local. */
void nami_leg_shape(const nami_layout *l, nami_text *out);

/* Append "4-3-1", the ranks of each position. Local. */
void nami_leg_replicas(const nami_layout *l, nami_text *out);

/* "[pipeline]", "[switch]", "[switch2]". Local. */
const char *nami_leg_name(int number);

#endif
