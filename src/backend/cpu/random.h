/* SPDX-License-Identifier: MIT */
/* random.h - dropout factors of runs of elements: nami_keep, a vector of counters at a time. */
#ifndef NAMI_BACKEND_CPU_RANDOM_H
#define NAMI_BACKEND_CPU_RANDOM_H

#include "backend/cpu/vec.h"
#include "backend/kernel.h"

enum { NAMI_FACTORS = 4 * NAMI_VL }; /* factors made by one call */

/* One dropout: what all its elements share. */
typedef struct nami_drop {
    uint64_t key;
    int64_t sample;     /* global */
    uint32_t threshold; /* words from here on keep their element */
    float factor;       /* 1/(1-p) */
} nami_drop;

/* The dropout of probability p (0 <= p <= 0.9999). Local. */
static inline nami_drop nami_drop_of(uint64_t key, int64_t sample, double p)
{
    const double edge = p * 4294967296.0;
    const uint32_t whole = (uint32_t)edge;
    return (nami_drop){.key = key,
                       .sample = sample,
                       .threshold = whole + ((double)whole < edge),
                       .factor = (float)(1 / (1 - p))};
}

/* Low and high words of the products a[l] m. Local. */
NAMI_INLINE void nami_wide_product(nami_vu a, uint32_t m, nami_vu *low, nami_vu *high)
{
#if NAMI_VL == 16
    const __m512i v = (__m512i)a, k = _mm512_set1_epi32((int)m);
    const __m512i even = _mm512_mul_epu32(v, k);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(v, 32), k);
    *low = (nami_vu)_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
    *high = (nami_vu)_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
#else
    for (int l = 0; l < NAMI_VL; l++) {
        const uint64_t p = (uint64_t)a[l] * m;
        (*low)[l] = (uint32_t)p;
        (*high)[l] = (uint32_t)(p >> 32);
    }
#endif
}

/* Factors (0 or d->factor) of elements 4 quad .. 4 quad + NAMI_FACTORS of d's sample. Local. */
static inline void nami_drop_factors(const nami_drop *d, int64_t quad,
                                     float out[NAMI_FACTORS])
{
    const uint32_t low = (uint32_t)quad, high = (uint32_t)((uint64_t)quad >> 32);
    nami_vu c0 = (nami_vu)nami_vlanes() + low;
    nami_vu c1 = high - (nami_vu)(c0 < low); /* the carry is -1 where c0 wrapped */
    nami_vu c2 = (nami_vu){0} + (uint32_t)d->sample;
    nami_vu c3 = (nami_vu){0} + (uint32_t)((uint64_t)d->sample >> 32);
    uint32_t k0 = (uint32_t)d->key, k1 = (uint32_t)(d->key >> 32);
    for (int round = 0; round < 10; round++) {
        nami_vu low0, high0, low1, high1;
        nami_wide_product(c0, 0xD2511F53u, &low0, &high0);
        nami_wide_product(c2, 0xCD9E8D57u, &low1, &high1);
        c0 = high1 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const nami_vu word[4] = {c0, c1, c2, c3};
    nami_vf f[4];
    for (int w = 0; w < 4; w++)
        f[w] = (nami_vf)((nami_vi)(word[w] >= d->threshold) &
                         (nami_vi)nami_vset(d->factor));
    nami_vweave(f, out);
}

#endif
