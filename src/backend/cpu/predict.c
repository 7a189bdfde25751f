/* SPDX-License-Identifier: MIT */
/* predict.c - weights moved along the optimiser's direction, and the mean of their changes, one pass over memory. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

NAMI_INLINE void predict_body(const nami_arg_predict *a, bool adam, int64_t first,
                              int64_t end)
{
    double factor = a->distance; /* with the bias of m in it */
    if (adam)
        factor /= 1 - pow(a->beta1, (double)a->step);
    const float distance = (float)factor, eps = (float)a->eps;
    const float bias2 = adam ? (float)(1 / (1 - pow(a->beta2, (double)a->step))) : 1;
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const int64_t lanes = end - i;
        nami_vf move = nami_vget(NAMI_F32, a->m, i, lanes) * distance;
        if (adam)
            move =
                move / (nami_vroot(nami_vget(NAMI_F32, a->v, i, lanes) * bias2) + eps);
        nami_vput(NAMI_F32, a->out, i, nami_vget(NAMI_F32, a->w, i, lanes) - move,
                  lanes);
    }
}

static void predict_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_predict *a = args;
    if (a->v)
        predict_body(a, true, first, end);
    else
        predict_body(a, false, first, end);
}

static void drift_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_drift *a = args;
    const float gamma = (float)a->gamma, rest = (float)(1 - a->gamma);
    for (int64_t i = first; i < end; i += NAMI_VL) {
        const int64_t lanes = end - i;
        const nami_vf change = nami_vget(NAMI_F32, a->after, i, lanes) -
                               nami_vget(NAMI_F32, a->before, i, lanes);
        nami_vput(NAMI_F32, a->mean, i,
                  nami_vget(NAMI_F32, a->mean, i, lanes) * gamma + change * rest,
                  lanes);
    }
}

static int64_t predict_units(const void *args)
{
    return ((const nami_arg_predict *)args)->count;
}

static int64_t drift_units(const void *args)
{
    return ((const nami_arg_drift *)args)->count;
}

static int64_t grain(const void *args)
{
    (void)args;
    return 8192;
}

const nami_cpu_kernel nami_cpu_predict = {
    .range = predict_range, .units = predict_units, .grain = grain};
const nami_cpu_kernel nami_cpu_drift = {
    .range = drift_range, .units = drift_units, .grain = grain};
