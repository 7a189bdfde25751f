/* SPDX-License-Identifier: MIT */
/* swiglu.c - one half of a row, through SiLU, scales the other, in vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

NAMI_INLINE nami_vf sigmoid(nami_vf x)
{
    return 1.0f / (1.0f + nami_vexp(-x));
}

NAMI_INLINE void swiglu_f_body(nami_dtype act, const nami_arg_swiglu *a, int64_t first,
                               int64_t end)
{
    const int64_t width = a->width;
    for (int64_t n = first; n < end; n++)
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            const int64_t at = 2 * n * width + c, lanes = width - c;
            const nami_vf gate = nami_vget(act, a->x, at, lanes),
                          up = nami_vget(act, a->x, at + width, lanes);
            nami_vput(act, a->y, n * width + c, gate * sigmoid(gate) * up, lanes);
        }
}

static void swiglu_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_swiglu *a = args;
    if (a->act == NAMI_F32)
        swiglu_f_body(NAMI_F32, a, first, end);
    else
        swiglu_f_body(NAMI_BF16, a, first, end);
}

/* With s = sigmoid(gate): dgate = dy up (s + gate s (1 - s)), dup = dy gate s. */
NAMI_INLINE void swiglu_bi_body(nami_dtype act, const nami_arg_swiglu *a, int64_t first,
                                int64_t end)
{
    const int64_t width = a->width;
    for (int64_t n = first; n < end; n++)
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            const int64_t at = 2 * n * width + c, lanes = width - c;
            const nami_vf gate = nami_vget(act, a->x, at, lanes),
                          up = nami_vget(act, a->x, at + width, lanes),
                          dy = nami_vget(act, a->dy, n * width + c, lanes);
            const nami_vf s = sigmoid(gate);
            nami_vput(act, a->dx, at, dy * up * (s + gate * s * (1.0f - s)), lanes);
            nami_vput(act, a->dx, at + width, dy * gate * s, lanes);
        }
}

static void swiglu_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_swiglu *a = args;
    if (a->act == NAMI_F32)
        swiglu_bi_body(NAMI_F32, a, first, end);
    else
        swiglu_bi_body(NAMI_BF16, a, first, end);
}

static int64_t rows(const void *args)
{
    return ((const nami_arg_swiglu *)args)->n;
}

static int64_t rows_grain(const void *args)
{
    return 1 + 8192 / (1 + ((const nami_arg_swiglu *)args)->width);
}

const nami_cpu_kernel nami_cpu_swiglu_f = {
    .range = swiglu_f_range, .units = rows, .grain = rows_grain};
const nami_cpu_kernel nami_cpu_swiglu_bi = {
    .range = swiglu_bi_range, .units = rows, .grain = rows_grain};
