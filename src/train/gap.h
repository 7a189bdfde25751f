/* SPDX-License-Identifier: MIT */
/* gap.h - where a measured step and its prediction part: the delay of messages, and idle time nobody predicted. */
#ifndef NAMI_TRAIN_GAP_H
#define NAMI_TRAIN_GAP_H

#include "exec/layout.h"
#include "sim/sim.h"

enum { NAMI_GAPS = 3 };

/* Idle time of a rank in front of an action. */
typedef struct nami_gap {
    int rank;
    nami_action before;
    double measured, predicted; /* seconds */
} nami_gap;

/* Seconds from the end of an action to the start of one on another rank that waited for nothing else: the median
 * over a measured step of layout `l`; 0 when there was none. Local. */
double nami_gap_hop(const nami_timeline *measured, const nami_layout *l);

/* The gaps that exceed their prediction most, the largest first; returns how many. Local. */
int nami_gap_largest(const nami_timeline *measured, const nami_timeline *predicted,
                     const nami_layout *l, nami_gap out[NAMI_GAPS]);

#endif
