/* SPDX-License-Identifier: MIT */
/* update.c - optimiser steps over whole parameters, each as torch.optim defines it. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

/* Weight i before the step. */
static double weight(const nami_arg_update *a, int64_t i)
{
    return GET(a->wide, a->from ? a->from : a->w, i);
}

/* Gradient i, clipped, with `decay` times the weight added. */
static double gradient(const nami_arg_update *a, int64_t i, double decay)
{
    return GET(a->wide, a->g, i) * a->grad_scale + decay * weight(a, i);
}

/* x = rate x + (1 - rate) y for element i of x; returns the new one. */
static double blend(nami_dtype d, void *x, int64_t i, double rate, double y)
{
    const double value = rate * GET(d, x, i) + (1 - rate) * y;
    nami_ref_set(d, x, i, value);
    return value;
}

/* Adam's moments take in gradient g; returns m / (sqrt(v) + eps) without their bias. */
static double adam_direction(const nami_arg_update *a, int64_t i, double g)
{
    const double m = blend(a->wide, a->m, i, a->beta1, g);
    const double v = blend(a->wide, a->v, i, a->beta2, g * g);
    const double bias1 = 1 - pow(a->beta1, (double)a->step);
    const double bias2 = 1 - pow(a->beta2, (double)a->step);
    return m / bias1 / (sqrt(v / bias2) + a->eps);
}

/* Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019), algorithm 2; as torch.optim.AdamW. */
void nami_ref_adamw(const void *args)
{
    const nami_arg_update *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double w = weight(a, i) * (1 - a->lr * a->decay);
        nami_ref_set(a->wide, a->w, i,
                     w - a->lr * adam_direction(a, i, gradient(a, i, 0)));
    }
}

/* Kingma and Ba, Adam (2015), algorithm 1, with the decay as L2 penalty; as torch.optim.Adam. */
void nami_ref_adam(const void *args)
{
    const nami_arg_update *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double w = weight(a, i);
        nami_ref_set(a->wide, a->w, i,
                     w - a->lr * adam_direction(a, i, gradient(a, i, a->decay)));
    }
}

/* As torch.optim.SGD: m = momentum m + (g + decay w), w -= lr m; Nesterov: w -= lr (g + decay w + momentum m). */
void nami_ref_sgd(const void *args)
{
    const nami_arg_update *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double w = weight(a, i), g = gradient(a, i, a->decay);
        const double m = a->beta1 * GET(a->wide, a->m, i) + g;
        nami_ref_set(a->wide, a->m, i, m);
        nami_ref_set(a->wide, a->w, i,
                     w - a->lr * (a->nesterov ? g + a->beta1 * m : m));
    }
}

/* As torch.optim.RMSprop. Rounding may put the square of the mean above the mean of squares: that is zero here. */
void nami_ref_rmsprop(const void *args)
{
    const nami_arg_update *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double w = weight(a, i), g = gradient(a, i, a->decay);
        double v = blend(a->wide, a->v, i, a->beta2, g * g);
        if (a->centre) {
            const double centre = blend(a->wide, a->centre, i, a->beta2, g);
            v = v < centre * centre ? 0 : v - centre * centre;
        }
        double move = g / (sqrt(v) + a->eps);
        if (a->m) {
            move += a->beta1 * GET(a->wide, a->m, i);
            nami_ref_set(a->wide, a->m, i, move);
        }
        nami_ref_set(a->wide, a->w, i, w - a->lr * move);
    }
}
