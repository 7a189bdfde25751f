/* SPDX-License-Identifier: MIT */
/* update.c - optimiser steps, one pass over memory. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

#include <math.h>

/* What all elements of a step of Adam share. */
typedef struct adam_step {
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta */
    float keep;                       /* 1 - lr decay; Adam: 1 */
    float decay;                      /* AdamW: 0 */
    float rate, bias2, eps;           /* lr / (1 - beta1^step); 1 / (1 - beta2^step) */
    float scale;
} adam_step;

static adam_step adam_step_of(const nami_arg_update *a, bool decoupled)
{
    return (adam_step){.beta1 = (float)a->beta1,
                       .beta2 = (float)a->beta2,
                       .rest1 = (float)(1 - a->beta1),
                       .rest2 = (float)(1 - a->beta2),
                       .keep = decoupled ? (float)(1 - a->lr * a->decay) : 1,
                       .decay = decoupled ? 0 : (float)a->decay,
                       .rate = (float)(a->lr / (1 - pow(a->beta1, (double)a->step))),
                       .bias2 = (float)(1 / (1 - pow(a->beta2, (double)a->step))),
                       .eps = (float)a->eps,
                       .scale = (float)a->grad_scale};
}

NAMI_INLINE void adam_body(const nami_arg_update *a, bool decoupled, int64_t first,
                           int64_t end)
{
    const void *from = a->from ? a->from : a->w;
    const adam_step s = adam_step_of(a, decoupled);
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const int64_t lanes = end - i;
        nami_vf w = nami_vget(NAMI_F32, from, i, lanes);
        nami_vf g = nami_vget(NAMI_F32, a->g, i, lanes) * s.scale;
        if (decoupled)
            w = w * s.keep;
        else
            g = g + w * s.decay;
        const nami_vf m = nami_vget(NAMI_F32, a->m, i, lanes) * s.beta1 + g * s.rest1;
        const nami_vf v =
            nami_vget(NAMI_F32, a->v, i, lanes) * s.beta2 + (g * g) * s.rest2;
        nami_vput(NAMI_F32, a->m, i, m, lanes);
        nami_vput(NAMI_F32, a->v, i, v, lanes);
        nami_vput(NAMI_F32, a->w, i, w - m * s.rate / (nami_vroot(v * s.bias2) + s.eps),
                  lanes);
    }
}

static void adamw_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    adam_body(args, true, first, end);
}

static void adam_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    adam_body(args, false, first, end);
}

NAMI_INLINE void sgd_body(const nami_arg_update *a, bool nesterov, int64_t first,
                          int64_t end)
{
    const void *from = a->from ? a->from : a->w;
    const float momentum = (float)a->beta1, decay = (float)a->decay, lr = (float)a->lr;
    const float scale = (float)a->grad_scale;
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const int64_t lanes = end - i;
        const nami_vf w = nami_vget(NAMI_F32, from, i, lanes);
        const nami_vf g = nami_vget(NAMI_F32, a->g, i, lanes) * scale + w * decay;
        const nami_vf m = nami_vget(NAMI_F32, a->m, i, lanes) * momentum + g;
        nami_vput(NAMI_F32, a->m, i, m, lanes);
        nami_vput(NAMI_F32, a->w, i, w - (nesterov ? g + m * momentum : m) * lr, lanes);
    }
}

static void sgd_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_update *a = args;
    if (a->nesterov)
        sgd_body(a, true, first, end);
    else
        sgd_body(a, false, first, end);
}

NAMI_INLINE void rmsprop_body(const nami_arg_update *a, bool momentum, bool centred,
                              int64_t first, int64_t end)
{
    const void *from = a->from ? a->from : a->w;
    const float alpha = (float)a->beta2, rest = (float)(1 - a->beta2);
    const float decay = (float)a->decay, lr = (float)a->lr, eps = (float)a->eps;
    const float scale = (float)a->grad_scale, keep = (float)a->beta1;
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const int64_t lanes = end - i;
        const nami_vf w = nami_vget(NAMI_F32, from, i, lanes);
        const nami_vf g = nami_vget(NAMI_F32, a->g, i, lanes) * scale + w * decay;
        nami_vf v = nami_vget(NAMI_F32, a->v, i, lanes) * alpha + (g * g) * rest;
        nami_vput(NAMI_F32, a->v, i, v, lanes);
        if (centred) {
            const nami_vf c =
                nami_vget(NAMI_F32, a->centre, i, lanes) * alpha + g * rest;
            nami_vput(NAMI_F32, a->centre, i, c, lanes);
            v = nami_vmax(nami_vset(0), v - c * c);
        }
        nami_vf move = g / (nami_vroot(v) + eps);
        if (momentum) {
            move = nami_vget(NAMI_F32, a->m, i, lanes) * keep + move;
            nami_vput(NAMI_F32, a->m, i, move, lanes);
        }
        nami_vput(NAMI_F32, a->w, i, w - move * lr, lanes);
    }
}

static void rmsprop_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_update *a = args;
    if (a->m && a->centre)
        rmsprop_body(a, true, true, first, end);
    else if (a->m)
        rmsprop_body(a, true, false, first, end);
    else if (a->centre)
        rmsprop_body(a, false, true, first, end);
    else
        rmsprop_body(a, false, false, first, end);
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
const nami_cpu_kernel nami_cpu_adam = {
    .range = adam_range, .units = update_units, .grain = update_grain};
const nami_cpu_kernel nami_cpu_sgd = {
    .range = sgd_range, .units = update_units, .grain = update_grain};
const nami_cpu_kernel nami_cpu_rmsprop = {
    .range = rmsprop_range, .units = update_units, .grain = update_grain};
