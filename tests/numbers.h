/* SPDX-License-Identifier: MIT */
/* numbers.h - files of numbers that other programs made, and the formula of the inputs they were made from. */
#ifndef NAMI_TESTS_NUMBERS_H
#define NAMI_TESTS_NUMBERS_H

#include <math.h>

#include "base/text.h"
#include "nami_test.h"
#include "tensor/tensor.h"

/* h(k, i) of validation/torch/reference.py, below 2^32. */
static inline uint32_t numbers_hash(uint64_t k, uint64_t i)
{
    uint64_t x = (i * 2654435761U + (k + 1) * 40503U * 65537U + 12345U) & 0xffffffffU;
    x ^= x >> 15;
    x = x * 2246822519U & 0xffffffffU;
    return (uint32_t)(x ^ x >> 13);
}

/* uniform(k, .)[i] of the same file, in [-1/2, 1/2). */
static inline double numbers_uniform(uint64_t k, uint64_t i)
{
    return numbers_hash(k, i) / 4294967296.0 - 0.5;
}

/* Element i of `p`, f32 or f64; memory of any type. */
static inline double numbers_get(nami_dtype d, const void *p, int64_t i)
{
    float f;
    double x;
    memcpy(&f, (const char *)p + i * 4, sizeof f);
    if (d == NAMI_F32)
        return (double)f;
    memcpy(&x, (const char *)p + i * 8, sizeof x);
    return x;
}

static inline void numbers_set(nami_dtype d, void *p, int64_t i, double x)
{
    const float f = (float)x;
    if (d == NAMI_F32)
        memcpy((char *)p + i * 4, &f, sizeof f);
    else
        memcpy((char *)p + i * 8, &x, sizeof x);
}

/* A file of numbers: blocks "NAME COUNT" and then the numbers. */
typedef struct numbers {
    char *text;
} numbers;

static inline numbers numbers_read(const char *name)
{
    char path[512];
    FILE *f = fopen(nami_test_source(path, name), "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long bytes = ftell(f);
    rewind(f);
    numbers n = {nami_calloc(NAMI_MEM_OTHER, (size_t)bytes + 1, 1)};
    assert_int_equal(fread(n.text, 1, (size_t)bytes, f), bytes);
    fclose(f);
    return n;
}

static inline void numbers_free(numbers *n)
{
    nami_free(n->text);
}

/* Compare `count` numbers of block `name` with ours; `tolerance` is relative to the block's largest. */
static inline void numbers_compare(const numbers *n, const char *name,
                                   const double *ours, int64_t count, double tolerance)
{
    char *head = nami_strf("\n%s %lld\n", name, (long long)count);
    const char *block = strstr(n->text, head);
    if (!block)
        fail_msg("no block '%s' of %lld numbers", name, (long long)count);
    double most = 0, worst = 0;
    char *at = (char *)(uintptr_t)block + strlen(head);
    for (int64_t i = 0; i < count; i++) {
        double theirs = strtod(at, &at), difference = fabs(ours[i] - theirs);
        most = fmax(most, fabs(theirs));
        worst = difference <= worst ? worst : difference; /* NaN counts */
    }
    if (!(worst <= tolerance * most))
        fail_msg("%s differs by %g of its largest number %g", name, worst / most, most);
    nami_free(head);
}

#endif
