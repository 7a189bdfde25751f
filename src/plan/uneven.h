/* SPDX-License-Identifier: MIT */
/* uneven.h - our planner: stages of an asynchronous pipeline with replicas of their own, on ranks numbered stage by stage.
 *
 * The step is the slowest stage's time for one mini-batch in the steady state. Of a stage on r replicas each rank has
 * ceil(B / r) of B samples (1/r of them where B is not known), and
 *     compute  forward (twice where it recomputes), then the backward, block by block from the last; a block's gradient is
 *              summed over the replicas as soon as it is there and the sums before it are, beside the backward that goes
 *              on: the end of the sums follows a flow shop of two machines
 *     links    activation in and its gradient out, activation out and its gradient in, and the sums: all beside the
 *              computation, one after another on a link of one class, both directions at once
 * the larger of the two counts. A link to a neighbour is inside a node when both stages lie in it, and so are sums. A sum over r replicas moves 2 (r-1) / r of its bytes.
 * Bytes of a rank with n mini-batches on their way (stages from here to the last) and v versions by the policy:
 *     v (parameters + packed) + (1 + states) parameters           weights, gradient sums, optimiser states
 *     + n kept, or kept where it recomputes                       activations, with what passes between blocks
 *     + (n + 2) in + 2 out                                        messages; the input stays until its backward
 *     + transient                                                 of the largest block, and one value between blocks
 */
#ifndef NAMI_PLAN_UNEVEN_H
#define NAMI_PLAN_UNEVEN_H

#include "plan/partition.h"

enum { NAMI_UNEVEN_BLOCKS = 2048, NAMI_UNEVEN_RANKS = 16384 }; /* most */

typedef struct nami_uneven_request {
    const nami_chain *chain;
    int ranks;                      /* most */
    int ranks_per_node;             /* 0: all are on one */
    nami_chain_link inside, across; /* across is not read when there is one node */
    double memory;                  /* bytes of a rank; infinite: any */
    nami_weights policy;
    int states; /* of the optimiser, each as large as the parameters */
    int stages; /* most */
} nami_uneven_request;

/* Cuts, replicas and recomputation whose slowest stage is fastest.
 *
 * On one node, with equal links, and while blocks^2 x stages x (ranks of a node)^3 is at most 1e6, it is the best of all.
 * Else the class of a link depends on where a
 * stage's ranks lie: then out->bound, the optimum as if every link were of the better class, tells how far from the best
 * the plan can be. Ranks that would not make any stage faster stay out of the plan.
 * Local. Freed with nami_partition_free, also after a failure. Status: NAMI_EPLAN when nothing fits, or the problem is
 * larger than the above. */
nami_status nami_uneven(const nami_uneven_request *r, nami_partition *out);

#endif
