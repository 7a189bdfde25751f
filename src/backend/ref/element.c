/* SPDX-License-Identifier: MIT */
/* element.c - GELU and dropout: each element by itself. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

static const double gelu_root = 0.79788456080286535588; /* sqrt(2/pi) */

void nami_ref_gelu_f(const void *args)
{
    const nami_arg_gelu *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double x = GET(a->act, a->x, i);
        const double t = tanh(gelu_root * (x + 0.044715 * x * x * x));
        nami_ref_set(a->act, a->y, i, 0.5 * x * (1 + t));
    }
}

void nami_ref_gelu_bi(const void *args)
{
    const nami_arg_gelu *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double x = GET(a->act, a->x, i);
        const double t = tanh(gelu_root * (x + 0.044715 * x * x * x));
        const double slope = gelu_root * (1 + 3 * 0.044715 * x * x);
        const double d = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
        nami_ref_set(a->act, a->dx, i, GET(a->act, a->dy, i) * d);
    }
}

void nami_ref_dropout_f(const void *args)
{
    const nami_arg_dropout *a = args;
    for (int64_t s = 0; s < a->batch; s++)
        for (int64_t e = 0; e < a->count; e++) {
            const int64_t i = s * a->count + e;
            const double f = nami_ref_factor(a->key, a->first_sample + s,
                                             a->whole ? 0 : a->first + e, a->dropout);
            const double add = a->add ? GET(a->act, a->add, i) : 0;
            nami_ref_set(a->act, a->y, i, add + f * GET(a->act, a->x, i));
        }
}

void nami_ref_dropout_bi(const void *args)
{
    const nami_arg_dropout *a = args;
    for (int64_t s = 0; s < a->batch; s++)
        for (int64_t e = 0; e < a->count; e++) {
            const int64_t i = s * a->count + e;
            const double f = nami_ref_factor(a->key, a->first_sample + s,
                                             a->whole ? 0 : a->first + e, a->dropout);
            nami_ref_set(a->act, a->dx, i, f * GET(a->act, a->dy, i));
        }
}
