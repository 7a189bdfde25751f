/* SPDX-License-Identifier: MIT */
/* norm.c - layer norm and RMS norm, and their gradients, rows and columns in vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

#include <math.h>

/* Sum of a row, four vectors side by side. */
NAMI_INLINE float row_sum(nami_dtype act, const void *x, int64_t at, int64_t width)
{
    enum { STEP = 4 * NAMI_VL };
    nami_vf s[4] = {{0}};
    int64_t c = 0;
    for (; c + STEP <= width; c += STEP)
        for (int64_t v = 0; v < 4; v++)
            s[v] += nami_vload(act, x, at + c + v * NAMI_VL);
    for (; c < width; c += NAMI_VL)
        s[0] += nami_vget(act, x, at + c, width - c);
    return nami_vsum((s[0] + s[1]) + (s[2] + s[3]));
}

/* Sum of squared distances from `mean`. */
NAMI_INLINE float row_spread(nami_dtype act, const void *x, int64_t at, int64_t width,
                             float mean)
{
    enum { STEP = 2 * NAMI_VL };
    nami_vf s[2] = {{0}};
    int64_t c = 0;
    for (; c + STEP <= width; c += STEP)
        for (int64_t v = 0; v < 2; v++) {
            const nami_vf d = nami_vload(act, x, at + c + v * NAMI_VL) - mean;
            s[v] += d * d;
        }
    float rest = 0;
    for (; c + NAMI_VL <= width; c += NAMI_VL) {
        const nami_vf d = nami_vload(act, x, at + c) - mean;
        s[0] += d * d;
    }
    for (; c < width; c++) {
        const float d = nami_vload_part(act, x, at + c, 1)[0] - mean;
        rest += d * d;
    }
    return nami_vsum(s[0] + s[1]) + rest;
}

NAMI_INLINE void norm_f_body(nami_dtype act, const nami_arg_norm *a, int64_t first,
                             int64_t end)
{
    const int64_t width = a->width;
    for (int64_t n = first; n < end; n++) {
        const int64_t at = n * width;
        const float mean = a->rms ? 0 : row_sum(act, a->x, at, width) / (float)width;
        const float var = row_spread(act, a->x, at, width, mean) / (float)width;
        const float rstd = 1.0f / sqrtf(var + (float)a->eps);
        if (!a->rms)
            ((float *)a->mean)[n] = mean;
        ((float *)a->rstd)[n] = rstd;
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            const int64_t lanes = width - c;
            const nami_vf hat = (nami_vget(act, a->x, at + c, lanes) - mean) * rstd;
            nami_vf y = hat * nami_vget(NAMI_F32, a->w, c, lanes);
            if (a->b)
                y += nami_vget(NAMI_F32, a->b, c, lanes);
            nami_vput(act, a->y, at + c, y, lanes);
        }
    }
}

static void norm_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_norm *a = args;
    if (a->act == NAMI_F32)
        norm_f_body(NAMI_F32, a, first, end);
    else
        norm_f_body(NAMI_BF16, a, first, end);
}

/* One row of dx = add + rstd (d - mean(d) - hat mean(d hat)), d = dy w; without mean(d) where the mean is none of x's. */
NAMI_INLINE void norm_bi_row(nami_dtype act, const nami_arg_norm *a, int64_t n,
                             bool add)
{
    const int64_t width = a->width, at = n * width;
    const float mean = a->rms ? 0 : ((const float *)a->mean)[n],
                rstd = ((const float *)a->rstd)[n];
    nami_vf sum_d = {0}, sum_dh = {0};
    for (int64_t c = 0; c < width; c += NAMI_VL) {
        const int64_t lanes = width - c;
        const nami_vf d =
            nami_vget(act, a->dy, at + c, lanes) * nami_vget(NAMI_F32, a->w, c, lanes);
        sum_d += d; /* lanes past the end hold d = 0 */
        sum_dh += d * ((nami_vget(act, a->x, at + c, lanes) - mean) * rstd);
    }
    const float mean_d = a->rms ? 0 : nami_vsum(sum_d) / (float)width,
                mean_dh = nami_vsum(sum_dh) / (float)width;
    for (int64_t c = 0; c < width; c += NAMI_VL) {
        const int64_t lanes = width - c;
        const nami_vf d =
            nami_vget(act, a->dy, at + c, lanes) * nami_vget(NAMI_F32, a->w, c, lanes);
        const nami_vf hat = (nami_vget(act, a->x, at + c, lanes) - mean) * rstd;
        nami_vf dx = (d - mean_d - hat * mean_dh) * rstd;
        if (add)
            dx += nami_vget(act, a->add, at + c, lanes);
        nami_vput(act, a->dx, at + c, dx, lanes);
    }
}

NAMI_INLINE void norm_bi_body(nami_dtype act, const nami_arg_norm *a, int64_t first,
                              int64_t end)
{
    for (int64_t n = first; n < end; n++)
        norm_bi_row(act, a, n, a->add != NULL);
}

static void norm_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_norm *a = args;
    if (a->act == NAMI_F32)
        norm_bi_body(NAMI_F32, a, first, end);
    else
        norm_bi_body(NAMI_BF16, a, first, end);
}

/* rows summed before they are added to the total: keeps rounding errors small */
enum { BLOCK = 32 };

/* Vector c of dw and db. */
NAMI_INLINE void norm_bw_vector(nami_dtype act, const nami_arg_norm *a, int64_t c,
                                int64_t lanes)
{
    const float *mean = a->mean, *rstd = a->rstd;
    nami_vf dw = nami_vget(NAMI_F32, a->dw, c, lanes), db = {0};
    if (a->db)
        db = nami_vget(NAMI_F32, a->db, c, lanes);
    for (int64_t first = 0; first < a->n; first += BLOCK) {
        const int64_t end = first + BLOCK < a->n ? first + BLOCK : a->n;
        nami_vf bw = {0}, bb = {0};
        for (int64_t n = first; n < end; n++) {
            const nami_vf dy = nami_vget(act, a->dy, n * a->width + c, lanes);
            const nami_vf x = nami_vget(act, a->x, n * a->width + c, lanes);
            bw += dy * ((x - (a->rms ? 0 : mean[n])) * rstd[n]);
            bb += dy;
        }
        dw += bw;
        db += bb;
    }
    nami_vput(NAMI_F32, a->dw, c, dw, lanes);
    if (a->db)
        nami_vput(NAMI_F32, a->db, c, db, lanes);
}

NAMI_INLINE void norm_bw_body(nami_dtype act, const nami_arg_norm *a, int64_t first,
                              int64_t end)
{
    for (int64_t u = first; u < end; u++)
        norm_bw_vector(act, a, u * NAMI_VL, a->width - u * NAMI_VL);
}

static void norm_bw_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_norm *a = args;
    if (a->act == NAMI_F32)
        norm_bw_body(NAMI_F32, a, first, end);
    else
        norm_bw_body(NAMI_BF16, a, first, end);
}

static int64_t rows(const void *args)
{
    return ((const nami_arg_norm *)args)->n;
}

static int64_t rows_grain(const void *args)
{
    return 1 + 8192 / (1 + ((const nami_arg_norm *)args)->width);
}

static int64_t columns(const void *args)
{
    return (((const nami_arg_norm *)args)->width + NAMI_VL - 1) / NAMI_VL;
}

static int64_t columns_grain(const void *args)
{
    return 4 + 1024 / (1 + ((const nami_arg_norm *)args)->n);
}

const nami_cpu_kernel nami_cpu_norm_f = {
    .range = norm_f_range, .units = rows, .grain = rows_grain};
const nami_cpu_kernel nami_cpu_norm_bi = {
    .range = norm_bi_range, .units = rows, .grain = rows_grain};
const nami_cpu_kernel nami_cpu_norm_bw = {
    .range = norm_bw_range, .units = columns, .grain = columns_grain};
