/* SPDX-License-Identifier: MIT */
/* price.h - what the stages of a candidate cost: seconds, bytes of messages, the end of a step. */
#ifndef NAMI_PLAN_PRICE_H
#define NAMI_PLAN_PRICE_H

#include "plan/advise.h"

/* Work of single blocks. */
typedef struct nami_block_prices {
    int blocks;
    /* [3][blocks] of F, BI, BW: FLOPs of one sample, or seconds where blocks take set times */
    double *work;
    int64_t *elements; /* [blocks] of parameters that the block uses first */
    int tied;          /* parameter used by the first and the last block; -1: none */
} nami_block_prices;

/* Local. Status: NAMI_EENV when the backend lacks a kernel. Freed with nami_block_prices_free, also after a failure. */
nami_status nami_block_prices_make(const nami_advise_request *r,
                                   nami_block_prices *out);
void nami_block_prices_free(nami_block_prices *p);

/* Stages of a placement, before micro-batches are known. */
typedef struct nami_shape_of_stages {
    nami_place place;
    int *cut; /* [stages + 1] */
} nami_shape_of_stages;

typedef struct nami_stage_prices {
    int stages;
    double *f, *bi, *bw; /* [stages] seconds of one micro-batch */
    double *bytes;       /* [stages] of the message behind each */
    /* seconds of the gradient sum over replicas, of the slowest position */
    double reduce;
    /* seconds behind the last action: a tied embedding's two sums, the optimiser */
    double after;
    /* bytes that the fullest position needs at least: weights and their state */
    double least;
    double busy;  /* seconds of one micro-batch on the busiest position, F, BI and BW */
    double again; /* the same with the forward run again */
} nami_stage_prices;

/* Local. Freed with nami_stage_prices_free. */
void nami_stage_prices_make(const nami_advise_request *r, const nami_block_prices *b,
                            const nami_shape_of_stages *shape, int replicas,
                            int64_t micro, nami_stage_prices *out);
void nami_stage_prices_free(nami_stage_prices *p);

/* As costs of the simulator; borrows the tables. Local. */
nami_cost nami_stage_prices_cost(const nami_advise_request *r,
                                 const nami_stage_prices *p);

#endif
