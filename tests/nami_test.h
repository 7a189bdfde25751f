/* SPDX-License-Identifier: MIT */
/* nami_test.h - what every test includes: cmocka and a few helpers. */
#ifndef NAMI_TEST_H
#define NAMI_TEST_H

/* cmocka needs these four before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/status.h"

/* Assert a status; a surprise prints the recorded sentence. Clears it either way. */
#define assert_status(call, expected)                                                  \
    do {                                                                               \
        nami_status got_ = (call);                                                     \
        if (got_ != (expected))                                                        \
            print_error("%s: status %d, expected %d: %s\n", #call, (int)got_,          \
                        (int)(expected), nami_fail_text());                            \
        assert_int_equal(got_, (expected));                                            \
        nami_fail_clear();                                                             \
    } while (0)

#define assert_ok(call) assert_status(call, NAMI_OK)

/* Assert a status and that the sentence contains `part`. Clears the sentence. */
#define assert_fails(call, expected, part)                                             \
    do {                                                                               \
        assert_int_equal((call), (expected));                                          \
        if (!strstr(nami_fail_text(), (part)))                                         \
            fail_msg("'%s' does not contain '%s'", nami_fail_text(), (part));          \
        nami_fail_clear();                                                             \
    } while (0)

/* The rank count this test must see, from tests/testlist. */
static inline int nami_test_ranks(void)
{
    const char *ranks = getenv("NAMI_EXPECT_RANKS");
    return ranks ? atoi(ranks) : 1;
}

/* Path of `name` in the scratch directory of this test, into buf[512]. */
static inline const char *nami_test_path(char buf[512], const char *name)
{
    const char *scratch = getenv("NAMI_SCRATCH");
    snprintf(buf, 512, "%s/%s", scratch ? scratch : ".", name);
    return buf;
}

/* Path of `name` in the source tree, into buf[512]. */
static inline const char *nami_test_source(char buf[512], const char *name)
{
    const char *source = getenv("NAMI_SOURCE");
    snprintf(buf, 512, "%s/%s", source ? source : ".", name);
    return buf;
}

/* Write a file of these bytes. */
static inline void nami_test_write(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

/* Set the option `key` of `table` in *object. */
static inline void nami_test_set(const nami_option_table *table, void *object,
                                 const char *key, const char *value)
{
    const nami_option *row = nami_option_find(table, key);
    assert_non_null(row);
    assert_ok(nami_option_set(row, object, value, "test"));
}

/* Seed of the random problems: NAMI_TEST_SEED, else the fixed one; printed so that a failure can be repeated. */
static inline uint64_t nami_test_seed(uint64_t fixed)
{
    const char *seed = getenv("NAMI_TEST_SEED");
    uint64_t value = seed ? strtoull(seed, NULL, 0) : fixed;
    printf("seed %llu\n", (unsigned long long)value);
    return value;
}

/* Group teardown: whatever was allocated is given back. */
static inline int nami_test_balance(void **state)
{
    (void)state;
    if (nami_memory_blocks())
        print_error("%ld blocks were not given back\n", nami_memory_blocks());
    return nami_memory_blocks() != 0;
}

#endif
