/* SPDX-License-Identifier: MIT */
/* attention.h - what both passes of attention share: where a head lies, and work memory of a thread. */
#ifndef NAMI_BACKEND_CPU_ATTENTION_H
#define NAMI_BACKEND_CPU_ATTENTION_H

#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/random.h"
#include "backend/cpu/tile.h"

/* One head of one sample. */
typedef struct nami_head {
    const nami_arg_attention *a;
    int64_t b, h, time, width; /* sample, head, T, D */
    int64_t padded, panels;    /* T in whole tiles; D in whole tiles */
    int64_t q, k, v, stride;   /* first element of q, k, v in qkv; 3C */
    int64_t y, y_stride;       /* first element in y and dy; C */
    int64_t row;               /* row stride of weights in work memory, floats */
    float scale;               /* 1/sqrt(D) */
} nami_head;

/* Row stride of [., T] weights: a cache line more than whole tiles, so that columns spread over cache sets. */
static inline int64_t nami_weights_row(int64_t padded)
{
    return padded + 16;
}

static inline nami_head nami_head_of(const nami_arg_attention *a, int64_t unit)
{
    const int64_t width = a->heads * a->head_width;
    const int64_t b = unit / a->heads, h = unit % a->heads;
    const int64_t q = b * a->time * 3 * width + h * a->head_width;
    const int64_t padded = nami_tiles_up(a->time);
    return (nami_head){.a = a,
                       .b = b,
                       .h = h,
                       .time = a->time,
                       .width = a->head_width,
                       .padded = padded,
                       .panels = nami_tiles_up(a->head_width),
                       .q = q,
                       .k = q + width,
                       .v = q + 2 * width,
                       .stride = 3 * width,
                       .y = b * a->time * width + h * a->head_width,
                       .y_stride = width,
                       .row = nami_weights_row(padded),
                       .scale = 1.0f / sqrtf((float)a->head_width)};
}

/* Heads are the units of both kernels. Local. */
static inline int64_t nami_attention_units(const void *args)
{
    const nami_arg_attention *a = args;
    return a->batch * a->heads;
}

/* Dropout factors of weights (i, 0 .. n) into `factor` [n rounded up to NAMI_FACTORS]. Local. */
static inline void nami_weight_factors(const nami_head *h, int64_t i, int64_t n,
                                       float *factor)
{
    const nami_arg_attention *a = h->a;
    const nami_drop d = nami_drop_of(a->key, a->first_sample + h->b, a->dropout);
    const int64_t quad = nami_attention_element(h->time, h->h, i, 0) / 4;
    for (int64_t j = 0; j < n; j += NAMI_FACTORS)
        nami_drop_factors(&d, quad + j / 4, factor + j);
}

#endif
