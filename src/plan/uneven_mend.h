/* SPDX-License-Identifier: MIT */
/* uneven_mend.h - a plan with the links that it really has: its seconds, and single steps that make it faster. */
#ifndef NAMI_PLAN_UNEVEN_MEND_H
#define NAMI_PLAN_UNEVEN_MEND_H

#include "plan/uneven_stage.h"

/* Seconds of the slowest of `parts` stages in the view of the model; fills the parts. Local. */
double nami_uneven_slowest(const nami_uneven_model *m, nami_part *part, int parts);

/* Complete *out, whose cuts and replicas are set: recomputation by memory, times of real links, single steps while they
 * help and the bound is not reached, idle ranks. `trial` has room for its parts. Local. */
void nami_uneven_mend(nami_uneven_model *m, nami_part *trial, nami_partition *out);

#endif
