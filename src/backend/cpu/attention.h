/* SPDX-License-Identifier: MIT */
/* attention.h - what both passes of attention share: where a head lies, and work memory of a thread. */
#ifndef NAMI_BACKEND_CPU_ATTENTION_H
#define NAMI_BACKEND_CPU_ATTENTION_H

#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/random.h"
#include "backend/cpu/tile.h"

/* One head of one sample; heads that share k and v are visited one after the other. */
typedef struct nami_head {
    const nami_arg_attention *a;
    int64_t b, h, g, time, width; /* sample, head, group, T, D */
    int64_t share;                /* heads of a group */
    /* position of row 0 in the sample; columns in all: first + T, or length[b] */
    int64_t first, columns;
    int64_t padded, panels;  /* first + T in whole tiles; D in whole tiles */
    int64_t q, stride;       /* first element of q in qkv; its row stride (H+2G)D */
    int64_t dk, dv;          /* first elements of k, v in qkv and dqkv */
    const void *kv;          /* k and v of all columns: qkv, or gathered from slices */
    int64_t k, v, kv_stride; /* first elements of k, v in kv; its row stride */
    int64_t y, y_stride;     /* first element in y and dy; C */
    int64_t row;             /* row stride of weights in work memory, floats */
    float scale;             /* 1/sqrt(D) */
} nami_head;

/* Row stride of [., T] weights: a cache line more than whole tiles, so that columns spread over cache sets. */
static inline int64_t nami_weights_row(int64_t padded)
{
    return padded + 16;
}

/* Whether the rows are a token slice of a sample. */
static inline bool nami_is_slice(const nami_arg_attention *a)
{
    return a->slices > 1;
}

/* `columns` in whole tiles; a slice's tiles of rows need not begin on a tile of columns and may reach further. Local. */
static inline int64_t nami_columns_up(const nami_arg_attention *a, int64_t columns)
{
    return nami_tiles_up(nami_is_slice(a) ? columns + NAMI_TM : columns);
}

/* Positions of the whole sample. Local. */
static inline int64_t nami_whole_time(const nami_arg_attention *a)
{
    return nami_is_slice(a) ? a->slices * a->time : a->time;
}

/* The first head of group `unit`. Local. */
static inline nami_head nami_head_of(const nami_arg_attention *a, int64_t unit)
{
    const int64_t groups = nami_attention_groups(a), share = a->heads / groups;
    const int64_t b = unit / groups, g = unit % groups, h = g * share;
    const int64_t width = a->head_width, stride = nami_attention_row(a);
    const int64_t row = b * a->time * stride, k = row + (a->heads + g) * width;
    const int64_t first = nami_is_slice(a) ? a->slice * a->time : 0;
    const int64_t padded = nami_columns_up(a, first + a->time);
    return (nami_head){.a = a,
                       .b = b,
                       .h = h,
                       .g = g,
                       .time = a->time,
                       .width = width,
                       .share = share,
                       .first = first,
                       .columns =
                           a->whole && a->length ? a->length[b] : first + a->time,
                       .padded = padded,
                       .panels = nami_tiles_up(width),
                       .q = row + h * width,
                       .stride = stride,
                       .dk = k,
                       .dv = k + groups * width,
                       .kv = a->qkv,
                       .k = k,
                       .v = k + groups * width,
                       .kv_stride = stride,
                       .y = (b * a->time * a->heads + h) * width,
                       .y_stride = a->heads * width,
                       .row = nami_weights_row(padded),
                       .scale = 1.0f / sqrtf((float)a->head_width)};
}

/* Go on to the next head of the group. Local. */
static inline void nami_head_next(nami_head *h)
{
    h->h++;
    h->q += h->width;
    h->y += h->width;
}

/* Columns that the row at position `p` sees. Local. */
static inline int64_t nami_head_seen(const nami_head *h, int64_t p)
{
    return h->a->whole ? h->columns : p + 1;
}

/* End of the columns that some of the `rows` rows from position `p` on, a multiple of NAMI_TM, see; of theirs above the
 * diagonal the weights are zero. Local. */
static inline int64_t nami_head_reach(const nami_head *h, int64_t p, int64_t rows)
{
    return h->a->whole ? h->columns : p + rows;
}

/* Floats of work memory that nami_head_gather needs. Local. */
static inline size_t nami_gather_floats(const nami_arg_attention *a)
{
    return nami_is_slice(a) ? (size_t)(2 * nami_whole_time(a) * a->head_width) : 0;
}

/* Bring k and v of all columns of a slice together in `to`, [columns][k, v][D] act. Local. */
static inline void nami_head_gather(nami_head *h, void *to)
{
    const nami_arg_attention *a = h->a;
    const size_t size = nami_dtype_size(a->act), bytes = (size_t)h->width * size;
    const size_t part = (size_t)(h->dv - h->dk) * size;
    char *next = to;
    for (int64_t j = 0; j < h->columns; j++) {
        const char *qkv =
            (const char *)a->qkv - (size_t)(a->slice - j / h->time) * a->stride;
        const char *k = qkv + (size_t)(h->dk + j % h->time * h->stride) * size;
        memcpy(next, k, bytes);
        memcpy(next + bytes, k + part, bytes);
        next += 2 * bytes;
    }
    h->kv = to;
    h->k = 0;
    h->v = h->width;
    h->kv_stride = 2 * h->width;
}

/* Groups of heads are the units of both kernels. Local. */
static inline int64_t nami_attention_units(const void *args)
{
    const nami_arg_attention *a = args;
    return a->batch * nami_attention_groups(a);
}

/* Dropout factors of weights (row i of the slice, columns 0 .. n) into `factor` [n rounded up to NAMI_FACTORS]. Local. */
static inline void nami_weight_factors(const nami_head *h, int64_t i, int64_t n,
                                       float *factor)
{
    const nami_arg_attention *a = h->a;
    const nami_drop d = nami_drop_of(a->key, a->first_sample + h->b, a->dropout);
    const int64_t quad =
        nami_attention_element(nami_whole_time(a), h->h, h->first + i, 0) / 4;
    for (int64_t j = 0; j < n; j += NAMI_FACTORS)
        nami_drop_factors(&d, quad + j / 4, factor + j);
}

#endif
