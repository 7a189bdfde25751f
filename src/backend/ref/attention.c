/* SPDX-License-Identifier: MIT */
/* attention.c - causal multi-head self-attention, one row of weights at a time. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

/* Element d of part (0 q, 1 k, 2 v) of head h at (b,t) in qkv [B,T,3C]. */
static int64_t part_at(const nami_arg_attention *a, int64_t b, int64_t t, int part,
                       int64_t h, int64_t d)
{
    const int64_t width = a->heads * a->head_width;
    return ((b * a->time + t) * 3 + part) * width + h * a->head_width + d;
}

/* Element d of head h at (b,t) in y [B,T,C]. */
static int64_t out_at(const nami_arg_attention *a, int64_t b, int64_t t, int64_t h,
                      int64_t d)
{
    return ((b * a->time + t) * a->heads + h) * a->head_width + d;
}

/* q_i . k_j / sqrt(D). */
static double score(const nami_arg_attention *a, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < a->head_width; d++)
        sum += GET(a->act, a->qkv, part_at(a, b, i, 0, h, d)) *
               GET(a->act, a->qkv, part_at(a, b, j, 1, h, d));
    return sum / sqrt((double)a->head_width);
}

static double factor(const nami_arg_attention *a, int64_t b, int64_t h, int64_t i,
                     int64_t j)
{
    return nami_ref_factor(a->key, a->first_sample + b,
                           nami_attention_element(a->time, h, i, j), a->dropout);
}

static void forward_row(const nami_arg_attention *a, int64_t b, int64_t h, int64_t i,
                        double *weight)
{
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= i; j++) {
        weight[j] = score(a, b, h, i, j);
        top = fmax(top, weight[j]);
    }
    for (int64_t j = 0; j <= i; j++)
        sum += exp(weight[j] - top);
    const double lse = top + log(sum);
    nami_ref_set(nami_ref_wide(a->act), a->lse, (b * a->heads + h) * a->time + i, lse);
    for (int64_t j = 0; j <= i; j++)
        weight[j] = exp(weight[j] - lse) * factor(a, b, h, i, j);
    for (int64_t d = 0; d < a->head_width; d++) {
        double y = 0;
        for (int64_t j = 0; j <= i; j++)
            y += weight[j] * GET(a->act, a->qkv, part_at(a, b, j, 2, h, d));
        nami_ref_set(a->act, a->y, out_at(a, b, i, h, d), y);
    }
}

void nami_ref_attention_f(const void *args)
{
    const nami_arg_attention *a = args;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->time; i++)
                forward_row(a, b, h, i, a->scratch);
}

/* Where one head's gradients are summed in double: scratch as q, k, v of [T,D] each. */
typedef struct head_sums {
    double *dq, *dk, *dv;
} head_sums;

/* Add row i's share: with p = softmax weight and f its dropout factor, dv_j += f p dy_i,
 * ds = p (f dy_i.v_j - dy_i.y_i), dq_i += ds k_j / sqrt(D), dk_j += ds q_i / sqrt(D). */
static void backward_row(const nami_arg_attention *a, int64_t b, int64_t h, int64_t i,
                         const head_sums *s)
{
    const int64_t width = a->head_width;
    const double root = sqrt((double)width);
    const double lse =
        GET(nami_ref_wide(a->act), a->lse, (b * a->heads + h) * a->time + i);
    double dot = 0; /* dy_i . y_i */
    for (int64_t d = 0; d < width; d++)
        dot += GET(a->act, a->dy, out_at(a, b, i, h, d)) *
               GET(a->act, a->y, out_at(a, b, i, h, d));
    for (int64_t j = 0; j <= i; j++) {
        const double p = exp(score(a, b, h, i, j) - lse), f = factor(a, b, h, i, j);
        double dyv = 0;
        for (int64_t d = 0; d < width; d++) {
            const double dy = GET(a->act, a->dy, out_at(a, b, i, h, d));
            dyv += dy * GET(a->act, a->qkv, part_at(a, b, j, 2, h, d));
            s->dv[j * width + d] += f * p * dy;
        }
        const double ds = p * (f * dyv - dot) / root;
        for (int64_t d = 0; d < width; d++) {
            s->dq[i * width + d] += ds * GET(a->act, a->qkv, part_at(a, b, j, 1, h, d));
            s->dk[j * width + d] += ds * GET(a->act, a->qkv, part_at(a, b, i, 0, h, d));
        }
    }
}

static void backward_head(const nami_arg_attention *a, int64_t b, int64_t h)
{
    const int64_t count = a->time * a->head_width;
    double *const sums = a->scratch;
    const head_sums s = {.dq = sums, .dk = sums + count, .dv = sums + 2 * count};
    memset(sums, 0, (size_t)(3 * count) * sizeof *sums);
    for (int64_t i = 0; i < a->time; i++)
        backward_row(a, b, h, i, &s);
    for (int part = 0; part < 3; part++)
        for (int64_t t = 0; t < a->time; t++)
            for (int64_t d = 0; d < a->head_width; d++)
                nami_ref_set(a->act, a->dqkv, part_at(a, b, t, part, h, d),
                             sums[part * count + t * a->head_width + d]);
}

void nami_ref_attention_bi(const void *args)
{
    const nami_arg_attention *a = args;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            backward_head(a, b, h);
}
