/* SPDX-License-Identifier: MIT */
/* rotary.c - rotary positions: sines and cosines of some pairs of a position are made once for all its heads and samples.
 */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

enum { PAIRS = 64 }; /* of a head at a time, whole vectors */
_Static_assert(PAIRS % NAMI_VL == 0, "loads of whole vectors stay inside");

/* Cosines and sines of n pairs. */
typedef struct turn {
    int64_t n;
    float c[PAIRS], s[PAIRS];
} turn;

/* Turn pairs d .. d + r->n of all heads of position t. */
NAMI_INLINE void turn_pairs(nami_dtype act, const nami_arg_rotary *a, int64_t t,
                            int64_t d, const turn *r, const void *x, void *y)
{
    const int64_t half = a->width / 2, all = a->heads * a->width + a->rest;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) {
            const int64_t lo = (b * a->time + t) * all + h * a->width + d,
                          hi = lo + half;
            for (int64_t i = 0; i < r->n; i += NAMI_VL) {
                const int64_t lanes = r->n - i;
                const nami_vf c = nami_vload(NAMI_F32, r->c, i),
                              s = nami_vload(NAMI_F32, r->s, i);
                const nami_vf p = nami_vget(act, x, lo + i, lanes),
                              q = nami_vget(act, x, hi + i, lanes);
                nami_vput(act, y, lo + i, p * c - q * s, lanes);
                nami_vput(act, y, hi + i, q * c + p * s, lanes);
            }
        }
}

/* Positions [first, end); `sign` -1: back. */
NAMI_INLINE void turn_body(nami_dtype act, const nami_arg_rotary *a, double sign,
                           const void *x, void *y, int64_t first, int64_t end)
{
    const int64_t half = a->width / 2;
    double rate[PAIRS] = {0};
    turn r = {0};
    for (int64_t d = 0; d < half; d += PAIRS) {
        r.n = half - d < PAIRS ? half - d : PAIRS;
        for (int64_t i = 0; i < r.n; i++)
            rate[i] = pow(a->theta, -2.0 * (double)(d + i) / (double)a->width);
        for (int64_t t = first; t < end; t++) {
            for (int64_t i = 0; i < r.n; i++) {
                const double angle = (double)(a->first + t) * rate[i];
                r.c[i] = (float)cos(angle);
                r.s[i] = (float)(sign * sin(angle));
            }
            turn_pairs(act, a, t, d, &r, x, y);
        }
    }
}

/* What does not turn. */
static void copy_rest(const nami_arg_rotary *a, const void *x, void *y, int64_t first,
                      int64_t end)
{
    const size_t size = nami_dtype_size(a->act), bytes = (size_t)a->rest * size;
    const size_t before = (size_t)(a->heads * a->width) * size;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t t = first; t < end; t++) {
            const size_t at = (size_t)(b * a->time + t) * (before + bytes) + before;
            memcpy((char *)y + at, (const char *)x + at, bytes);
        }
}

static void turn_range(const nami_arg_rotary *a, double sign, const void *x, void *y,
                       int64_t first, int64_t end)
{
    if (a->act == NAMI_F32)
        turn_body(NAMI_F32, a, sign, x, y, first, end);
    else
        turn_body(NAMI_BF16, a, sign, x, y, first, end);
    copy_rest(a, x, y, first, end);
}

static void rotary_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_rotary *a = args;
    turn_range(a, 1, a->x, a->y, first, end);
}

static void rotary_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_rotary *a = args;
    turn_range(a, -1, a->dy, a->dx, first, end);
}

static int64_t positions(const void *args)
{
    return ((const nami_arg_rotary *)args)->time;
}

static int64_t positions_grain(const void *args)
{
    const nami_arg_rotary *a = args;
    return 1 + 8192 / (1 + a->batch * (a->heads * a->width + a->rest));
}

const nami_cpu_kernel nami_cpu_rotary_f = {
    .range = rotary_f_range, .units = positions, .grain = positions_grain};
const nami_cpu_kernel nami_cpu_rotary_bi = {
    .range = rotary_bi_range, .units = positions, .grain = positions_grain};
