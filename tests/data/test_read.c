/* SPDX-License-Identifier: MIT */
/* test_read.c - opening and reading data sets by several ranks, small and large ones, whole and damaged ones. */
#include "comm/mpi_test.h"
#include "data/files.h"

#include <unistd.h>

#include "base/rng.h"
#include "base/text.h"
#include "data/tokens.h"

enum { TIME = 33 };

/* Token i of every set here. */
static int pattern(int64_t i, int64_t vocabulary)
{
    return (int)(((uint64_t)i * 0x9E3779B97F4A7C15u >> 40) % (uint64_t)vocabulary);
}

/* What differs from a sound set. */
typedef struct fault {
    int64_t announced; /* attribute tokens less the true number */
    uint32_t sum;      /* flips bits of the checksum */
    int64_t at;        /* a token set to `token`, when >= 0 */
    int token;
} fault;
static const fault sound = {.at = -1};

/* Rank 0 writes a set by way of the store, then all go on. */
static void make(const char *path, int64_t tokens, int64_t vocabulary, fault f)
{
    int width = nami_tokens_width(vocabulary);
    int64_t block = 1 << 20;
    uint16_t *word = nami_alloc(NAMI_MEM_OTHER, (size_t)block * 2);
    uint32_t sum = 0;
    nami_store *s;
    char text[32];
    nami_comm_barrier(world); /* nobody has the last one open */
    if (rank == 0) {
        assert_ok(nami_store_create(NULL, path, &s));
        assert_ok(nami_store_define(
            s, "/tokens", width == 1 ? NAMI_STORE_U8 : NAMI_STORE_U16, 1, &tokens));
        for (int64_t at = 0; at < tokens; at += block) {
            int64_t n = tokens - at < block ? tokens - at : block;
            for (int64_t i = 0; i < n; i++) {
                int t = at + i == f.at ? f.token : pattern(at + i, vocabulary);
                if (width == 1)
                    ((uint8_t *)word)[i] = (uint8_t)t;
                else
                    word[i] = (uint16_t)t;
            }
            sum = nami_tokens_checksum(sum, word, n, width);
            assert_ok(nami_store_write(s, "/tokens", at, n, word));
        }
        snprintf(text, sizeof text, "crc32:%08x", (unsigned)(sum ^ f.sum));
        assert_ok(nami_store_set_int(s, "vocabulary", vocabulary));
        assert_ok(nami_store_set_int(s, "tokens", tokens + f.announced));
        assert_ok(nami_store_set_text(s, "checksum", text));
        assert_ok(nami_store_set_text(s, "kind", "tokens"));
        assert_ok(nami_store_set_text(s, "source", "a test"));
        assert_ok(nami_store_close(s));
    }
    nami_free(word);
    nami_comm_barrier(world);
}

/* Read windows at `from` and compare with the pattern. */
static void check_windows(nami_data *d, const int64_t *from, int count,
                          int64_t vocabulary)
{
    int32_t token[8 * TIME], target[8 * TIME];
    assert_in_range(count, 0, 8);
    nami_data_expect(d, from, count);
    assert_ok(nami_data_read(d, from, count, token, target));
    for (int i = 0; i < count; i++)
        for (int t = 0; t < TIME; t++) {
            assert_int_equal(token[i * TIME + t], pattern(from[i] + t, vocabulary));
            assert_int_equal(target[i * TIME + t],
                             pattern(from[i] + t + 1, vocabulary));
        }
}

/* Ranks read different windows, and unequal numbers of them. */
static void check_set(int64_t tokens, int64_t vocabulary, int steps, uint64_t key)
{
    char path[512];
    nami_data *d;
    make(nami_test_path(path, "set.h5"), tokens, vocabulary, sound);
    assert_ok(nami_data_open(world, path, TIME, vocabulary, &d));
    assert_int_equal(nami_data_tokens(d), tokens);
    assert_int_equal(nami_data_samples(d), (tokens - 1) / TIME);
    for (int step = 0; step < steps; step++) {
        int64_t from[8];
        int count = (step + rank) % 9;
        for (int i = 0; i < count; i++)
            from[i] = nami_data_window(d, key, (step * size + rank) * 8 + i);
        check_windows(d, from, count, vocabulary);
    }
    int64_t ends[2] = {0, tokens - 1 - TIME};
    check_windows(d, ends, 2, vocabulary);
    nami_data_close(d);
}

static void test_small(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(41);
    static const int64_t tokens[] = {TIME + 1, 1000, 12345, 2500000};
    for (int i = 0; i < 4; i++) {
        check_set(tokens[i], 65, 40, seed);
        check_set(tokens[i], 50257, 40, seed);
    }
}

/* Too large to be kept whole. */
static void test_large(void **state)
{
    (void)state;
    check_set(NAMI_DATA_WHOLE / 2 + 1, 50257, 30, nami_test_seed(42));
    check_set(NAMI_DATA_WHOLE + 4099, 200, 30, nami_test_seed(43));
}

/* All ranks get the same sentence. */
static void expect_refused(const char *path, int64_t vocabulary, const char *part)
{
    nami_data *d = NULL;
    assert_fails(nami_data_open(world, path, TIME, vocabulary, &d), NAMI_EINPUT, part);
    assert_null(d);
}

static void test_refused(void **state)
{
    (void)state;
    char path[512];
    expect_refused("", 0, "no data set is given");
    expect_refused(nami_test_path(path, "missing.h5"), 0, "missing.h5");
    nami_test_path(path, "bad.h5");
    make(path, TIME, 65, sound);
    expect_refused(path, 0, "too few for one sample of 33");
    make(path, 5000, 65, (fault){.at = -1, .sum = 1});
    expect_refused(path, 0, "is damaged");
    make(path, 5000, 65, (fault){.at = -1, .announced = 1});
    expect_refused(path, 0, "announces 5001 tokens and holds 5000");
    make(path, 5000, 65, (fault){.at = 4321, .token = 65});
    expect_refused(path, 0, "token 4321 is 65, outside the vocabulary of 65");
    make(path, 5000, 50257, (fault){.at = 77, .token = 60000});
    expect_refused(path, 50304, "token 77 is 60000");
    make(path, 5000, 66, (fault){.at = 4998, .token = 65});
    expect_refused(path, 65, "(the model's)");
    make(path, 5000, 65, sound);
    if (rank == 0)
        assert_int_equal(truncate(path, 4000), 0);
    nami_comm_barrier(world);
    expect_refused(path, 0, "bad.h5");
    if (rank == 0)
        put((char[512]){0}, "bad.h5", "no HDF5 at all", 14);
    nami_comm_barrier(world);
    expect_refused(path, 0, "bad.h5");
}

/* A large set is checked as it is read; a set with tokens that the model does not know is no fault until then. */
static void test_checked_on_read(void **state)
{
    (void)state;
    char path[512];
    int64_t tokens = NAMI_DATA_WHOLE + 1, at = 50000000;
    nami_data *d;
    make(nami_test_path(path, "set.h5"), tokens, 60, (fault){.at = at, .token = 77});
    assert_ok(nami_data_open(world, path, TIME, 60, &d));
    int64_t good[2] = {at - TIME - 1, at + 1}, bad = at - rank;
    check_windows(d, good, 2, 60);
    int32_t token[TIME], target[TIME];
    assert_fails(nami_data_read(d, &bad, 1, token, target), NAMI_EINPUT,
                 "token 50000000 is 77, outside the vocabulary of 60");
    nami_data_close(d);
}

static void test_other_files(void **state)
{
    (void)state;
    char path[512];
    nami_test_path(path, "other.h5");
    nami_store *s;
    int64_t extent[2] = {100, 2};
    for (int kind = 0; kind < 3; kind++) {
        if (rank == 0) {
            assert_ok(nami_store_create(NULL, path, &s));
            assert_ok(nami_store_define(s, kind == 0 ? "/weights" : "/tokens",
                                        kind == 1 ? NAMI_STORE_F32 : NAMI_STORE_U8,
                                        kind == 2 ? 2 : 1, extent));
            assert_ok(nami_store_close(s));
        }
        nami_comm_barrier(world);
        expect_refused(path, 0, kind == 0 ? "no array /tokens" : "not a list of 8-bit");
        nami_comm_barrier(world);
    }
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),       cmocka_unit_test(test_large),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_checked_on_read),
        cmocka_unit_test(test_other_files),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
