/* SPDX-License-Identifier: MIT */
/* rng.h - counter-based random numbers: Philox 4x32-10 (Salmon et al., SC'11, section 3.3).
 *
 * Keyed by what a number is for (seed, stream, step, sample, element), never by rank or call order,
 * so that initial weights, dropout masks and sample order do not depend on the layout.
 */
#ifndef NAMI_BASE_RNG_H
#define NAMI_BASE_RNG_H

#include <stdint.h>

/* Four 32-bit words from a 128-bit counter and a 64-bit key. Local. */
static inline void nami_philox(const uint32_t counter[4], const uint32_t key[2],
                               uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A word mixed from two, for building keys. Local. */
uint64_t nami_mix(uint64_t a, uint64_t b);

/* A key from a name, e.g. a parameter's (FNV-1a, then mixed). Local. */
uint64_t nami_hash_name(const char *name);

/* Uniform in [0,1), 53 bits, of number `index` in stream `key`. Local. */
double nami_uniform(uint64_t key, uint64_t index);

/* Standard normal number `index` of stream `key` (Box-Muller in double). Local. */
double nami_normal(uint64_t key, uint64_t index);

/* Image of `index` under a keyed permutation of 0..n-1 (cycle-walking Feistel network). Local.
 * 0 <= index < n, n >= 1. */
uint64_t nami_permute(uint64_t key, uint64_t index, uint64_t n);

#endif
