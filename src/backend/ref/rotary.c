/* SPDX-License-Identifier: MIT */
/* rotary.c - rotary positions: pairs of elements of a head turn by an angle that grows with the position. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

/* Turn the row of position t from x to y; `sign` -1: back. */
static void turn_row(const nami_arg_rotary *a, int64_t row, int64_t t, double sign,
                     const void *x, void *y)
{
    const int64_t width = a->width, half = width / 2, all = a->heads * width + a->rest;
    const double position = (double)(a->first + t);
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t d = 0; d < half; d++) {
            const int64_t lo = row * all + h * width + d, hi = lo + half;
            const double angle =
                position * pow(a->theta, -2.0 * (double)d / (double)width);
            const double c = cos(angle), s = sign * sin(angle);
            const double p = GET(a->act, x, lo), q = GET(a->act, x, hi);
            nami_ref_set(a->act, y, lo, p * c - q * s);
            nami_ref_set(a->act, y, hi, q * c + p * s);
        }
    for (int64_t i = row * all + a->heads * width; i < (row + 1) * all; i++)
        nami_ref_set(a->act, y, i, GET(a->act, x, i));
}

void nami_ref_rotary_f(const void *args)
{
    const nami_arg_rotary *a = args;
    for (int64_t row = 0; row < a->batch * a->time; row++)
        turn_row(a, row, row % a->time, 1, a->x, a->y);
}

void nami_ref_rotary_bi(const void *args)
{
    const nami_arg_rotary *a = args;
    for (int64_t row = 0; row < a->batch * a->time; row++)
        turn_row(a, row, row % a->time, -1, a->dy, a->dx);
}
