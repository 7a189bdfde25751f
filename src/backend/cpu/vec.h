/* SPDX-License-Identifier: MIT */
/* vec.h - short vectors of float in the width of the processor this is compiled for.
 *
 * Loads and stores take any alignment, so results do not depend on pointer values. bf16 is widened on
 * load and rounded to nearest even on store; NaN stays NaN.
 */
#ifndef NAMI_BACKEND_CPU_VEC_H
#define NAMI_BACKEND_CPU_VEC_H

#include <math.h>

#include "tensor/tensor.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include <immintrin.h>
#define NAMI_VL 16 /* floats in a vector */
#elif defined(__AVX2__)
#include <immintrin.h>
#define NAMI_VL 8
#else
#define NAMI_VL 4
#endif

#define NAMI_INLINE static inline __attribute__((always_inline))

typedef float nami_vf __attribute__((vector_size(4 * NAMI_VL)));
typedef int32_t nami_vi __attribute__((vector_size(4 * NAMI_VL)));
typedef uint32_t nami_vu __attribute__((vector_size(4 * NAMI_VL)));
typedef uint16_t nami_vh __attribute__((vector_size(2 * NAMI_VL)));

/* All lanes x. Local. */
NAMI_INLINE nami_vf nami_vset(float x)
{
    return x - (nami_vf){0};
}

/* Lanes of a where the mask is set, else of b. Local. */
NAMI_INLINE nami_vf nami_vselect(nami_vi mask, nami_vf a, nami_vf b)
{
    return (nami_vf)((mask & (nami_vi)a) | (~mask & (nami_vi)b));
}

/* The larger; b where either is NaN. Local. */
NAMI_INLINE nami_vf nami_vmax(nami_vf a, nami_vf b)
{
#if NAMI_VL == 16
    return (nami_vf)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return nami_vselect(a > b, a, b);
#endif
}

/* The smaller; b where either is NaN. Local. */
NAMI_INLINE nami_vf nami_vmin(nami_vf a, nami_vf b)
{
#if NAMI_VL == 16
    return (nami_vf)_mm512_min_ps((__m512)a, (__m512)b);
#else
    return nami_vselect(a < b, a, b);
#endif
}

/* Lane numbers 0, 1, ... Local. */
NAMI_INLINE nami_vi nami_vlanes(void)
{
#if NAMI_VL == 16
    return (nami_vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif NAMI_VL == 8
    return (nami_vi){0, 1, 2, 3, 4, 5, 6, 7};
#else
    return (nami_vi){0, 1, 2, 3};
#endif
}

/* The first n lanes of x, the others 0. Local. */
NAMI_INLINE nami_vf nami_vfirst(nami_vf x, int64_t n)
{
    return (nami_vf)((nami_vi)x & (nami_vlanes() < (int32_t)n));
}

/* Widen bf16. Local. */
NAMI_INLINE nami_vf nami_vwiden(nami_vh h)
{
    return (nami_vf)(__builtin_convertvector(h, nami_vu) << 16);
}

/* Round to bf16. Local. */
NAMI_INLINE nami_vh nami_vnarrow(nami_vf f)
{
    const nami_vu u = (nami_vu)f;
    const nami_vu even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const nami_vu quiet = (u >> 16) | 0x40u;
    const nami_vu nan = (nami_vu)(f != f);
    return __builtin_convertvector((nan & quiet) | (~nan & even), nami_vh);
}

/* Elements i.. of an array of type d (f32 or bf16). Local. */
NAMI_INLINE nami_vf nami_vload(nami_dtype d, const void *p, int64_t i)
{
    nami_vf f;
    nami_vh h;
    if (d == NAMI_F32) {
        memcpy(&f, (const float *)p + i, sizeof f);
        return f;
    }
    memcpy(&h, (const uint16_t *)p + i, sizeof h);
    return nami_vwiden(h);
}

NAMI_INLINE void nami_vstore(nami_dtype d, void *p, int64_t i, nami_vf x)
{
    if (d == NAMI_F32) {
        memcpy((float *)p + i, &x, sizeof x);
        return;
    }
    const nami_vh h = nami_vnarrow(x);
    memcpy((uint16_t *)p + i, &h, sizeof h);
}

/* Ask for the cache lines of `bytes` bytes a page ahead of p: where the processor's own look-ahead is weak
 * (virtual machines), streams run a third faster. Local. */
NAMI_INLINE void nami_vahead(const void *p, int64_t bytes)
{
#pragma GCC unroll 8
    for (int64_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const char *)p + 4096 + b);
}

/* The first n < NAMI_VL lanes; the others are 0, or are not stored. Local. */
NAMI_INLINE nami_vf nami_vload_part(nami_dtype d, const void *p, int64_t i, int64_t n)
{
    nami_vf x = {0};
    for (int64_t l = 0; l < n; l++)
        x[l] = d == NAMI_F32 ? ((const float *)p)[i + l]
                             : nami_bf16_to_f32(((const uint16_t *)p)[i + l]);
    return x;
}

NAMI_INLINE void nami_vstore_part(nami_dtype d, void *p, int64_t i, nami_vf x,
                                  int64_t n)
{
    for (int64_t l = 0; l < n; l++)
        if (d == NAMI_F32)
            ((float *)p)[i + l] = x[l];
        else
            ((uint16_t *)p)[i + l] = nami_f32_to_bf16(x[l]);
}

/* Lanes left at i of `end`, at most NAMI_VL: full vectors take the fast way. Local. */
NAMI_INLINE nami_vf nami_vget(nami_dtype d, const void *p, int64_t i, int64_t lanes)
{
    return lanes >= NAMI_VL ? nami_vload(d, p, i) : nami_vload_part(d, p, i, lanes);
}

NAMI_INLINE void nami_vput(nami_dtype d, void *p, int64_t i, nami_vf x, int64_t lanes)
{
    if (lanes >= NAMI_VL)
        nami_vstore(d, p, i, x);
    else
        nami_vstore_part(d, p, i, x, lanes);
}

/* Sum and maximum of the lanes, in a fixed order; NaN wins a sum. Local. */
NAMI_INLINE float nami_vsum(nami_vf x)
{
#if NAMI_VL == 16
    return _mm512_reduce_add_ps((__m512)x);
#else
    float s[NAMI_VL];
    memcpy(s, &x, sizeof s);
    for (int w = NAMI_VL / 2; w > 0; w /= 2)
        for (int l = 0; l < w; l++)
            s[l] += s[l + w];
    return s[0];
#endif
}

NAMI_INLINE float nami_vtop(nami_vf x)
{
#if NAMI_VL == 16
    return _mm512_reduce_max_ps((__m512)x);
#else
    float s = x[0];
    for (int l = 1; l < NAMI_VL; l++)
        s = x[l] > s ? x[l] : s;
    return s;
#endif
}

/* Transpose: lane l of m[i] becomes lane i of m[l]. Local. */
NAMI_INLINE void nami_vtranspose(nami_vf m[NAMI_VL])
{
#if defined(__GNUC__) && !defined(__clang__)
    const nami_vi lane = nami_vlanes();
#pragma GCC unroll 4
    for (int w = 1; w < NAMI_VL;
         w *= 2) { /* swap blocks of w by w across the diagonal */
        const nami_vi upper = (lane & w) != 0;
        const nami_vi low = lane + (upper & (NAMI_VL - w));
        const nami_vi high = lane + ((upper & (NAMI_VL - w)) + w);
#pragma GCC unroll 16
        for (int i = 0; i < NAMI_VL; i++)
            if (!(i & w)) {
                const nami_vf a = m[i], b = m[i + w];
                m[i] = __builtin_shuffle(a, b, low);
                m[i + w] = __builtin_shuffle(a, b, high);
            }
    }
#else
    for (int i = 0; i < NAMI_VL; i++)
        for (int l = i + 1; l < NAMI_VL; l++) {
            const float swap = m[i][l];
            m[i][l] = m[l][i];
            m[l][i] = swap;
        }
#endif
}

/* to[4 l + w] = lane l of f[w]. Local. */
NAMI_INLINE void nami_vweave(const nami_vf f[4], float *to)
{
#if NAMI_VL == 16
    const __m512 a = _mm512_unpacklo_ps((__m512)f[0],
                                        (__m512)f[2]); /* pairs (0,2) of each quarter */
    const __m512 b = _mm512_unpackhi_ps((__m512)f[0], (__m512)f[2]);
    const __m512 c = _mm512_unpacklo_ps((__m512)f[1], (__m512)f[3]);
    const __m512 d = _mm512_unpackhi_ps((__m512)f[1], (__m512)f[3]);
    const __m512 q0 = _mm512_unpacklo_ps(a, c),
                 q1 = _mm512_unpackhi_ps(a, c); /* lanes 0, 1 of quarters */
    const __m512 q2 = _mm512_unpacklo_ps(b, d), q3 = _mm512_unpackhi_ps(b, d);
    const __m512 low01 = _mm512_shuffle_f32x4(q0, q1, 0x44),
                 low23 = _mm512_shuffle_f32x4(q2, q3, 0x44);
    const __m512 high01 = _mm512_shuffle_f32x4(q0, q1, 0xee),
                 high23 = _mm512_shuffle_f32x4(q2, q3, 0xee);
    _mm512_storeu_ps(to, _mm512_shuffle_f32x4(low01, low23, 0x88));
    _mm512_storeu_ps(to + 16, _mm512_shuffle_f32x4(low01, low23, 0xdd));
    _mm512_storeu_ps(to + 32, _mm512_shuffle_f32x4(high01, high23, 0x88));
    _mm512_storeu_ps(to + 48, _mm512_shuffle_f32x4(high01, high23, 0xdd));
#else
    for (int w = 0; w < 4; w++)
        for (int l = 0; l < NAMI_VL; l++)
            to[4 * l + w] = f[w][l];
#endif
}

/* e^x within 2 ulp for -87 <= x <= 88; x is clamped to that range, NaN stays NaN. Local.
 * Range reduction and polynomial: Moshier, Cephes, expf. */
NAMI_INLINE nami_vf nami_vexp(nami_vf x)
{
    const nami_vf magic =
        nami_vset(12582912.0f); /* 1.5 2^23: adding it rounds to a whole number */
    x = nami_vmin(nami_vset(88.0f), nami_vmax(nami_vset(-87.0f), x));
    const nami_vf t = x * 1.44269504088896341f + magic;
    const nami_vf n = t - magic;
    const nami_vf r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    nami_vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + (r + 1.0f);
    const nami_vf y = (nami_vf)((nami_vi)p + ((nami_vi)t << 23));
    return nami_vselect(x == x, y, x);
}

/* Square roots, rounded correctly. Local. */
NAMI_INLINE nami_vf nami_vroot(nami_vf x)
{
#if NAMI_VL == 16
    return (nami_vf)_mm512_sqrt_ps((__m512)x);
#elif NAMI_VL == 8
    return (nami_vf)_mm256_sqrt_ps((__m256)x);
#else
    for (int l = 0; l < NAMI_VL; l++)
        x[l] = sqrtf(x[l]);
    return x;
#endif
}

#endif
