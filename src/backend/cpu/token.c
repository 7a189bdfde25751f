/* SPDX-License-Identifier: MIT */
/* token.c - embedding of tokens and cross entropy against them. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

#include <math.h>

NAMI_INLINE void embed_f_body(nami_dtype act, const nami_arg_embed *a, int64_t first,
                              int64_t end)
{
    const int64_t width = a->width;
    for (int64_t n = first; n < end; n++) {
        const int64_t word = nami_word(n, a->time, a->stride);
        const float *te = (const float *)a->wte + a->token[word] * width;
        const float *pe = a->wpe ? (const float *)a->wpe + n % a->time * width : NULL;
        const float *ty =
            a->type ? (const float *)a->wtt + a->type[word] * width : NULL;
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            nami_vf y = nami_vget(NAMI_F32, te, c, width - c);
            if (ty)
                y += nami_vget(NAMI_F32, ty, c, width - c);
            if (pe)
                y += nami_vget(NAMI_F32, pe, c, width - c);
            nami_vput(act, a->y, n * width + c, y, width - c);
        }
    }
}

static void embed_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_embed *a = args;
    if (a->act == NAMI_F32)
        embed_f_body(NAMI_F32, a, first, end);
    else
        embed_f_body(NAMI_BF16, a, first, end);
}

/* A thread owns columns and adds all rows to them in order, whatever tokens they hold. */
NAMI_INLINE void embed_bw_body(nami_dtype act, const nami_arg_embed *a, int64_t first,
                               int64_t end)
{
    const int64_t width = a->width;
    const int64_t from = first * NAMI_VL,
                  to = end * NAMI_VL < width ? end * NAMI_VL : width;
    for (int64_t n = 0; n < a->batch * a->time; n++) {
        const int64_t word = nami_word(n, a->time, a->stride);
        float *te = (float *)a->dwte + a->token[word] * width;
        float *pe = a->dwpe ? (float *)a->dwpe + n % a->time * width : NULL;
        float *ty = a->type ? (float *)a->dwtt + a->type[word] * width : NULL;
        for (int64_t c = from; c < to; c += NAMI_VL) {
            const int64_t lanes = to - c;
            const nami_vf dy = nami_vget(act, a->dy, n * width + c, lanes);
            nami_vput(NAMI_F32, te, c, nami_vget(NAMI_F32, te, c, lanes) + dy, lanes);
            if (pe)
                nami_vput(NAMI_F32, pe, c, nami_vget(NAMI_F32, pe, c, lanes) + dy,
                          lanes);
            if (ty)
                nami_vput(NAMI_F32, ty, c, nami_vget(NAMI_F32, ty, c, lanes) + dy,
                          lanes);
        }
    }
}

static void embed_bw_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_embed *a = args;
    if (a->act == NAMI_F32)
        embed_bw_body(NAMI_F32, a, first, end);
    else
        embed_bw_body(NAMI_BF16, a, first, end);
}

static int64_t embed_rows(const void *args)
{
    const nami_arg_embed *a = args;
    return a->batch * a->time;
}

static int64_t embed_rows_grain(const void *args)
{
    return 1 + 16384 / (1 + ((const nami_arg_embed *)args)->width);
}

static int64_t embed_columns(const void *args)
{
    return (((const nami_arg_embed *)args)->width + NAMI_VL - 1) / NAMI_VL;
}

static int64_t embed_columns_grain(const void *args)
{
    return 4 + 1024 / (1 + embed_rows(args));
}

const nami_cpu_kernel nami_cpu_embed_f = {
    .range = embed_f_range, .units = embed_rows, .grain = embed_rows_grain};
const nami_cpu_kernel nami_cpu_embed_bw = {
    .range = embed_bw_range, .units = embed_columns, .grain = embed_columns_grain};

/* Cross entropy with where its rows leave their losses. */
typedef struct xent_job {
    const nami_arg_xent *a;
    double *row; /* [B*T] */
    /* [B*T] how many logits are larger than the target's, -1: it does not count */
    double *place;
} xent_job;

static inline int64_t target_of(const nami_arg_xent *a, int64_t n)
{
    return a->target[nami_word(n, a->time, a->stride)];
}

/* Largest logit of a row; NaN may be lost here, the sum finds it. */
NAMI_INLINE float row_top(nami_dtype act, const void *x, int64_t at, int64_t width)
{
    enum { STEP = 4 * NAMI_VL };
    nami_vf t[4];
    for (int64_t v = 0; v < 4; v++)
        t[v] = nami_vset(-INFINITY);
    int64_t c = 0;
    const int64_t size = act == NAMI_F32 ? 4 : 2;
    for (; c + STEP <= width; c += STEP) {
        nami_vahead((const char *)x + (at + c) * size, STEP * size);
        for (int64_t v = 0; v < 4; v++)
            t[v] = nami_vmax(nami_vload(act, x, at + c + v * NAMI_VL), t[v]);
    }
    float top = nami_vtop(nami_vmax(nami_vmax(t[0], t[1]), nami_vmax(t[2], t[3])));
    for (; c < width; c++)
        top = fmaxf(top, nami_vload_part(act, x, at + c, 1)[0]);
    return top;
}

/* e^(x - top) of a row into `e`, whole vectors; returns their sum. */
NAMI_INLINE float row_exp_sum(nami_dtype act, const void *x, int64_t at, int64_t width,
                              float top, float *e)
{
    enum { STEP = 2 * NAMI_VL };
    nami_vf s[2] = {{0}};
    int64_t c = 0;
    for (; c + STEP <= width; c += STEP)
        for (int64_t v = 0; v < 2; v++) {
            const nami_vf y = nami_vexp(nami_vload(act, x, at + c + v * NAMI_VL) - top);
            s[v] += y;
            nami_vstore(NAMI_F32, e, c + v * NAMI_VL, y);
        }
    for (; c < width; c += NAMI_VL) {
        const int64_t lanes = width - c < NAMI_VL ? width - c : NAMI_VL;
        const nami_vf y =
            nami_vfirst(nami_vexp(nami_vget(act, x, at + c, width - c) - top), lanes);
        s[0] += y;
        nami_vstore(NAMI_F32, e, c, y);
    }
    return nami_vsum(s[0] + s[1]);
}

/* Mean of x - top over a row. */
NAMI_INLINE double row_mean(nami_dtype act, const void *x, int64_t at, int64_t width,
                            float top)
{
    nami_vf s = {0};
    for (int64_t c = 0; c < width; c += NAMI_VL) {
        const int64_t lanes = width - c < NAMI_VL ? width - c : NAMI_VL;
        s += nami_vfirst(nami_vget(act, x, at + c, width - c) - top, lanes);
    }
    return (double)nami_vsum(s) / (double)width;
}

/* logits = scale (e / sum - E/V - (1-E) onehot); all zero where the position does not count. */
NAMI_INLINE void row_gradient(nami_dtype act, const nami_arg_xent *a, int64_t n,
                              const float *e, float sum)
{
    const int64_t width = a->vocabulary, at = n * width, target = target_of(a, n);
    const size_t size = nami_dtype_size(act);
    const float scale = (float)a->scale, factor = scale / sum;
    const double even = a->smoothing / (double)width;
    const float rest = (float)(a->scale * even);
    const float hit = (float)(1 - a->smoothing + even);
    if (target < 0) {
        memset((char *)a->logits + (size_t)at * size, 0, (size_t)width * size);
        return;
    }
    for (int64_t c = 0; c < width; c += NAMI_VL)
        nami_vput(act, a->logits, at + c, factor * nami_vload(NAMI_F32, e, c) - rest,
                  width - c);
    nami_vstore_part(act, a->logits, at + target,
                     nami_vset(scale * (e[target] / sum - hit)), 1);
}

/* What the row's loss is below its logsumexp. */
NAMI_INLINE double row_target(nami_dtype act, const nami_arg_xent *a, int64_t n,
                              float top)
{
    const int64_t at = n * a->vocabulary;
    const double hit = nami_vload_part(act, a->logits, at + target_of(a, n), 1)[0];
    if (a->smoothing == 0)
        return hit;
    const double mean = top + row_mean(act, a->logits, at, a->vocabulary, top);
    return (1 - a->smoothing) * hit + a->smoothing * mean;
}

/* How many logits of row n are larger than the target's; equal ones in front of it are. */
NAMI_INLINE double row_place(nami_dtype act, const nami_arg_xent *a, int64_t n)
{
    const int64_t at = n * a->vocabulary, target = target_of(a, n);
    int64_t larger = 0;
    if (target < 0)
        return -1;
    const float y = nami_vload_part(act, a->logits, at + target, 1)[0];
    for (int64_t c = 0; c < a->vocabulary; c++) {
        const float x = act == NAMI_F32
                            ? ((const float *)a->logits)[at + c]
                            : nami_bf16_to_f32(((const uint16_t *)a->logits)[at + c]);
        larger += x > y || (x == y && c < target);
    }
    return (double)larger;
}

NAMI_INLINE void xent_body(nami_dtype act, const xent_job *j, int64_t first,
                           int64_t end, float *e)
{
    const nami_arg_xent *a = j->a;
    for (int64_t n = first; n < end; n++) {
        const int64_t at = n * a->vocabulary, target = target_of(a, n);
        const float top = row_top(act, a->logits, at, a->vocabulary);
        const float sum = row_exp_sum(act, a->logits, at, a->vocabulary, top, e);
        const double lse = (double)top + log((double)sum);
        j->row[n] = target < 0 ? 0 : lse - row_target(act, a, n, top);
        if (a->best)
            j->place[n] = row_place(act, a, n);
        if (a->gradient)
            row_gradient(act, a, n, e, sum);
    }
}

static void xent_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    const xent_job *j = args;
    if (j->a->act == NAMI_F32)
        xent_body(NAMI_F32, j, first, end, scratch);
    else
        xent_body(NAMI_BF16, j, first, end, scratch);
}

static int64_t xent_rows(const void *args)
{
    const xent_job *j = args;
    return j->a->batch * j->a->time;
}

static int64_t xent_grain(const void *args)
{
    const xent_job *j = args;
    return 1 + 4096 / (1 + j->a->vocabulary);
}

static const nami_cpu_kernel xent_kernel = {
    .range = xent_range, .units = xent_rows, .grain = xent_grain};

/* Doubles that hold one row of floats in whole cache lines and vectors. */
static size_t row_doubles(const nami_arg_xent *a)
{
    return (size_t)(a->vocabulary + 31) / 16 * 8;
}

size_t nami_cpu_xent_scratch(const nami_arg_xent *a, int threads)
{
    return ((size_t)threads * row_doubles(a) + 2 * (size_t)(a->batch * a->time)) *
           sizeof(double);
}

/* Counts of each sample from the places of its targets. */
static void xent_hits(const xent_job *j)
{
    const nami_arg_xent *a = j->a;
    for (int64_t s = 0; s < a->batch; s++) {
        a->best[s] = a->five[s] = 0;
        for (int64_t n = s * a->time; n < (s + 1) * a->time; n++) {
            a->best[s] += j->place[n] == 0;
            a->five[s] += j->place[n] >= 0 && j->place[n] < 5;
        }
    }
}

void nami_cpu_xent_launch(nami_backend *b, const nami_arg_xent *a)
{
    const size_t each = row_doubles(a);
    double *row = (double *)a->scratch + (size_t)b->threads * each;
    const xent_job job = {.a = a, .row = row, .place = row + a->batch * a->time};
    nami_cpu_run(b, &xent_kernel, &job, a->scratch, each * sizeof(double));
    if (a->best)
        xent_hits(&job);
    for (int64_t s = 0; s < a->batch; s++) {
        a->loss[s] = 0;
        for (int64_t t = 0; t < a->time; t++)
            a->loss[s] += row[s * a->time + t];
    }
}
