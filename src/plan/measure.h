/* SPDX-License-Identifier: MIT */
/* measure.h - a profile of this machine: passes of each block on the backend, and links between ranks. */
#ifndef NAMI_PLAN_MEASURE_H
#define NAMI_PLAN_MEASURE_H

#include "comm/comm.h"
#include "model/model.h"
#include "plan/chain.h"

typedef struct nami_measure_request {
    nami_comm *comm;
    const nami_model *model;
    nami_backend *backend;
    nami_dtype act;
    int64_t samples; /* of a pass */
    int warm;        /* passes before the first that counts */
    int repeats;     /* passes of which the median counts, >= 1 */
} nami_measure_request;

/* Measure every block by the real walks of its graph, all ranks at once; times are means over ranks. Bytes are those of
 * the graph's plan with B in one piece.
 *
 * Collective on r->comm. Freed with nami_chain_free, also after a failure.
 * Status: NAMI_EENV when the backend cannot run the model; agreed. */
nami_status nami_measure_blocks(const nami_measure_request *r, nami_chain *out);

/* Measure latency, rate and sum over two replicas between the first two ranks of a node and the first ranks of two
 * nodes; messages of `bytes`, from host memory. A class without such a pair stays 0.
 *
 * Collective on c. Status: those of nami_reducer_open; agreed. */
nami_status nami_measure_links(nami_comm *c, size_t bytes, int repeats,
                               nami_chain *out);

#endif
