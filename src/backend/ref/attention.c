/* SPDX-License-Identifier: MIT */
/* attention.c - multi-head self-attention, one row of weights at a time.
 *
 * Positions of a sample are counted through all its slices: those of the slice at work begin with first_of().
 */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

static int64_t first_of(const nami_arg_attention *a)
{
    return a->slices > 1 ? a->slice * a->time : 0;
}

static int64_t whole_time(const nami_arg_attention *a)
{
    return a->slices > 1 ? a->slices * a->time : a->time;
}

/* Strides back to the slice with position t of the sample. */
static size_t back_to(const nami_arg_attention *a, int64_t t)
{
    return a->slices > 1 ? (size_t)(a->slice - t / a->time) * a->stride : 0;
}

/* Columns of row i of sample b that are not masked. */
static int64_t seen(const nami_arg_attention *a, int64_t b, int64_t i)
{
    if (!a->whole)
        return i + 1;
    return a->length ? a->length[b] : a->time;
}

/* The head of k and v that head h of q meets. */
static int64_t group_of(const nami_arg_attention *a, int64_t h)
{
    return h / (a->heads / nami_attention_groups(a));
}

/* Element d of part (0 q, 1 k, 2 v), of its head h, at (b,t) in qkv [B,T,(H+2G)D] of t's slice. */
static int64_t part_at(const nami_arg_attention *a, int64_t b, int64_t t, int part,
                       int64_t h, int64_t d)
{
    const int64_t before = part == 0   ? 0
                           : part == 1 ? a->heads
                                       : a->heads + nami_attention_groups(a);
    return (b * a->time + t % a->time) * nami_attention_row(a) +
           (before + h) * a->head_width + d;
}

static double part_get(const nami_arg_attention *a, int64_t b, int64_t t, int part,
                       int64_t h, int64_t d)
{
    const char *qkv = (const char *)a->qkv - back_to(a, t);
    return GET(a->act, qkv, part_at(a, b, t, part, h, d));
}

/* Element d of head h at row (b,i) of the slice in y [B,T,C]. */
static int64_t out_at(const nami_arg_attention *a, int64_t b, int64_t i, int64_t h,
                      int64_t d)
{
    return ((b * a->time + i) * a->heads + h) * a->head_width + d;
}

/* q_i . k_j / sqrt(D). */
static double score(const nami_arg_attention *a, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < a->head_width; d++)
        sum += part_get(a, b, i, 0, h, d) * part_get(a, b, j, 1, group_of(a, h), d);
    return sum / sqrt((double)a->head_width);
}

static double factor(const nami_arg_attention *a, int64_t b, int64_t h, int64_t i,
                     int64_t j)
{
    return nami_ref_factor(a->key, a->first_sample + b,
                           nami_attention_element(whole_time(a), h, i, j), a->dropout);
}

/* Row r of the slice. */
static void forward_row(const nami_arg_attention *a, int64_t b, int64_t h, int64_t r,
                        double *weight)
{
    const int64_t i = first_of(a) + r, end = seen(a, b, i);
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < end; j++) {
        weight[j] = score(a, b, h, i, j);
        top = fmax(top, weight[j]);
    }
    for (int64_t j = 0; j < end; j++)
        sum += exp(weight[j] - top);
    const double lse = top + log(sum);
    nami_ref_set(nami_ref_wide(a->act), a->lse, (b * a->heads + h) * a->time + r, lse);
    for (int64_t j = 0; j < end; j++)
        weight[j] = exp(weight[j] - lse) * factor(a, b, h, i, j);
    for (int64_t d = 0; d < a->head_width; d++) {
        double y = 0;
        for (int64_t j = 0; j < end; j++)
            y += weight[j] * part_get(a, b, j, 2, group_of(a, h), d);
        nami_ref_set(a->act, a->y, out_at(a, b, r, h, d), y);
    }
}

void nami_ref_attention_f(const void *args)
{
    const nami_arg_attention *a = args;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t r = 0; r < a->time; r++)
                forward_row(a, b, h, r, a->scratch);
}

/* Where gradients are summed in double: scratch as q [T,D] of a head, then k, v of its group at all positions so far. */
typedef struct head_sums {
    double *dq, *dk, *dv;
} head_sums;

/* Add row r's share: with i its position, p = softmax weight and f its dropout factor, dv_j += f p dy_i,
 * ds = p (f dy_i.v_j - dy_i.y_i), dq_i += ds k_j / sqrt(D), dk_j += ds q_i / sqrt(D). */
static void backward_row(const nami_arg_attention *a, int64_t b, int64_t h, int64_t r,
                         const head_sums *s)
{
    const int64_t width = a->head_width, i = first_of(a) + r, g = group_of(a, h);
    const int64_t end = seen(a, b, i);
    const double root = sqrt((double)width);
    const double lse =
        GET(nami_ref_wide(a->act), a->lse, (b * a->heads + h) * a->time + r);
    double dot = 0; /* dy_i . y_i */
    for (int64_t d = 0; d < width; d++)
        dot += GET(a->act, a->dy, out_at(a, b, r, h, d)) *
               GET(a->act, a->y, out_at(a, b, r, h, d));
    for (int64_t j = 0; j < end; j++) {
        const double p = exp(score(a, b, h, i, j) - lse), f = factor(a, b, h, i, j);
        double dyv = 0;
        for (int64_t d = 0; d < width; d++) {
            const double dy = GET(a->act, a->dy, out_at(a, b, r, h, d));
            dyv += dy * part_get(a, b, j, 2, g, d);
            s->dv[j * width + d] += f * p * dy;
        }
        const double ds = p * (f * dyv - dot) / root;
        for (int64_t d = 0; d < width; d++) {
            s->dq[r * width + d] += ds * part_get(a, b, j, 1, g, d);
            s->dk[j * width + d] += ds * part_get(a, b, i, 0, h, d);
        }
    }
}

/* The sum of part 1 or 2 of group g at position t: into dkv of an earlier slice, else, with what later slices left in the own
 * dkv, into dqkv. */
static void store_sum(const nami_arg_attention *a, int64_t b, int64_t g, int64_t t,
                      int part, int64_t d, double sum)
{
    const nami_dtype wide = nami_ref_wide(a->act);
    const bool sliced = a->slices > 1, last = sliced && a->slice == a->slices - 1;
    const int64_t width = nami_attention_groups(a) * a->head_width;
    const int64_t at =
        ((b * a->time + t % a->time) * 2 + part - 1) * width + g * a->head_width + d;
    char *dkv = sliced ? (char *)a->dkv - back_to(a, t) : NULL;
    if (sliced && !last)
        sum += GET(wide, dkv, at);
    if (t < first_of(a))
        nami_ref_set(wide, dkv, at, sum);
    else
        nami_ref_set(a->act, a->dqkv, part_at(a, b, t, part, g, d), sum);
}

static void backward_head(const nami_arg_attention *a, int64_t b, int64_t h,
                          const head_sums *s)
{
    const int64_t width = a->head_width;
    memset(s->dq, 0, (size_t)(a->time * width) * sizeof *s->dq);
    for (int64_t r = 0; r < a->time; r++)
        backward_row(a, b, h, r, s);
    for (int64_t r = 0; r < a->time; r++)
        for (int64_t d = 0; d < width; d++)
            nami_ref_set(a->act, a->dqkv, part_at(a, b, r, 0, h, d),
                         s->dq[r * width + d]);
}

/* The heads that share k, v of group g. */
static void backward_group(const nami_arg_attention *a, int64_t b, int64_t g)
{
    const int64_t width = a->head_width, columns = first_of(a) + a->time;
    const int64_t share = a->heads / nami_attention_groups(a);
    double *const sums = a->scratch;
    const head_sums s = {.dq = sums,
                         .dk = sums + a->time * width,
                         .dv = sums + (a->time + columns) * width};
    memset(s.dk, 0, (size_t)(2 * columns * width) * sizeof *s.dk);
    for (int64_t h = g * share; h < (g + 1) * share; h++)
        backward_head(a, b, h, &s);
    for (int64_t t = 0; t < columns; t++)
        for (int64_t d = 0; d < width; d++) {
            store_sum(a, b, g, t, 1, d, s.dk[t * width + d]);
            store_sum(a, b, g, t, 2, d, s.dv[t * width + d]);
        }
}

void nami_ref_attention_bi(const void *args)
{
    const nami_arg_attention *a = args;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t g = 0; g < nami_attention_groups(a); g++)
            backward_group(a, b, g);
}
