/* SPDX-License-Identifier: MIT */
/* peak.c - the measured peak of matrix products. */
#include "backend/backend.h"

#include "base/clock.h"

/* Seconds of one launch of `p`. */
static double timed(nami_backend *b, const nami_prepared *p, const nami_arg_linear *a)
{
    const double start = nami_now();
    nami_backend_wait(b, nami_backend_launch(b, 0, p, a));
    return nami_now() - start;
}

static void *zeros(nami_backend *b, size_t bytes)
{
    void *block = nami_backend_alloc(b, NAMI_MEM_OTHER, bytes ? bytes : 1);
    nami_backend_wait(b, nami_backend_zero(b, 0, block, bytes));
    return block;
}

/* Best rate of `kernel` on the shape of `a`, FLOP/s, tried for about `seconds`; 0 when it is not there. */
static double best_rate(nami_backend *b, nami_kernel kernel, nami_arg_linear a,
                        double seconds)
{
    const nami_prepared *pack, *p;
    if (nami_backend_prepare(b, NAMI_LINEAR_PACK, &a, &pack) != NAMI_OK ||
        nami_backend_prepare(b, kernel, &a, &p) != NAMI_OK)
        return 0;
    void *scratch = zeros(b, p->scratch > pack->scratch ? p->scratch : pack->scratch);
    void *packed_f = zeros(b, pack->packed_f), *packed_b = zeros(b, pack->packed_b);
    a.scratch = scratch;
    a.packed_f = packed_f;
    a.packed_b = packed_b;
    timed(b, pack, &a);
    double best = 1e30;
    const double end = nami_now() + seconds;
    do {
        const double t = timed(b, p, &a);
        best = t < best ? t : best;
    } while (nami_now() < end);
    nami_backend_free(b, packed_b);
    nami_backend_free(b, packed_f);
    nami_backend_free(b, scratch);
    return p->flops / best;
}

/* The better of the two products of one type. */
static double type_rate(nami_backend *b, nami_arg_linear a, nami_dtype act,
                        double seconds)
{
    a.act = act;
    const double forward = best_rate(b, NAMI_LINEAR_F, a, seconds / 2);
    const double backward = best_rate(b, NAMI_LINEAR_BI, a, seconds / 2);
    return forward > backward ? forward : backward;
}

double nami_backend_peak(nami_backend *b, nami_dtype act, double seconds)
{
    const int64_t edge = !strcmp(b->type->name, "cpu") ? 768 : 64;
    const size_t bytes = (size_t)(edge * edge) * 8;
    void *x = zeros(b, bytes), *w = zeros(b, bytes), *y = zeros(b, bytes);
    const nami_arg_linear a = {
        .n = edge, .in = edge, .out = edge, .x = x, .w = w, .y = y, .dy = y, .dx = x};
    const bool both = act == NAMI_BF16; /* the processor may be faster in f32 */
    const double own = type_rate(b, a, act, both ? seconds / 2 : seconds);
    const double f32 = both ? type_rate(b, a, NAMI_F32, seconds / 2) : 0;
    nami_backend_free(b, y);
    nami_backend_free(b, w);
    nami_backend_free(b, x);
    return own > f32 ? own : f32;
}
