/* SPDX-License-Identifier: MIT */
/* ways.h - steps of transformers of two layers, whole and cut: what the tests of the families share. */
#ifndef NAMI_TESTS_WAYS_H
#define NAMI_TESTS_WAYS_H

#include "chain.h"

enum {
    WAYS = 12
}; /* whole, cut at every block, cut in three; fused or split; kept or recomputed */

/* Central differences of every parameter's elements against the backward pass, for `batch` samples of `time` at dropout
 * step `step`. Frees the model. */
void ways_gradient(nami_model *m, int64_t batch, int64_t time, int64_t step,
                   uint64_t seed);

/* Open one step of two micro-batches of three samples, 11 tokens each, of a model of six blocks, cut the way `way`. */
void ways_begin(chain *c, const nami_model *m, const char *backend, nami_dtype act,
                int way);

/* The same, forward and backward. */
void ways_run(chain *c, const nami_model *m, const char *backend, nami_dtype act,
              int way);

/* All ways give the bits of the first, whose loss is near `loss`, and whose gradients are not all zero. Frees the model. */
void ways_check(nami_model *m, const char *backend, nami_dtype act, double loss);

#endif
