/* SPDX-License-Identifier: MIT */
/* swiglu.c - one half of a row, through SiLU, scales the other. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

void nami_ref_swiglu_f(const void *args)
{
    const nami_arg_swiglu *a = args;
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t c = 0; c < a->width; c++) {
            const int64_t at = 2 * n * a->width + c;
            const double gate = GET(a->act, a->x, at);
            nami_ref_set(a->act, a->y, n * a->width + c,
                         gate / (1 + exp(-gate)) * GET(a->act, a->x, at + a->width));
        }
}

void nami_ref_swiglu_bi(const void *args)
{
    const nami_arg_swiglu *a = args;
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t c = 0; c < a->width; c++) {
            const int64_t at = 2 * n * a->width + c;
            const double gate = GET(a->act, a->x, at);
            const double up = GET(a->act, a->x, at + a->width);
            const double dy = GET(a->act, a->dy, n * a->width + c);
            const double s = 1 / (1 + exp(-gate));
            nami_ref_set(a->act, a->dx, at, dy * up * (s + gate * s * (1 - s)));
            nami_ref_set(a->act, a->dx, at + a->width, dy * gate * s);
        }
}
