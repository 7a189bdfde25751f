/* SPDX-License-Identifier: MIT */
/* test_rng.c - Philox against the published vectors, moments, permutations. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"

/* Known answers of Random123 1.09, file kat_vectors, philox4x32 10. */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        nami_philox(kat[i].counter, kat[i].key, out);
        assert_memory_equal(out, kat[i].out, sizeof out);
    }
}

/* Mean, variance and neighbour correlation within six standard errors. */
static void check_moments(double (*draw)(uint64_t, uint64_t), double mean,
                          double variance)
{
    enum { N = 200000 };
    uint64_t seed = nami_test_seed(21);
    double sum = 0.0, square = 0.0, lag = 0.0, before = 0.0;
    for (uint64_t i = 0; i < N; i++) {
        double x = draw(seed, i) - mean;
        sum += x;
        square += x * x;
        lag += x * before;
        before = x;
    }
    double error = 6.0 / sqrt((double)N);
    assert_true(fabs(sum / N) < error * sqrt(variance));
    assert_true(fabs(square / N - variance) < error * 1.5 * variance);
    assert_true(fabs(lag / N) < error * variance);
}

static void test_moments(void **state)
{
    (void)state;
    check_moments(nami_uniform, 0.5, 1.0 / 12.0);
    check_moments(nami_normal, 0.0, 1.0);
}

/* Counts of 64 classes of uniform numbers: chi square of 63 degrees below its 1e-9 quantile. */
static void test_uniform_classes(void **state)
{
    (void)state;
    enum { N = 64000, K = 64 };
    uint64_t seed = nami_test_seed(22);
    int count[K] = {0};
    double chi = 0.0;
    for (uint64_t i = 0; i < N; i++) {
        double u = nami_uniform(seed, i);
        assert_true(u >= 0.0 && u < 1.0);
        count[(int)(u * K)]++;
    }
    for (int k = 0; k < K; k++)
        chi += (count[k] - N / K) * (double)(count[k] - N / K) / (N / K);
    assert_true(chi < 150.0 && chi > 20.0);
}

/* The four quantiles of the normal law. */
static void test_normal_law(void **state)
{
    (void)state;
    enum { N = 100000 };
    static const double quantile[] = {-2.0, -1.0, 0.5, 1.5};
    uint64_t seed = nami_test_seed(23);
    for (size_t q = 0; q < 4; q++) {
        int below = 0;
        double p = 0.5 * erfc(-quantile[q] / sqrt(2.0));
        for (uint64_t i = 0; i < N; i++)
            below += nami_normal(seed, i) < quantile[q];
        assert_true(fabs((double)below / N - p) < 6.0 * sqrt(p * (1.0 - p) / N));
    }
}

static void test_permute_bijection(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(24);
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t n = sizes[s];
        unsigned char *seen = nami_calloc(NAMI_MEM_OTHER, n, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t image = nami_permute(seed, i, n);
            assert_true(image < n);
            assert_int_equal(seen[image]++, 0);
        }
        nami_free(seen);
    }
    assert_true(nami_permute(seed, UINT64_MAX - 1, UINT64_MAX) < UINT64_MAX);
    assert_true(nami_permute(seed, 0, ((uint64_t)1 << 62) + 1) <= (uint64_t)1 << 62);
}

/* Every image of every index is about equally likely over the keys. */
static void test_permute_spread(void **state)
{
    (void)state;
    enum { N = 10, KEYS = 20000 };
    uint64_t seed = nami_test_seed(25);
    int count[N][N] = {{0}};
    for (uint64_t key = 0; key < KEYS; key++)
        for (uint64_t i = 0; i < N; i++)
            count[i][nami_permute(nami_mix(seed, key), i, N)]++;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            assert_true(abs(count[i][j] - KEYS / N) < 6 * (int)sqrt(KEYS / N));
}

static void test_keys_differ(void **state)
{
    (void)state;
    assert_true(nami_hash_name("block.1.weight") != nami_hash_name("block.2.weight"));
    assert_true(nami_hash_name("") != nami_hash_name("a"));
    assert_true(nami_mix(1, 2) != nami_mix(2, 1));
    assert_true(nami_mix(0, 0) != 0);
    uint64_t seen[4096];
    for (uint64_t a = 0; a < 64; a++)
        for (uint64_t b = 0; b < 64; b++)
            seen[64 * a + b] = nami_mix(a, b);
    for (int i = 0; i < 4096; i++)
        for (int j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),     cmocka_unit_test(test_moments),
        cmocka_unit_test(test_uniform_classes),   cmocka_unit_test(test_normal_law),
        cmocka_unit_test(test_permute_bijection), cmocka_unit_test(test_permute_spread),
        cmocka_unit_test(test_keys_differ),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
