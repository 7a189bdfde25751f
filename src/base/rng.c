/* SPDX-License-Identifier: MIT */
/* rng.c - numbers, normal numbers and permutations out of Philox and a 64-bit mixer. */
#include "base/rng.h"

#include <math.h>

#include "base/status.h"

static const double two_pi = 6.283185307179586476925286766559;

/* The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA'14): a bijection. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t nami_mix(uint64_t a, uint64_t b)
{
    return scramble(scramble(a + 0x9E3779B97F4A7C15u) ^ (b + 0xD1B54A32D192ED03u));
}

uint64_t nami_hash_name(const char *name)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        hash = (hash ^ *c) * 0x100000001B3u;
    return nami_mix(hash, 0);
}

/* Two 64-bit words of number `index` in stream `key`. */
static void draw(uint64_t key, uint64_t index, uint64_t word[2])
{
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0, 0};
    const uint32_t half[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    uint32_t out[4];
    nami_philox(counter, half, out);
    word[0] = (uint64_t)out[1] << 32 | out[0];
    word[1] = (uint64_t)out[3] << 32 | out[2];
}

double nami_uniform(uint64_t key, uint64_t index)
{
    uint64_t word[2];
    draw(key, index, word);
    return (double)(word[0] >> 11) * 0x1p-53;
}

double nami_normal(uint64_t key, uint64_t index)
{
    uint64_t word[2];
    draw(key, index, word);
    double u =
        (double)((word[0] >> 11) + 1) * 0x1p-53; /* in (0,1]: the logarithm is finite */
    double v = (double)(word[1] >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(u)) * cos(two_pi * v);
}

/* Balanced Feistel network on 2*half bits, a bijection of 0..4^half-1. */
static uint64_t feistel(uint64_t key, uint64_t x, int half)
{
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 6; round++) {
        uint64_t next = left ^ (nami_mix(key + round, right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t nami_permute(uint64_t key, uint64_t index, uint64_t n)
{
    NAMI_CHECK(n >= 1 && index < n);
    int half = 1;
    while (half < 32 && (uint64_t)1 << (2 * half) < n)
        half++;
    do
        index =
            feistel(key, index, half); /* at most 4 tries on average: 4^half < 4 n */
    while (index >= n);
    return index;
}
