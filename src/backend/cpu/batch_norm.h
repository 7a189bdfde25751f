/* SPDX-License-Identifier: MIT */
/* batch_norm.h - what the files of batch norm share: sums over rows, and the pixels. */
#ifndef NAMI_BACKEND_CPU_BATCH_NORM_H
#define NAMI_BACKEND_CPU_BATCH_NORM_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

/* What the passes share: [C] each. */
typedef struct nami_batch_job {
    const nami_arg_batch_norm *a;
    float *mean, *scale; /* y = (x - mean) scale + b */
    /* sums of dy and dy (x - mean); then r and q of dx = scale dy + q (x - mean) + r */
    float *first, *second;
    int64_t chunk, chunks; /* rows of a chunk, and their number */
    float *partial;        /* [chunks][2][C] */
} nami_batch_job;

/* Chunks that n rows are cut into, and the rows of each: whole blocks. */
int64_t nami_batch_chunks(int64_t n);
int64_t nami_batch_chunk_rows(int64_t n);

/* Mean of the rows of x and their squared distances from it, summed: [C]. */
void nami_batch_moments(const nami_backend *b, const nami_batch_job *j, float *mean,
                        float *squares);

/* Sums of dy and dy (x - mean) into j->first and j->second; mean and scale are set. */
void nami_batch_sums(const nami_backend *b, const nami_batch_job *j);

/* Ask for what comes a page later than element `at` of x. */
NAMI_INLINE void nami_batch_ahead(nami_dtype act, const void *x, int64_t at)
{
    const int64_t size = act == NAMI_F32 ? 4 : 2;
    nami_vahead((const char *)x + at * size, NAMI_VL * size);
}

/* y in front of the ReLU, and x - mean. */
NAMI_INLINE nami_vf nami_batch_before_relu(nami_dtype act, const nami_batch_job *j,
                                           int64_t at, int64_t c, int64_t lanes,
                                           nami_vf *distance)
{
    *distance =
        nami_vget(act, j->a->x, at, lanes) - nami_vget(NAMI_F32, j->mean, c, lanes);
    return *distance * nami_vget(NAMI_F32, j->scale, c, lanes) +
           nami_vget(NAMI_F32, j->a->b, c, lanes);
}

/* dy in front of the ReLU, and x - mean. */
NAMI_INLINE nami_vf nami_batch_dy(nami_dtype act, const nami_batch_job *j, int64_t at,
                                  int64_t c, int64_t lanes, nami_vf *distance)
{
    nami_batch_ahead(act, j->a->x, at);
    nami_batch_ahead(act, j->a->dy, at);
    const nami_vf y = nami_batch_before_relu(act, j, at, c, lanes, distance);
    const nami_vf dy = nami_vget(act, j->a->dy, at, lanes);
    return j->a->relu ? nami_vselect(y <= 0, (nami_vf){0}, dy) : dy;
}

#endif
