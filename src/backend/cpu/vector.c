/* SPDX-License-Identifier: MIT */
/* vector.c - sums, factors, squares and optimiser steps over whole parameters, in vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

#include <math.h>

static void add_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_vector *v = args;
    for (int64_t i = first; i < end; i += NAMI_VL)
        nami_vput(NAMI_F32, v->a, i,
                  nami_vget(NAMI_F32, v->a, i, end - i) +
                      nami_vget(NAMI_F32, v->b, i, end - i),
                  end - i);
}

static void scale_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_vector *v = args;
    for (int64_t i = first; i < end; i += NAMI_VL)
        nami_vput(NAMI_F32, v->a, i,
                  nami_vget(NAMI_F32, v->a, i, end - i) * (float)v->s, end - i);
}

static int64_t vector_units(const void *args)
{
    return ((const nami_arg_vector *)args)->count;
}

static int64_t vector_grain(const void *args)
{
    (void)args;
    return 16384;
}

const nami_cpu_kernel nami_cpu_add = {
    .range = add_range, .units = vector_units, .grain = vector_grain};
const nami_cpu_kernel nami_cpu_scale = {
    .range = scale_range, .units = vector_units, .grain = vector_grain};

/* Squares with where each block leaves its sum. */
typedef struct squares_job {
    const nami_arg_vector *v;
    double *block;
} squares_job;

enum {
    PAIRS = NAMI_VL / 2, /* doubles in a vector */
    CHAINS = 8,          /* vectors of sums side by side: fixed, so that the order is */
    STEP = CHAINS * PAIRS, /* elements */
    AHEAD = 4 * STEP       /* bytes */
};

typedef float part __attribute__((vector_size(4 * PAIRS)));
typedef double sums __attribute__((vector_size(8 * PAIRS)));

static double block_squares(const float *x, int64_t n)
{
    sums sum[CHAINS] = {{0}};
    double rest = 0;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        nami_vahead(x + i, AHEAD);
#pragma GCC unroll 8
        for (int64_t c = 0; c < CHAINS; c++) {
            part f;
            memcpy(&f, x + i + c * PAIRS, sizeof f);
            const sums d = __builtin_convertvector(f, sums);
            sum[c] += d * d;
        }
    }
    for (; i < n; i++)
        rest += (double)x[i] * (double)x[i];
    for (int w = CHAINS / 2; w > 0; w /= 2)
        for (int c = 0; c < w; c++)
            sum[c] += sum[c + w];
    for (int c = 0; c < PAIRS; c++)
        rest += sum[0][c];
    return rest;
}

static void squares_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const squares_job *j = args;
    for (int64_t k = first; k < end; k++) {
        const int64_t at = k * NAMI_SQUARES_BLOCK, left = j->v->count - at;
        j->block[k] =
            block_squares((const float *)j->v->a + at,
                          left < NAMI_SQUARES_BLOCK ? left : NAMI_SQUARES_BLOCK);
    }
}

static int64_t squares_units(const void *args)
{
    const squares_job *j = args;
    return (int64_t)nami_cpu_squares_partials(j->v);
}

static const nami_cpu_kernel squares_kernel = {.range = squares_range,
                                               .units = squares_units};

size_t nami_cpu_squares_partials(const nami_arg_vector *a)
{
    return (size_t)((a->count + NAMI_SQUARES_BLOCK - 1) / NAMI_SQUARES_BLOCK);
}

void nami_cpu_squares_launch(nami_backend *b, const nami_cpu_plan *p,
                             const nami_arg_vector *a)
{
    const squares_job job = {.v = a, .block = p->partial};
    nami_cpu_run(b, &squares_kernel, &job, NULL, 0);
    double sum = 0;
    for (size_t k = 0; k < nami_cpu_squares_partials(a); k++)
        sum += p->partial[k];
    *a->sum = sum;
}
