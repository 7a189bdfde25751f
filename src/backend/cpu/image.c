/* SPDX-License-Identifier: MIT */
/* image.c - the small kernels of image models, in vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

NAMI_INLINE nami_vf sigmoid(nami_vf x)
{
    return 1.0f / (1.0f + nami_vexp(-x));
}

/* exp(-x^2/2), 0 where that is no normal number. */
NAMI_INLINE nami_vf bell(nami_vf x)
{
    const nami_vf zero = {0}, h = x * x * -0.5f;
    return nami_vselect(h < -87.0f, zero, nami_vexp(h));
}

/* The normal distribution function, e = bell(x). Its upper tail is e t p(t), t = 1/(1+|x|/4), with p the polynomial of
 * degree 9 of least relative error (8e-9) at Chebyshev's points of 0 <= |x| <= 13.2; so both tails keep theirs. */
NAMI_INLINE nami_vf normal(nami_vf x, nami_vf e)
{
    static const float p[] = {
        0.0162745994f, -0.0610443614f, 0.0472969301f, 0.0346210934f, 0.00720499875f,
        0.089838624f,  0.0708086044f,  0.0957936198f, 0.0994559228f, 0.0997499824f};
    const nami_vf t = 1.0f / (1.0f + 0.25f * nami_vmax(x, -x));
    nami_vf q = nami_vset(p[0]);
    for (int i = 1; i < 10; i++)
        q = q * t + p[i];
    q *= t * e;
    return nami_vselect(x < 0, q, 1.0f - q);
}

NAMI_INLINE nami_vf unary(nami_unary function, nami_vf x)
{
    const nami_vf zero = {0};
    if (function == NAMI_RELU)
        return nami_vselect(x <= 0, zero, x);
    if (function == NAMI_RELU6)
        return nami_vselect(x <= 0, zero, nami_vselect(x >= 6, nami_vset(6), x));
    if (function == NAMI_GELU_ERF)
        return x * normal(x, bell(x));
    if (function == NAMI_TANH)
        return 2.0f * sigmoid(2.0f * x) - 1.0f;
    return function == NAMI_SILU ? x * sigmoid(x) : sigmoid(x);
}

NAMI_INLINE nami_vf slope(nami_unary function, nami_vf x)
{
    const nami_vf zero = {0}, one = nami_vset(1);
    if (function == NAMI_RELU)
        return nami_vselect(x <= 0, zero, one);
    if (function == NAMI_RELU6)
        return nami_vselect((x <= 0) | (x >= 6), zero, one);
    if (function == NAMI_GELU_ERF) {
        const nami_vf e = bell(x);
        return normal(x, e) + x * e * 0.39894228040143267794f; /* 1/sqrt(2 pi) */
    }
    if (function == NAMI_TANH) {
        const nami_vf t = 2.0f * sigmoid(2.0f * x) - 1.0f;
        return 1.0f - t * t;
    }
    const nami_vf s = sigmoid(x), d = s * (1.0f - s);
    return function == NAMI_SIGMOID ? d : s + x * d;
}

NAMI_INLINE void unary_f_body(nami_dtype act, const nami_arg_unary *a, int64_t first,
                              int64_t end)
{
    for (int64_t i = first; i < end; i += NAMI_VL)
        nami_vput(act, a->y, i, unary(a->function, nami_vget(act, a->x, i, end - i)),
                  end - i);
}

static void unary_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_unary *a = args;
    if (a->act == NAMI_F32)
        unary_f_body(NAMI_F32, a, first, end);
    else
        unary_f_body(NAMI_BF16, a, first, end);
}

NAMI_INLINE void unary_bi_body(nami_dtype act, const nami_arg_unary *a, int64_t first,
                               int64_t end)
{
    for (int64_t i = first; i < end; i += NAMI_VL)
        nami_vput(act, a->dx, i,
                  nami_vget(act, a->dy, i, end - i) *
                      slope(a->function, nami_vget(act, a->x, i, end - i)),
                  end - i);
}

static void unary_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_unary *a = args;
    if (a->act == NAMI_F32)
        unary_bi_body(NAMI_F32, a, first, end);
    else
        unary_bi_body(NAMI_BF16, a, first, end);
}

static int64_t unary_units(const void *args)
{
    return ((const nami_arg_unary *)args)->count;
}

static int64_t elements_grain(const void *args)
{
    (void)args;
    return 8192;
}

const nami_cpu_kernel nami_cpu_unary_f = {
    .range = unary_f_range, .units = unary_units, .grain = elements_grain};
const nami_cpu_kernel nami_cpu_unary_bi = {
    .range = unary_bi_range, .units = unary_units, .grain = elements_grain};

/* --- concatenation: rows are copied --- */

static void concat_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_concat *a = args;
    const size_t wa = (size_t)a->width_a * nami_dtype_size(a->act),
                 wb = (size_t)a->width_b * nami_dtype_size(a->act);
    for (int64_t n = first; n < end; n++) {
        char *y = (char *)a->y + (size_t)n * (wa + wb);
        memcpy(y, (const char *)a->a + (size_t)n * wa, wa);
        memcpy(y + wa, (const char *)a->b + (size_t)n * wb, wb);
    }
}

static void concat_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_concat *a = args;
    const size_t wa = (size_t)a->width_a * nami_dtype_size(a->act),
                 wb = (size_t)a->width_b * nami_dtype_size(a->act);
    for (int64_t n = first; n < end; n++) {
        const char *dy = (const char *)a->dy + (size_t)n * (wa + wb);
        if (a->da)
            memcpy((char *)a->da + (size_t)n * wa, dy, wa);
        if (a->db)
            memcpy((char *)a->db + (size_t)n * wb, dy + wa, wb);
    }
}

static int64_t concat_units(const void *args)
{
    return ((const nami_arg_concat *)args)->n;
}

static int64_t concat_grain(const void *args)
{
    const nami_arg_concat *a = args;
    return 1 + 16384 / (1 + a->width_a + a->width_b);
}

const nami_cpu_kernel nami_cpu_concat_f = {
    .range = concat_f_range, .units = concat_units, .grain = concat_grain};
const nami_cpu_kernel nami_cpu_concat_bi = {
    .range = concat_bi_range, .units = concat_units, .grain = concat_grain};

/* --- channel scale: images --- */

NAMI_INLINE void scale_image(nami_dtype act, const nami_arg_excite *a, int64_t b,
                             const void *x, void *y)
{
    for (int64_t p = b * a->positions; p < (b + 1) * a->positions; p++)
        for (int64_t c = 0; c < a->channels; c += NAMI_VL) {
            const int64_t at = p * a->channels + c, lanes = a->channels - c;
            nami_vput(act, y, at,
                      nami_vget(act, x, at, lanes) *
                          nami_vget(act, a->s, b * a->channels + c, lanes),
                      lanes);
        }
}

NAMI_INLINE void sums_image(nami_dtype act, const nami_arg_excite *a, int64_t b)
{
    for (int64_t c = 0; c < a->channels; c += NAMI_VL) {
        const int64_t lanes = a->channels - c;
        nami_vf sum = {0};
        for (int64_t p = b * a->positions; p < (b + 1) * a->positions; p++)
            sum += nami_vget(act, a->dy, p * a->channels + c, lanes) *
                   nami_vget(act, a->x, p * a->channels + c, lanes);
        nami_vput(act, a->ds, b * a->channels + c, sum, lanes);
    }
}

static void excite_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_excite *a = args;
    for (int64_t b = first; b < end; b++)
        if (a->act == NAMI_F32)
            scale_image(NAMI_F32, a, b, a->x, a->y);
        else
            scale_image(NAMI_BF16, a, b, a->x, a->y);
}

NAMI_INLINE void excite_bi_image(nami_dtype act, const nami_arg_excite *a, int64_t b)
{
    if (a->dx)
        scale_image(act, a, b, a->dy, a->dx);
    if (a->ds)
        sums_image(act, a, b);
}

static void excite_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_excite *a = args;
    for (int64_t b = first; b < end; b++)
        if (a->act == NAMI_F32)
            excite_bi_image(NAMI_F32, a, b);
        else
            excite_bi_image(NAMI_BF16, a, b);
}

static int64_t excite_units(const void *args)
{
    return ((const nami_arg_excite *)args)->batch;
}

const nami_cpu_kernel nami_cpu_excite_f = {.range = excite_f_range,
                                           .units = excite_units};
const nami_cpu_kernel nami_cpu_excite_bi = {.range = excite_bi_range,
                                            .units = excite_units};

/* --- turning and casting --- */

static void turn_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_turn *a = args;
    for (int64_t u = first; u < end; u++) { /* row u of y */
        const int64_t b = u / a->columns, j = u % a->columns;
        for (int64_t i = 0; i < a->rows; i++) {
            const int64_t from = (b * a->rows + i) * a->columns + j;
            if (a->act == NAMI_F32)
                ((float *)a->y)[u * a->rows + i] = ((const float *)a->x)[from];
            else
                ((uint16_t *)a->y)[u * a->rows + i] = ((const uint16_t *)a->x)[from];
        }
    }
}

static int64_t turn_units(const void *args)
{
    const nami_arg_turn *a = args;
    return a->batch * a->columns;
}

static int64_t turn_grain(const void *args)
{
    return 1 + 8192 / (1 + ((const nami_arg_turn *)args)->rows);
}

static void cast_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_turn *a = args;
    for (int64_t i = first; i < end; i += NAMI_VL)
        nami_vput(a->act, a->y, i, nami_vget(NAMI_F32, a->x, i, end - i), end - i);
}

static int64_t cast_units(const void *args)
{
    const nami_arg_turn *a = args;
    return a->batch * a->rows * a->columns;
}

const nami_cpu_kernel nami_cpu_turn = {
    .range = turn_range, .units = turn_units, .grain = turn_grain};
const nami_cpu_kernel nami_cpu_cast = {
    .range = cast_range, .units = cast_units, .grain = elements_grain};
