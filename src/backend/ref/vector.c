/* SPDX-License-Identifier: MIT */
/* vector.c - sums, factors and squares over whole parameters. */
#include "backend/ref/ref.h"

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
