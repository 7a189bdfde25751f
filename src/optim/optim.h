/* SPDX-License-Identifier: MIT */
/* optim.h - optimisers, clipping and learning-rate rules. */
#ifndef NAMI_OPTIM_OPTIM_H
#define NAMI_OPTIM_OPTIM_H

#include "backend/backend.h"
#include "base/option.h"

typedef enum nami_optimizer { NAMI_OPTIMIZER_SGD, NAMI_OPTIMIZER_ADAMW } nami_optimizer;
typedef enum nami_rate {
    NAMI_RATE_CONSTANT,
    NAMI_RATE_COSINE
} nami_rate; /* after the warm-up */

/* The part of [train] that belongs to the optimiser. */
typedef struct nami_optim_options {
    int optimizer;      /* nami_optimizer */
    double lr, min_lr;  /* peak and final rate */
    int64_t warmup;     /* steps of linear warm-up */
    int rate;           /* nami_rate */
    int64_t rate_steps; /* steps until min_lr; 0 = train.steps */
    char *betas; /* "0.9 0.95" as the deck has it; owned, released with the table */
    double beta1, beta2; /* AdamW; set from betas by nami_optim_resolve */
    double momentum;     /* SGD */
    double eps;          /* AdamW */
    double
        decay; /* of weights, AdamW: decoupled; SGD: added to the gradient, as torch */
    double clip; /* global norm, 0 = off */
} nami_optim_options;

extern const nami_option_table nami_optim_option_table;

/* Read betas and check what concerns several keys; call once the table's fields are set. Local.
 * Status: NAMI_EINPUT naming the key. */
nami_status nami_optim_resolve(nami_optim_options *o);

/* Learning rate of 0-based `step` of `steps` (nanoGPT's warm-up and cosine). Local. */
double nami_optim_rate(const nami_optim_options *o, int64_t step, int64_t steps);

/* State arrays per parameter: 1 (SGD: m) or 2 (AdamW: m, v). Local. */
int nami_optim_states(const nami_optim_options *o);

/* Factor on all gradients for a global norm: min(1, clip/(norm+1e-6)) as torch; 1 when off. Local. */
double nami_optim_clip(const nami_optim_options *o, double norm);

/* One parameter of an update. */
typedef struct nami_optim_item {
    int64_t count;
    bool decay;
    void *w, *m, *v;
    const void *g;
} nami_optim_item;

/* Kernels for one parameter of `count` elements, prepared once. */
typedef struct nami_optim_kernels {
    const nami_prepared *update, *squares;
} nami_optim_kernels;
nami_status nami_optim_prepare(const nami_optim_options *o, nami_backend *b,
                               nami_dtype wide, int64_t count, nami_optim_kernels *out);

/* Update one parameter; step 0-based; scale = clip factor. Local. */
void nami_optim_update(const nami_optim_options *o, nami_backend *b, int lane,
                       const nami_optim_kernels *k, nami_dtype wide,
                       const nami_optim_item *item, double rate, double scale,
                       int64_t step);

/* Sum of squares of one gradient into *sum (host memory after nami_backend_wait). Local. */
nami_event nami_optim_squares(nami_backend *b, int lane, const nami_optim_kernels *k,
                              nami_dtype wide, int64_t count, const void *g,
                              double *sum);

#endif
