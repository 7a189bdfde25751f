/* SPDX-License-Identifier: MIT */
/* vector.c - sums, squares and optimiser steps over whole parameters. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

void nami_ref_add(const void *args)
{
    const nami_arg_vector *a = args;
    for (int64_t i = 0; i < a->count; i++)
        nami_ref_set(a->wide, a->a, i, GET(a->wide, a->a, i) + GET(a->wide, a->b, i));
}

void nami_ref_scale(const void *args)
{
    const nami_arg_vector *a = args;
    for (int64_t i = 0; i < a->count; i++)
        nami_ref_set(a->wide, a->a, i, GET(a->wide, a->a, i) * a->s);
}

void nami_ref_squares(const void *args)
{
    const nami_arg_vector *a = args;
    double sum = 0;
    for (int64_t first = 0; first < a->count; first += NAMI_SQUARES_BLOCK) {
        double block = 0;
        for (int64_t i = first; i < a->count && i < first + NAMI_SQUARES_BLOCK; i++)
            block += GET(a->wide, a->a, i) * GET(a->wide, a->a, i);
        sum += block;
    }
    *a->sum = sum;
}

/* Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019), algorithm 2; as torch.optim.AdamW. */
void nami_ref_adamw(const void *args)
{
    const nami_arg_update *a = args;
    const double bias1 = 1 - pow(a->beta1, (double)a->step);
    const double bias2 = 1 - pow(a->beta2, (double)a->step);
    for (int64_t i = 0; i < a->count; i++) {
        const double g = GET(a->wide, a->g, i) * a->grad_scale;
        const double m = a->beta1 * GET(a->wide, a->m, i) + (1 - a->beta1) * g;
        const double v = a->beta2 * GET(a->wide, a->v, i) + (1 - a->beta2) * g * g;
        const double w = GET(a->wide, a->w, i) * (1 - a->lr * a->decay);
        nami_ref_set(a->wide, a->m, i, m);
        nami_ref_set(a->wide, a->v, i, v);
        nami_ref_set(a->wide, a->w, i,
                     w - a->lr * (m / bias1) / (sqrt(v / bias2) + a->eps));
    }
}

/* As torch.optim.SGD: m = momentum m + (g + decay w), w -= lr m. */
void nami_ref_sgd(const void *args)
{
    const nami_arg_update *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double w = GET(a->wide, a->w, i);
        const double g = GET(a->wide, a->g, i) * a->grad_scale + a->decay * w;
        const double m = a->beta1 * GET(a->wide, a->m, i) + g;
        nami_ref_set(a->wide, a->m, i, m);
        nami_ref_set(a->wide, a->w, i, w - a->lr * m);
    }
}
