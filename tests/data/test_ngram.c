/* SPDX-License-Identifier: MIT */
/* test_ngram.c - the n-gram model against the formula worked out by counting in the text. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "data/ngram.h"

/* Occurrences in `text` of the `n` tokens at `h` followed by `next` (-1: by anything). */
static int occurrences(const uint16_t *text, int length, const uint16_t *h, int n,
                       int next)
{
    int count = 0;
    for (int i = 0; i + n < length; i++)
        count += !memcmp(text + i, h, (size_t)n * sizeof *h) &&
                 (next < 0 || text[i + n] == next);
    return count;
}

/* p_k(x | h), h the k tokens before `end`, by the definition. */
static double oracle(const uint16_t *text, int length, const uint16_t *end, int k,
                     int x, int vocabulary)
{
    if (k < 0)
        return 1.0 / vocabulary;
    const uint16_t *h = end - k;
    double lower = oracle(text, length, end, k - 1, x, vocabulary);
    int n = occurrences(text, length, h, k, -1), types = 0;
    for (int v = 0; v < vocabulary; v++)
        types += occurrences(text, length, h, k, v) > 0;
    return n == 0 ? lower
                  : (occurrences(text, length, h, k, x) + types * lower) / (n + types);
}

/* Random tokens that repeat themselves often enough to be counted. */
static void fill(uint16_t *text, int length, int vocabulary, uint64_t seed)
{
    for (int i = 0; i < length; i++) {
        double u = nami_uniform(seed, (uint64_t)i);
        text[i] = u < 0.5 && i > 3 ? text[i - 3]
                                   : (uint16_t)((2 * u - floor(2 * u)) * vocabulary);
    }
}

static void compare(int length, int vocabulary, int order, uint64_t seed)
{
    uint16_t train[256], valid[64];
    double sum[NAMI_NGRAM_ORDER + 1] = {0};
    fill(train, length, vocabulary, seed);
    fill(valid, 64, vocabulary, seed + 1);
    nami_ngram *g = nami_ngram_create(order, vocabulary, 1 << 24);
    assert_ok(nami_ngram_train(g, train, length / 3));
    assert_ok(nami_ngram_train(g, train + length / 3, length - length / 3));
    nami_ngram_begin(g);
    nami_ngram_score(g, valid, 20, sum);
    nami_ngram_score(g, valid + 20, 44, sum);
    for (int k = 0; k <= order; k++) {
        double want = 0;
        for (int i = 0; i < 64; i++)
            want -= log(
                oracle(train, length, valid + i, k < i ? k : i, valid[i], vocabulary));
        if (!(fabs(sum[k] - want) <= 1e-10 * want + 1e-12))
            fail_msg("length %d vocabulary %d order %d: %.17g, expected %.17g", length,
                     vocabulary, k, sum[k], want);
    }
    nami_ngram_free(g);
}

static void test_oracle(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(21);
    for (uint64_t trial = 0; trial < 60; trial++)
        compare(2 + (int)(nami_uniform(seed, 2 * trial) * 250),
                1 + (int)(nami_uniform(seed, 2 * trial + 1) * 12), (int)(trial % 7),
                nami_mix(seed, trial));
}

/* Over all continuations of any context, seen or not, the probabilities add up to one. */
static void test_sum_is_one(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(22);
    enum { V = 40, K = 5 };
    uint16_t text[5000];
    fill(text, 5000, V, seed);
    nami_ngram *g = nami_ngram_create(K, V, 1 << 24);
    assert_ok(nami_ngram_train(g, text, 5000));
    for (int at = 0; at < 20; at++) {
        double total[K + 1] = {0};
        for (uint16_t x = 0; x < V; x++) {
            double sum[K + 1] = {0}, ignored[K + 1] = {0};
            nami_ngram_begin(g);
            nami_ngram_score(g, text + 200 * at, at, ignored);
            nami_ngram_score(g, &x, 1, sum);
            for (int k = 0; k <= K; k++)
                total[k] += exp(-sum[k]);
        }
        for (int k = 0; k <= K; k++)
            assert_true(fabs(total[k] - 1) < 1e-12);
    }
    nami_ngram_free(g);
}

static void test_limit(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(23);
    static uint16_t text[200000];
    for (size_t i = 0; i < 200000; i++)
        text[i] = (uint16_t)(nami_uniform(seed, i) * 65536);
    nami_ngram *g = nami_ngram_create(6, 65536, 4 << 20);
    assert_fails(nami_ngram_train(g, text, 200000), NAMI_EPLAN, "choose a lower order");
    assert_true(nami_ngram_bytes(g) <= 4 << 20);
    nami_ngram_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_sum_is_one),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
