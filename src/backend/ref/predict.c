/* SPDX-License-Identifier: MIT */
/* predict.c - weights moved along the optimiser's direction, and the mean of their changes. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

void nami_ref_predict(const void *args)
{
    const nami_arg_predict *a = args;
    const double bias1 = 1 - pow(a->beta1, (double)a->step);
    const double bias2 = 1 - pow(a->beta2, (double)a->step);
    for (int64_t i = 0; i < a->count; i++) {
        double direction = GET(a->wide, a->m, i);
        if (a->v)
            direction =
                direction / bias1 / (sqrt(GET(a->wide, a->v, i) / bias2) + a->eps);
        nami_ref_set(a->wide, a->out, i,
                     GET(a->wide, a->w, i) - a->distance * direction);
    }
}

void nami_ref_drift(const void *args)
{
    const nami_arg_drift *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        const double change = GET(a->wide, a->after, i) - GET(a->wide, a->before, i);
        nami_ref_set(a->wide, a->mean, i,
                     a->gamma * GET(a->wide, a->mean, i) + (1 - a->gamma) * change);
    }
}
