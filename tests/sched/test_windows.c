/* SPDX-License-Identifier: MIT */
/* test_windows.c - lists without a flush: what each policy reads, when each stage updates. */
#include "nami_test.h"

#include "sched/schedule.h"
#include "sched/staleness.h"

static nami_recipe window(const char *schedule, int positions, int units,
                          int per_update)
{
    nami_recipe r = {.positions = positions,
                     .microbatches = units,
                     .per_update = per_update,
                     .waves = 1,
                     .chunks = 2,
                     .slices = 1};
    assert_ok(nami_recipe_preset(&r, schedule));
    return r;
}

static void check_text(const nami_recipe *r, const char *expected)
{
    nami_schedule s;
    nami_text text = {0};
    assert_ok(nami_schedule_make(r, NAMI_PURPOSE_TRAIN, &s));
    nami_schedule_print(&s, &text);
    assert_string_equal(nami_text_get(&text), expected);
    nami_text_free(&text);
    nami_schedule_free(&s);
}

/* Written down by hand. */
static void test_known_lists(void **state)
{
    (void)state;
    nami_recipe r = window("pipedream", 2, 3, 1);
    check_text(&r, "0F0 0SEND_F0 0RECV_B0 0F1 0SEND_F1 0B0 0REDUCE0 0UPDATE0v1 "
                   "0RECV_B1 0F2v1 0SEND_F2 0RECV_B2 0B1 0REDUCE1 0UPDATE1 0B2v1 "
                   "0REDUCE2 0UPDATE2v1\n"
                   "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1REDUCE0 1UPDATE0 1F1 1RECV_F2 "
                   "1B1 1SEND_B1 1REDUCE1 1UPDATE1 1F2 1B2 1SEND_B2 1REDUCE2 "
                   "1UPDATE2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_lists),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
