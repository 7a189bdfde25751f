/* SPDX-License-Identifier: MIT */
/* tile.h - small matrix products in registers, and the layouts they read.
 *
 * A panel is NAMI_TN columns of a matrix, row after row: element (k, c) of panel p lies at
 * (p * rows + k) * NAMI_TN + c. Padding is zero.
 */
#ifndef NAMI_BACKEND_CPU_TILE_H
#define NAMI_BACKEND_CPU_TILE_H

#include <stdbool.h>

#include "backend/cpu/vec.h"

enum {
    NAMI_TM = NAMI_VL == 16 ? 8 : 4, /* rows of a tile */
    NAMI_TV = 2,                     /* vectors of a row of a tile */
    NAMI_TN = NAMI_TV * NAMI_VL      /* columns of a tile */
};

/* n rounded up to whole tiles. Local. */
static inline int64_t nami_tiles_up(int64_t n)
{
    return (n + NAMI_TN - 1) / NAMI_TN * NAMI_TN;
}

/* c[r][0..TN) = sum_k a[r ra + k ka] b[k TN + ..], r < TM; with `sum` added to c. Row r of c is at r ldc. */
NAMI_INLINE void nami_tile(int64_t k, const float *a, int64_t ra, int64_t ka,
                           const float *b, float *c, int64_t ldc, bool sum)
{
    nami_vf acc[NAMI_TM][NAMI_TV];
#pragma GCC unroll 16
    for (int r = 0; r < NAMI_TM; r++)
#pragma GCC unroll 16
        for (int64_t v = 0; v < NAMI_TV; v++)
            acc[r][v] =
                sum ? nami_vload(NAMI_F32, c, r * ldc + v * NAMI_VL) : (nami_vf){0};
    for (int64_t i = 0; i < k; i++) {
        nami_vf bv[NAMI_TV];
#pragma GCC unroll 16
        for (int64_t v = 0; v < NAMI_TV; v++)
            bv[v] = nami_vload(NAMI_F32, b, i * NAMI_TN + v * NAMI_VL);
#pragma GCC unroll 16
        for (int r = 0; r < NAMI_TM; r++)
#pragma GCC unroll 16
            for (int64_t v = 0; v < NAMI_TV; v++)
                acc[r][v] += a[r * ra + i * ka] * bv[v];
    }
#pragma GCC unroll 16
    for (int r = 0; r < NAMI_TM; r++)
#pragma GCC unroll 16
        for (int64_t v = 0; v < NAMI_TV; v++)
            nami_vstore(NAMI_F32, c, r * ldc + v * NAMI_VL, acc[r][v]);
}

/* The two shapes of a: rows of a matrix with stride lda, or its columns (a turned). Not inlined: the
 * accumulators need all registers. Local. */
#define NAMI_TILE static __attribute__((noinline, unused))

NAMI_TILE void nami_tile_rows(int64_t k, const float *a, int64_t lda, const float *b,
                              float *c, int64_t ldc)
{
    nami_tile(k, a, lda, 1, b, c, ldc, false);
}

NAMI_TILE void nami_tile_turned(int64_t k, const float *a, int64_t lda, const float *b,
                                float *c, int64_t ldc)
{
    nami_tile(k, a, 1, lda, b, c, ldc, true);
}

/* Ask for the row of x that is read NAMI_AHEAD rows later: rows of a head lie pages apart, where the
 * processor does not look ahead by itself. */
enum { NAMI_AHEAD = 12 };

NAMI_INLINE void nami_ask(nami_dtype act, const void *x, int64_t at, int64_t width)
{
    const int64_t size = act == NAMI_F32 ? 4 : 2;
    const char *p = (const char *)x + at * size;
    for (int64_t byte = 0; byte < width * size; byte += 64)
        __builtin_prefetch(p + byte);
}

/* Rows [first, first+rows) of x (row stride `stride`, `width` columns) times `factor`, as plain rows
 * of `width`; rows past `valid` are zero. Local. */
NAMI_INLINE void nami_pack_plain(nami_dtype act, const void *x, int64_t at,
                                 int64_t stride, int64_t valid, int64_t rows,
                                 int64_t width, float factor, float *to)
{
    for (int64_t r = 0; r < rows; r++) {
        if (r + NAMI_AHEAD < valid)
            nami_ask(act, x, at + (r + NAMI_AHEAD) * stride, width);
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            const int64_t lanes = width - c;
            const nami_vf v =
                r < valid ? nami_vget(act, x, at + r * stride + c, lanes) * factor
                          : (nami_vf){0};
            nami_vput(NAMI_F32, to, r * width + c, v, lanes);
        }
    }
}

/* The same as panels of [rows, NAMI_TN]. Local. */
NAMI_INLINE void nami_pack_panels(nami_dtype act, const void *x, int64_t at,
                                  int64_t stride, int64_t valid, int64_t rows,
                                  int64_t width, float factor, float *to)
{
    for (int64_t c = 0; c < width; c += NAMI_TN)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t v = 0; v < NAMI_TV; v++) {
                const int64_t col = c + v * NAMI_VL;
                const nami_vf f =
                    r < valid && col < width
                        ? nami_vget(act, x, at + r * stride + col, width - col) * factor
                        : (nami_vf){0};
                nami_vstore(NAMI_F32, to, c * rows + r * NAMI_TN + v * NAMI_VL, f);
            }
}

/* x turned: panels of [width, NAMI_TN] whose columns are the `rows` (a multiple of NAMI_TN) rows. Local. */
NAMI_INLINE void nami_pack_turned(nami_dtype act, const void *x, int64_t at,
                                  int64_t stride, int64_t valid, int64_t rows,
                                  int64_t width, float *to)
{
    for (int64_t r = 0; r < rows; r += NAMI_VL) {
        float *panel = to + r / NAMI_TN * NAMI_TN * width + r % NAMI_TN;
        for (int64_t i = r + NAMI_VL; i < r + (int64_t)2 * NAMI_VL && i < valid; i++)
            nami_ask(act, x, at + i * stride, width);
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            const int64_t lanes = width - c < NAMI_VL ? width - c : NAMI_VL;
            nami_vf m[NAMI_VL];
            for (int i = 0; i < NAMI_VL; i++)
                m[i] = r + i < valid
                           ? nami_vget(act, x, at + (r + i) * stride + c, width - c)
                           : (nami_vf){0};
            nami_vtranspose(m);
            for (int64_t l = 0; l < lanes; l++)
                nami_vstore(NAMI_F32, panel, (c + l) * NAMI_TN, m[l]);
        }
    }
}

#endif
