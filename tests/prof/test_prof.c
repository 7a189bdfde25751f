/* SPDX-License-Identifier: MIT */
/* test_prof.c - timers add up, spans are bounded, counters count or say why not. */
#include "nami_test.h"
#include "prof/counters.h"
#include "prof/prof.h"

static void test_phases(void **state)
{
    (void)state;
    nami_prof p;
    nami_prof_open(&p, 0);
    nami_prof_add(&p, NAMI_PHASE_F, 1.0, 3.0);
    nami_prof_add(&p, NAMI_PHASE_F, 5.0, 5.5);
    assert_true(p.seconds[NAMI_PHASE_F] == 2.5);
    assert_int_equal(p.count[NAMI_PHASE_F], 2);
    for (int i = 0; i < NAMI_PHASES; i++)
        assert_true(strlen(nami_phase_name((nami_phase)i)) > 0);
    nami_prof_reset(&p);
    assert_true(p.seconds[NAMI_PHASE_F] == 0 && p.count[NAMI_PHASE_F] == 0);
    nami_prof_close(&p);
}

static void test_spans(void **state)
{
    (void)state;
    nami_prof p;
    nami_prof_open(&p, 2);
    nami_prof_mark(&p, &(nami_prof_span){.end = 1.0, .unit = 2, .stage = 1});
    assert_int_equal(p.spans, 0); /* not recording */
    p.record = true;
    for (int i = 0; i < 3; i++)
        nami_prof_mark(&p, &(nami_prof_span){.start = i,
                                             .end = i + 1,
                                             .unit = i,
                                             .stage = 7,
                                             .slice = 3,
                                             .kind = 1});
    assert_int_equal(p.spans, 3);
    assert_int_equal(nami_prof_kept(&p), 2);
    assert_int_equal(p.span[1].unit, 1);
    assert_int_equal(p.span[1].stage, 7);
    assert_int_equal(p.span[1].slice, 3);
    nami_prof_begin(&p);
    assert_int_equal(nami_prof_kept(&p), 0);
    nami_prof_close(&p);
}

static void test_counters(void **state)
{
    (void)state;
    nami_counters c;
    nami_counters_open(&c);
    printf("counters %s\n", c.text);
    bool available = strncmp(c.text, "available: ", 11) == 0;
    assert_true(available || strncmp(c.text, "unavailable, because ", 21) == 0);
    assert_true(available == (c.count > 0));
    volatile double x = 1;
    for (int i = 0; i < 20000000; i++)
        x = x * 1.0000001;
    assert_ok(nami_counters_read(&c));
    if (available)
        assert_true(c.value[0] > 0); /* cycles, or nanoseconds of this thread */
    nami_counters_close(&c);
    assert_string_equal(nami_prof_counters(), nami_prof_counters());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
