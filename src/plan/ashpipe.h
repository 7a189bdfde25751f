/* SPDX-License-Identifier: MIT */
/* ashpipe.h - the planner of AshPipe (HPC Asia 2024, DOI 10.1145/3635035.3635045), as its authors define it.
 *
 * Ranks form levels, as 4 in a node and 2 nodes; level l joins `ranks` groups of the level below. Kept for comparison
 * with the authors' plans; uneven.h has the better model.
 */
#ifndef NAMI_PLAN_ASHPIPE_H
#define NAMI_PLAN_ASHPIPE_H

#include "plan/partition.h"

enum { NAMI_LEVELS_MOST = 4 };

typedef struct nami_plan_level {
    int ranks;        /* groups of the level below that this one joins */
    double bandwidth; /* bytes/s of a link of this level */
    bool connected;   /* fully: every pair has a link of its own */
} nami_plan_level;

typedef struct nami_ashpipe_request {
    const nami_chain *chain;
    nami_plan_level level[NAMI_LEVELS_MOST];
    int levels;
    double memory; /* bytes of a rank; infinite: any */
} nami_ashpipe_request;

/* The stages whose slowest is fastest, on exactly all ranks.
 *
 * Local. Freed with nami_partition_free, also after a failure.
 * Status: NAMI_EPLAN when nothing fits, or the search would take too long. */
nami_status nami_ashpipe(const nami_ashpipe_request *r, nami_partition *out);

#endif
