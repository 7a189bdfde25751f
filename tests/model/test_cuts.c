/* SPDX-License-Identifier: MIT */
/* test_cuts.c - cuts against brute force over all cuts of short chains. */
#include <math.h>

#include "base/rng.h"
#include "model/model.h"
#include "nami_test.h"

enum { MOST = 9 };

typedef struct measure {
    double largest, squares;
} measure;

static measure measure_of(const double *work, int stages, const int *cut)
{
    measure m = {0, 0};
    for (int s = 0; s < stages; s++) {
        double part = 0;
        for (int b = cut[s]; b < cut[s + 1]; b++)
            part += work[b];
        m.largest = fmax(m.largest, part);
        m.squares += part * part;
    }
    return m;
}

static bool better(measure a, measure b)
{
    return a.largest < b.largest || (a.largest == b.largest && a.squares < b.squares);
}

/* The best of all cuts: every set of stages-1 inner borders as a bit mask. */
static measure brute_force(const double *work, int n, int stages)
{
    measure best = {INFINITY, INFINITY};
    for (unsigned mask = 0; mask < 1U << (n - 1); mask++) {
        int cut[MOST + 1] = {0}, s = 1;
        for (int b = 1; b < n; b++)
            if (mask >> (b - 1) & 1U)
                cut[s++] = b;
        cut[s] = n;
        if (s == stages && better(measure_of(work, stages, cut), best))
            best = measure_of(work, stages, cut);
    }
    return best;
}

static void test_brute_force(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(77);
    double work[MOST];
    int cut[MOST + 1];
    for (int c = 0; c < 400; c++) {
        int n = 1 + (int)(nami_mix(key, (uint64_t)c) % MOST);
        for (int i = 0; i < n;
             i++) /* small whole numbers: sums are exact, ties are common */
            work[i] = (double)(nami_mix(key + 1, (uint64_t)(c * MOST + i)) % 7);
        for (int stages = 1; stages <= n; stages++) {
            nami_model_cut_work(work, n, stages, cut);
            assert_int_equal(cut[0], 0);
            assert_int_equal(cut[stages], n);
            for (int s = 0; s < stages; s++)
                assert_true(cut[s] < cut[s + 1]);
            measure got = measure_of(work, stages, cut),
                    best = brute_force(work, n, stages);
            assert_true(got.largest == best.largest && got.squares == best.squares);
        }
    }
}

static void test_gpt2(void **state)
{
    (void)state;
    nami_model_options o = {.layers = 12,
                            .width = 768,
                            .heads = 12,
                            .context = 1024,
                            .vocabulary = 50257,
                            .tied = true,
                            .bias = true};
    nami_model *m;
    int cut[27];
    assert_ok(nami_model_new(&o, 0, &m));
    assert_ok(nami_model_cuts(m, 256, 2, cut));
    assert_in_range(cut[1], 17, 19); /* about 9 layers | 3 layers and the head */
    assert_ok(nami_model_cuts(m, 256, 26, cut));
    assert_int_equal(cut[25], 25);
    assert_fails(nami_model_cuts(m, 256, 27, cut), NAMI_EPLAN,
                 "27 stages cannot be cut from a chain of 26 blocks");
    assert_fails(nami_model_cuts(m, 256, 0, cut), NAMI_EPLAN, "0 stages");
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_gpt2),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
