/* SPDX-License-Identifier: MIT */
/* optim.h - optimisers, clipping and learning-rate rules. */
#ifndef NAMI_OPTIM_OPTIM_H
#define NAMI_OPTIM_OPTIM_H

#include "backend/backend.h"
#include "base/option.h"

typedef enum nami_optimizer {
    NAMI_OPTIMIZER_SGD,
    NAMI_OPTIMIZER_ADAMW,
    NAMI_OPTIMIZER_ADAM,
    NAMI_OPTIMIZER_RMSPROP
} nami_optimizer;
typedef enum nami_clip_scope { NAMI_CLIP_ALL, NAMI_CLIP_STAGE } nami_clip_scope;
typedef enum nami_rate {
    NAMI_RATE_CONSTANT,
    NAMI_RATE_COSINE,
    NAMI_RATE_STEP,
    NAMI_RATE_POLYNOMIAL,
    NAMI_RATE_EXPONENTIAL
} nami_rate; /* after the warm-up */

/* The part of [train] that belongs to the optimiser. */
typedef struct nami_optim_options {
    int optimizer;        /* nami_optimizer */
    int rate;             /* nami_rate */
    double lr, min_lr;    /* peak and final rate */
    int64_t warmup;       /* steps of linear warm-up */
    int64_t rate_steps;   /* steps until min_lr; 0 = train.steps */
    double rate_power;    /* of the polynomial */
    double rate_factor;   /* of step and exponential, (0,1] */
    int64_t rate_every;   /* steps in which the factor applies once; 0: milestones */
    nami_ints milestones; /* steps at which it does, rising; owned by the table */
    char *betas; /* "0.9 0.95" as the deck has it; owned, released with the table */
    double beta1, beta2; /* Adam, AdamW; set from betas by nami_optim_resolve */
    double momentum;     /* SGD, RMSprop */
    double alpha;        /* RMSprop: decay rate of the mean of squares */
    bool nesterov;       /* SGD */
    bool centered;       /* RMSprop: squares about the mean of the gradients */
    bool correct;        /* PipeMare's T2: keep the mean of updates as one more state */
    int clip_scope;      /* nami_clip_scope: whose norm */
    double clip;         /* largest norm, 0 = off */
    double eps;          /* added to the root; not SGD */
    double decay;   /* of weights, AdamW: decoupled; others: added to the gradient */
    int64_t anneal; /* steps of PipeMare's T1, see predict.h; 0 = off */
    double correct_decay; /* D of T2 */
} nami_optim_options;

extern const nami_option_table nami_optim_option_table;

/* Read betas and check what concerns several keys; call once the table's fields are set. Local.
 * Status: NAMI_EINPUT naming the key. */
nami_status nami_optim_resolve(nami_optim_options *o);

/* Learning rate of 0-based `step` of `steps`: nanoGPT's warm-up, then o->rate, as the option's help says. Local. */
double nami_optim_rate(const nami_optim_options *o, int64_t step, int64_t steps);

/* State arrays per parameter, 1 to NAMI_OPTIM_STATES: SGD m; Adam, AdamW m, v; RMSprop v, with momentum m, centered
 * mean; and with o->correct drift behind them. Local. */
enum { NAMI_OPTIM_STATES = 4 };
int nami_optim_states(const nami_optim_options *o);

/* Group of state 0 <= s < states in a checkpoint: "optimizer/m". Static text. Local. */
const char *nami_optim_state_group(const nami_optim_options *o, int s);

/* Factor on all gradients for a global norm: min(1, clip/(norm+1e-6)) as torch; 1 when off. Local. */
double nami_optim_clip(const nami_optim_options *o, double norm);

/* One parameter of an update. */
typedef struct nami_optim_item {
    int64_t count;
    bool decay;
    void *w;                    /* written */
    const void *from;           /* read; NULL: w itself */
    void *m, *v, *mean, *drift; /* those there are; see nami_optim_place */
    const void *g;
} nami_optim_item;

/* Point m, v, mean and drift of *item at its states: the first lies at `first`, the others `stride` bytes apart in the order
 * of nami_optim_state_group; those that the optimiser lacks are NULL. Local. */
void nami_optim_place(const nami_optim_options *o, void *first, size_t stride,
                      nami_optim_item *item);

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
