/* SPDX-License-Identifier: MIT */
/* image.c - the small operators of image models: ReLU and relatives, concatenation, channel scale, turning. */
#include <math.h>

#include "backend/ref/ref.h"

#define GET nami_ref_get

/* The normal distribution function; without cancellation far below 0. */
static double normal(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* NaN stays NaN. */
static double unary(nami_unary function, double x)
{
    if (function == NAMI_RELU)
        return x <= 0 ? 0 : x;
    if (function == NAMI_RELU6)
        return x <= 0 ? 0 : x >= 6 ? 6 : x;
    if (function == NAMI_GELU_ERF)
        return x * normal(x);
    if (function == NAMI_TANH)
        return tanh(x);
    return (function == NAMI_SILU ? x : 1) / (1 + exp(-x));
}

/* dy/dx by x or y, whichever BI is given. */
static double slope(nami_unary function, double x)
{
    if (function == NAMI_RELU)
        return x <= 0 ? 0 : 1;
    if (function == NAMI_RELU6)
        return x <= 0 || x >= 6 ? 0 : 1;
    if (function == NAMI_GELU_ERF)
        return normal(x) + x * exp(-0.5 * x * x) / sqrt(8 * atan(1));
    if (function == NAMI_TANH)
        return 1 - tanh(x) * tanh(x);
    const double s = 1 / (1 + exp(-x));
    return function == NAMI_SIGMOID ? s * (1 - s) : s + x * s * (1 - s);
}

void nami_ref_unary_f(const void *args)
{
    const nami_arg_unary *a = args;
    for (int64_t i = 0; i < a->count; i++)
        nami_ref_set(a->act, a->y, i, unary(a->function, GET(a->act, a->x, i)));
}

void nami_ref_unary_bi(const void *args)
{
    const nami_arg_unary *a = args;
    for (int64_t i = 0; i < a->count; i++)
        nami_ref_set(a->act, a->dx, i,
                     GET(a->act, a->dy, i) * slope(a->function, GET(a->act, a->x, i)));
}

void nami_ref_concat_f(const void *args)
{
    const nami_arg_concat *a = args;
    const int64_t width = a->width_a + a->width_b;
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t c = 0; c < width; c++)
            nami_ref_set(a->act, a->y, n * width + c,
                         c < a->width_a
                             ? GET(a->act, a->a, n * a->width_a + c)
                             : GET(a->act, a->b, n * a->width_b + c - a->width_a));
}

void nami_ref_concat_bi(const void *args)
{
    const nami_arg_concat *a = args;
    const int64_t width = a->width_a + a->width_b;
    for (int64_t n = 0; n < a->n; n++) {
        for (int64_t c = 0; c < a->width_a && a->da; c++)
            nami_ref_set(a->act, a->da, n * a->width_a + c,
                         GET(a->act, a->dy, n * width + c));
        for (int64_t c = 0; c < a->width_b && a->db; c++)
            nami_ref_set(a->act, a->db, n * a->width_b + c,
                         GET(a->act, a->dy, n * width + a->width_a + c));
    }
}

void nami_ref_excite_f(const void *args)
{
    const nami_arg_excite *a = args;
    const int64_t each = a->positions * a->channels;
    for (int64_t i = 0; i < a->batch * each; i++)
        nami_ref_set(a->act, a->y, i,
                     GET(a->act, a->x, i) *
                         GET(a->act, a->s, i / each * a->channels + i % a->channels));
}

void nami_ref_excite_bi(const void *args)
{
    const nami_arg_excite *a = args;
    const int64_t each = a->positions * a->channels;
    for (int64_t i = 0; i < a->batch * each && a->dx; i++)
        nami_ref_set(a->act, a->dx, i,
                     GET(a->act, a->dy, i) *
                         GET(a->act, a->s, i / each * a->channels + i % a->channels));
    for (int64_t i = 0; i < a->batch * a->channels && a->ds; i++) {
        double sum = 0;
        for (int64_t p = 0; p < a->positions; p++) {
            const int64_t at =
                i / a->channels * each + p * a->channels + i % a->channels;
            sum += GET(a->act, a->dy, at) * GET(a->act, a->x, at);
        }
        nami_ref_set(a->act, a->ds, i, sum);
    }
}

void nami_ref_turn(const void *args)
{
    const nami_arg_turn *a = args;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t j = 0; j < a->columns; j++)
                nami_ref_set(a->act, a->y, (b * a->columns + j) * a->rows + i,
                             GET(a->act, a->x, (b * a->rows + i) * a->columns + j));
}

void nami_ref_cast(const void *args)
{
    const nami_arg_turn *a = args;
    for (int64_t i = 0; i < a->batch * a->rows * a->columns; i++)
        nami_ref_set(a->act, a->y, i, GET(NAMI_F32, a->x, i));
}
