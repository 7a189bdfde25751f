/* SPDX-License-Identifier: MIT */
/* test_place.c - transient memory by lifetime: nothing alive at the same time overlaps, little is wasted. */
#include "base/rng.h"
#include "graph/plan.h"
#include "nami_test.h"

enum { MOST = 60, CASES = 300 };

/* Random whole number in [from, to]. */
static int draw(uint64_t *key, int from, int to)
{
    *key = nami_mix(*key, 1);
    return from + (int)(*key % (uint64_t)(to - from + 1));
}

static int random_buffers(uint64_t *key, nami_buffer *buffer, int *item)
{
    int n = draw(key, 1, MOST);
    for (int i = 0; i < n; i++) {
        buffer[i] = (nami_buffer){.bytes = (size_t)draw(key, 1, 5000)};
        int *first = buffer[i].first, *last = buffer[i].last;
        first[NAMI_WALK_B] = draw(key, 0, 40);
        last[NAMI_WALK_B] = first[NAMI_WALK_B] + draw(key, 0, 10);
        item[i] = i;
    }
    return n;
}

static bool together(const nami_buffer *a, const nami_buffer *b)
{
    return a->first[NAMI_WALK_B] <= b->last[NAMI_WALK_B] &&
           b->first[NAMI_WALK_B] <= a->last[NAMI_WALK_B];
}

/* The most bytes alive at one launch: no arrangement can be smaller. */
static size_t floor_of(const nami_buffer *buffer, int n)
{
    size_t most = 0;
    for (int t = 0; t <= 50; t++) {
        size_t now = 0;
        for (int i = 0; i < n; i++)
            if (buffer[i].first[NAMI_WALK_B] <= t && t <= buffer[i].last[NAMI_WALK_B])
                now += nami_plan_round(buffer[i].bytes);
        most = now > most ? now : most;
    }
    return most;
}

static void test_no_overlap(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(20240501);
    nami_buffer buffer[MOST];
    int item[MOST];
    double waste = 0;
    for (int c = 0; c < CASES; c++) {
        int n = random_buffers(&key, buffer, item);
        size_t total = nami_plan_pack(buffer, item, n, NAMI_WALK_B);
        size_t end = 0, least = floor_of(buffer, n);
        for (int i = 0; i < n; i++) {
            size_t from = buffer[i].place.offset, to = from + buffer[i].bytes;
            assert_int_equal(from % NAMI_ALIGN, 0);
            end = to > end ? to : end;
            for (int j = 0; j < i; j++) {
                size_t at = buffer[j].place.offset;
                if (together(&buffer[i], &buffer[j]))
                    assert_true(to <= at || at + buffer[j].bytes <= from);
            }
        }
        assert_int_equal(nami_plan_round(end), total);
        assert_true(total >= least);
        waste += (double)total / (double)least - 1;
    }
    assert_true(waste / CASES < 0.05);
}

static void test_empty_and_one(void **state)
{
    (void)state;
    nami_buffer one = {.bytes = 65};
    int item[1] = {0};
    assert_int_equal(nami_plan_pack(&one, item, 0, NAMI_WALK_F), 0);
    assert_int_equal(nami_plan_pack(&one, item, 1, NAMI_WALK_F), 128);
    assert_int_equal(one.place.offset, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_overlap),
        cmocka_unit_test(test_empty_and_one),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
