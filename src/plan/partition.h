/* SPDX-License-Identifier: MIT */
/* partition.h - a chain of blocks cut into stages, each with replicas of its own: what planners find.
 *
 * Times are those of the steady state of an asynchronous pipeline, seconds of one mini-batch; the slowest stage is the
 * step. Fill and drain are not in them.
 */
#ifndef NAMI_PLAN_PARTITION_H
#define NAMI_PLAN_PARTITION_H

#include "plan/chain.h"
#include "sched/schedule.h"

typedef struct nami_part {
    int first, last; /* blocks [first, last) */
    int replicas;    /* R_s */
    bool recompute;
    int versions;                     /* of the weights that the memory rule counts */
    double compute, transfer, reduce; /* seconds of one rank, each alone */
    double seconds;                   /* of a step, overlap included */
    double bytes;                     /* of one rank, by the method's own rule */
} nami_part;

typedef struct nami_partition {
    int parts; /* stages */
    nami_part *part;
    int ranks;      /* sum of the replicas */
    double seconds; /* of the step: what the method minimises */
    double bound;   /* no plan of this method is faster; 0: not known */
} nami_partition;

void nami_partition_free(nami_partition *p);

/* Versions of its weights that stage `s` of `stages` holds in the steady state of an asynchronous 1F1B, and
 * mini-batches whose activations it holds then (S-s). With NAMI_WEIGHTS_VERTICAL as many as stages and more: the
 * least. Table of docs/formats.md. Local. */
int nami_partition_versions(nami_weights policy, int stages, int s);

/* Cuts, replicas and depth as sections [pipeline] and [plan] of a deck, appended to `out`. Local. */
void nami_partition_fragment(const nami_partition *p, nami_weights policy,
                             nami_text *out);

#endif
