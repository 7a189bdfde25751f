/* SPDX-License-Identifier: MIT */
/* update.c - optimiser steps, one pass over memory. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

#include <math.h>

NAMI_INLINE nami_vf root(nami_vf x)
{
#if NAMI_VL == 16
    return (nami_vf)_mm512_sqrt_ps((__m512)x);
#elif NAMI_VL == 8
    return (nami_vf)_mm256_sqrt_ps((__m256)x);
#else
    for (int l = 0; l < NAMI_VL; l++)
        x[l] = sqrtf(x[l]);
    return x;
#endif
}

/* What all elements of an AdamW step share. */
typedef struct adamw_step {
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta */
    float keep;                       /* 1 - lr decay */
    float rate, bias2, eps;           /* lr / (1 - beta1^step); 1 / (1 - beta2^step) */
    float scale;
} adamw_step;

static adamw_step adamw_step_of(const nami_arg_update *a)
{
    return (adamw_step){.beta1 = (float)a->beta1,
                        .beta2 = (float)a->beta2,
                        .rest1 = (float)(1 - a->beta1),
                        .rest2 = (float)(1 - a->beta2),
                        .keep = (float)(1 - a->lr * a->decay),
                        .rate = (float)(a->lr / (1 - pow(a->beta1, (double)a->step))),
                        .bias2 = (float)(1 / (1 - pow(a->beta2, (double)a->step))),
                        .eps = (float)a->eps,
                        .scale = (float)a->grad_scale};
}

static void adamw_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_update *a = args;
    const adamw_step s = adamw_step_of(a);
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const int64_t lanes = end - i;
        const nami_vf g = nami_vget(NAMI_F32, a->g, i, lanes) * s.scale;
        const nami_vf m = nami_vget(NAMI_F32, a->m, i, lanes) * s.beta1 + g * s.rest1;
        const nami_vf v =
            nami_vget(NAMI_F32, a->v, i, lanes) * s.beta2 + (g * g) * s.rest2;
        const nami_vf w = nami_vget(NAMI_F32, a->w, i, lanes) * s.keep;
        nami_vput(NAMI_F32, a->m, i, m, lanes);
        nami_vput(NAMI_F32, a->v, i, v, lanes);
        nami_vput(NAMI_F32, a->w, i, w - m * s.rate / (root(v * s.bias2) + s.eps),
                  lanes);
    }
}

static void sgd_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_update *a = args;
    const float momentum = (float)a->beta1, decay = (float)a->decay, lr = (float)a->lr;
    const float scale = (float)a->grad_scale;
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const int64_t lanes = end - i;
        const nami_vf w = nami_vget(NAMI_F32, a->w, i, lanes);
        const nami_vf g = nami_vget(NAMI_F32, a->g, i, lanes) * scale + w * decay;
        const nami_vf m = nami_vget(NAMI_F32, a->m, i, lanes) * momentum + g;
        nami_vput(NAMI_F32, a->m, i, m, lanes);
        nami_vput(NAMI_F32, a->w, i, w - m * lr, lanes);
    }
}

static int64_t update_units(const void *args)
{
    return ((const nami_arg_update *)args)->count;
}

static int64_t update_grain(const void *args)
{
    (void)args;
    return 8192;
}

const nami_cpu_kernel nami_cpu_adamw = {
    .range = adamw_range, .units = update_units, .grain = update_grain};
const nami_cpu_kernel nami_cpu_sgd = {
    .range = sgd_range, .units = update_units, .grain = update_grain};
