/* SPDX-License-Identifier: MIT */
/* test_window.c - the order of samples: every window once an epoch, inside the set, a function of the counter. */
#include "nami_test.h"

#include "base/rng.h"
#include "data/data.h"

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Starts of one epoch, sorted: a grid of step `time` from a shift below `time`, all inside; only the last may be moved back. */
static void check_epoch(int64_t tokens, int64_t time, uint64_t key, int64_t epoch)
{
    int64_t n = (tokens - 1) / time, last = tokens - 1 - time;
    int64_t *from = nami_alloc(NAMI_MEM_OTHER, (size_t)n * sizeof *from);
    for (int64_t i = 0; i < n; i++)
        from[i] = nami_window(tokens, time, key, epoch * n + i);
    qsort(from, (size_t)n, sizeof *from, compare);
    assert_in_range(from[0], 0, time - 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t want = from[0] + i * time;
        assert_int_equal(from[i], want < last ? want : last);
        assert_true(i == 0 || from[i] > from[i - 1]);
    }
    nami_free(from);
}

static void test_epochs(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(11);
    for (uint64_t trial = 0; trial < 2000; trial++) {
        int64_t time = 1 + (int64_t)(nami_uniform(seed, 3 * trial) * 40);
        int64_t tokens = time + 1 + (int64_t)(nami_uniform(seed, 3 * trial + 1) * 900);
        int64_t epoch = (int64_t)(nami_uniform(seed, 3 * trial + 2) * 1e6);
        check_epoch(tokens, time, nami_mix(seed, trial), epoch);
    }
    check_epoch(2, 1, seed, 0);
    check_epoch(65, 64, seed, 5);
}

/* Epochs differ in order and in shift, keys differ, and no window is far more frequent than others. */
static void test_variety(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(12);
    enum { TOKENS = 6401, TIME = 64, WINDOWS = 100, EPOCHS = 64 };
    int same = 0, same_key = 0, shifts[TIME] = {0}, different = 0;
    for (int e = 0; e < EPOCHS; e++) {
        int64_t shift = TIME;
        for (int i = 0; i < WINDOWS; i++) {
            int64_t from = nami_window(TOKENS, TIME, seed, e * WINDOWS + i);
            same += from / TIME == nami_window(TOKENS, TIME, seed, i) / TIME && e > 0;
            same_key += from == nami_window(TOKENS, TIME, seed + 1, e * WINDOWS + i);
            shift = from < shift ? from : shift;
        }
        assert_in_range(shift, 0, TIME - 1);
        different += shifts[shift]++ == 0;
    }
    /* of 6300 pairs a hundredth agrees by chance; of 64 draws from 64, about 40 are different */
    assert_in_range(same, 0, 150);
    assert_in_range(same_key, 0, 150);
    assert_in_range(different, 25, 55);
}

/* Any order of asking gives the same: a restart needs the counter alone. */
static void test_restart(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(13);
    enum { STEPS = 5000 };
    static int64_t forward[STEPS];
    for (int64_t i = 0; i < STEPS; i++)
        forward[i] = nami_window(100003, 64, seed, i);
    for (int64_t i = STEPS - 1; i >= 0; i--)
        assert_int_equal(nami_window(100003, 64, seed, i), forward[i]);
}

static void test_large(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(14);
    int64_t tokens = (int64_t)15 << 40, time = 8192;
    for (int64_t i = 0; i < 20000; i++) {
        int64_t counter = i * 7654321987654;
        int64_t from = nami_window(tokens, time, seed, counter);
        assert_true(from >= 0 && from + time <= tokens - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_variety),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
