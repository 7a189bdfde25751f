/* SPDX-License-Identifier: MIT */
/* chain.h - a model run by hand as a chain of planned graphs, for tests.
 *
 * All memory has exactly the planned sizes, is poisoned with NaN before use and lies between canaries that are
 * checked at the end. Host backends only.
 */
#ifndef NAMI_TESTS_CHAIN_H
#define NAMI_TESTS_CHAIN_H

#include "model/model.h"

enum { CHAIN_STAGES = 16, CHAIN_MICRO = 4, CHAIN_USES = 2 };

typedef struct chain_options {
    const char *backend;
    nami_dtype act;
    int threads;
    int64_t batch, time; /* of a micro-batch */
    int slices;          /* token slices of a sample; 0: whole */
    int micro;           /* micro-batches in flight, 1..CHAIN_MICRO */
    int stages;
    const int *cut; /* [stages+1] */
    bool split, recompute;
    uint64_t seed; /* initial values and dropout */
} chain_options;

typedef struct chain_stage {
    nami_graph *graph;
    nami_graph_call call;
    void **param, **dparam; /* [uses] */
    char *kept[CHAIN_MICRO], *held[CHAIN_MICRO], *transient, *packed;
    char *input[CHAIN_MICRO], *output[CHAIN_MICRO], *dinput[CHAIN_MICRO]; /* messages */
} chain_stage;

typedef struct chain {
    chain_options o;
    int cut[CHAIN_STAGES + 1];
    const nami_model *model;
    nami_backend *backend;
    nami_dtype wide;
    chain_stage stage[CHAIN_STAGES];
    void **param;              /* [params] wide */
    void *(*grad)[CHAIN_USES]; /* [params] gradient sum of each use, NULL beyond uses */
    nami_model_sample sample;
    /* [micro * batch][words], [targets] of the sample, set by the caller */
    int32_t *token, *target;
    double *loss, *second; /* [micro * batch] */
    /* [batch * words / slices] tokens and targets of the slice at hand */
    int32_t *piece[2];
    int32_t *side;   /* [batch] side words of the micro-batch at hand */
    double *part[2]; /* [batch] losses of the slice at hand */
    int64_t step, first_sample;
    double scale, second_scale;
} chain;

/* Plan, allocate, set initial values, zero the gradients. Fails the test when something does not work. */
void chain_open(chain *c, const nami_model *m, const chain_options *o);
void chain_close(chain *c);

/* Random tokens and targets (one target in eight does not count) from `seed`; sets scale. */
void chain_tokens(chain *c, uint64_t seed);

/* Parameters have changed. */
void chain_pack(chain *c);

/* Add noise to all parameters, so that norms and biases are no longer 1 and 0, and pack. */
void chain_spread(chain *c);

/* All micro-batches through all stages. */
void chain_forward(chain *c);

/* All micro-batches back, slices from the last on: B, or all BI and then all BW. */
void chain_backward(chain *c);

/* Gradients to zero. */
void chain_zero(chain *c);

/* Sums of all losses, each times its scale. */
double chain_loss(const chain *c);

/* Element e of the gradient of parameter p, uses added. */
double chain_grad(const chain *c, int p, int64_t e);

/* Assert that central differences of the loss in every `stride`-th element of each parameter are the gradients of the backward
 * pass that was run: to 1e-6, or 1e-8 where they are small. In f64. */
void chain_assert_differences(chain *c, int64_t stride);

/* Assert equal bits of losses and of every gradient sum. */
void chain_assert_equal(const chain *a, const chain *b);

int64_t chain_count(const chain *c, int p);
double chain_get(nami_dtype d, const void *p, int64_t i);
void chain_set(nami_dtype d, void *p, int64_t i, double x);

#endif
