/* SPDX-License-Identifier: MIT */
/* element.c - GELU and dropout, in vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/random.h"
#include "backend/cpu/vec.h"

#define ROOT 0.79788456080286535588f /* sqrt(2/pi) */
#define CUBE 0.044715f

/* The tanh form equals x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): this is the sigmoid. */
NAMI_INLINE nami_vf gelu_sigmoid(nami_vf x)
{
    return 1.0f / (1.0f + nami_vexp(x * (-2 * ROOT) * (1.0f + CUBE * x * x)));
}

NAMI_INLINE void gelu_f_body(nami_dtype act, const nami_arg_gelu *a, int64_t first,
                             int64_t end)
{
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const nami_vf x = nami_vget(act, a->x, i, end - i);
        nami_vput(act, a->y, i, x * gelu_sigmoid(x), end - i);
    }
}

static void gelu_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_gelu *a = args;
    if (a->act == NAMI_F32)
        gelu_f_body(NAMI_F32, a, first, end);
    else
        gelu_f_body(NAMI_BF16, a, first, end);
}

NAMI_INLINE void gelu_bi_body(nami_dtype act, const nami_arg_gelu *a, int64_t first,
                              int64_t end)
{
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const nami_vf x = nami_vget(act, a->x, i, end - i);
        const nami_vf s = gelu_sigmoid(x);
        const nami_vf slope = (2 * ROOT) * (1.0f + (3 * CUBE) * x * x);
        const nami_vf d = s + x * s * (1.0f - s) * slope;
        nami_vput(act, a->dx, i, nami_vget(act, a->dy, i, end - i) * d, end - i);
    }
}

static void gelu_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_gelu *a = args;
    if (a->act == NAMI_F32)
        gelu_bi_body(NAMI_F32, a, first, end);
    else
        gelu_bi_body(NAMI_BF16, a, first, end);
}

static int64_t gelu_units(const void *args)
{
    return ((const nami_arg_gelu *)args)->count;
}

static int64_t gelu_grain(const void *args)
{
    (void)args;
    return 4096;
}

/* to = add + factor x over elements [e, e+n) of one sample whose first element is `at`. */
NAMI_INLINE void drop_run(nami_dtype act, const void *x, const void *add, void *to,
                          int64_t at, int64_t n, const float *factor)
{
    for (int64_t e = 0; e < n; e += NAMI_VL) {
        const int64_t lanes = n - e;
        nami_vf r = nami_vget(act, x, at + e, lanes);
        if (factor)
            r *= nami_vload(NAMI_F32, factor, e);
        if (add)
            r += nami_vget(act, add, at + e, lanes);
        nami_vput(act, to, at + e, r, lanes);
    }
}

/* Units are runs of NAMI_FACTORS elements, counted within each sample. */
static int64_t runs_each(const nami_arg_dropout *a)
{
    return (a->count + NAMI_FACTORS - 1) / NAMI_FACTORS;
}

NAMI_INLINE void drop_body(nami_dtype act, const nami_arg_dropout *a, const void *x,
                           const void *add, void *to, int64_t first, int64_t end)
{
    const int64_t runs = runs_each(a);
    float factor[2 * NAMI_FACTORS + NAMI_VL];
    for (int64_t u = first; u < end; u++) {
        const int64_t s = u / runs, e = u % runs * NAMI_FACTORS;
        const int64_t n = a->count - e < NAMI_FACTORS ? a->count - e : NAMI_FACTORS;
        if (a->dropout > 0 && a->whole) {
            const float kept = nami_keep(a->key, a->first_sample + s, 0, a->dropout)
                                   ? (float)(1 / (1 - a->dropout))
                                   : 0;
            for (int64_t i = 0; i < NAMI_FACTORS + NAMI_VL; i++)
                factor[i] = kept;
            drop_run(act, x, add, to, s * a->count + e, n, factor);
        } else if (a->dropout > 0) {
            const nami_drop d = nami_drop_of(a->key, a->first_sample + s, a->dropout);
            const int64_t quad = (a->first + e) / 4, skip = (a->first + e) % 4;
            nami_drop_factors(&d, quad, factor);
            if (skip > 0)
                nami_drop_factors(&d, quad + NAMI_FACTORS / 4, factor + NAMI_FACTORS);
            drop_run(act, x, add, to, s * a->count + e, n, factor + skip);
        } else {
            drop_run(act, x, add, to, s * a->count + e, n, NULL);
        }
    }
}

static void drop_range(const nami_arg_dropout *a, const void *x, const void *add,
                       void *to, int64_t first, int64_t end)
{
    if (a->act == NAMI_F32)
        drop_body(NAMI_F32, a, x, add, to, first, end);
    else
        drop_body(NAMI_BF16, a, x, add, to, first, end);
}

static void dropout_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_dropout *a = args;
    drop_range(a, a->x, a->add, a->y, first, end);
}

static void dropout_bi_range(const void *args, int64_t first, int64_t end,
                             void *scratch)
{
    (void)scratch;
    const nami_arg_dropout *a = args;
    drop_range(a, a->dy, NULL, a->dx, first, end);
}

static int64_t dropout_units(const void *args)
{
    const nami_arg_dropout *a = args;
    return a->batch * runs_each(a);
}

static int64_t dropout_grain(const void *args)
{
    (void)args;
    return 8192 / NAMI_FACTORS;
}

const nami_cpu_kernel nami_cpu_gelu_f = {
    .range = gelu_f_range, .units = gelu_units, .grain = gelu_grain};
const nami_cpu_kernel nami_cpu_gelu_bi = {
    .range = gelu_bi_range, .units = gelu_units, .grain = gelu_grain};
const nami_cpu_kernel nami_cpu_dropout_f = {
    .range = dropout_f_range, .units = dropout_units, .grain = dropout_grain};
const nami_cpu_kernel nami_cpu_dropout_bi = {
    .range = dropout_bi_range, .units = dropout_units, .grain = dropout_grain};
