/* SPDX-License-Identifier: MIT */
/* test_gap.c - the delay of messages and unforeseen idle time are found in timelines where they are known. */
#include "nami_test.h"

#include <math.h>

#include "sched/oracle.h"
#include "train/gap.h"

static void predict(const nami_recipe *r, double latency, nami_schedule *s,
                    nami_prediction *out)
{
    const nami_cost cost = {
        .tf = 1, .tbi = 1, .tbw = 1, .latency = latency, .apart = true};
    assert_ok(nami_schedule_generate(r, NAMI_PURPOSE_TRAIN, s));
    assert_ok(nami_simulate(s, &cost, true, out));
}

/* Every simulated message takes the latency, so that is the median of those that were waited for. */
static void test_hop(void **state)
{
    (void)state;
    for (int i = 0; i < nami_presets_with_flush(); i++) {
        for (int c = 1; c <= 4; c++) {
            nami_recipe r = oracle_recipe(nami_preset_at(i)->name, 4, 8, c);
            nami_schedule s;
            nami_prediction p;
            if ((c > 1 && !oracle_chunked(&r)) || !oracle_admits(&r))
                continue;
            predict(&r, 0.015625, &s, &p);
            double hop =
                nami_gap_hop(&p.timeline, &(nami_layout){.train = s, .replicas = 1});
            if (fabs(hop - 0.015625) > 1e-9)
                fail_msg("%s, %d: hop %g", r.name, c, hop);
            nami_prediction_free(&p);
            nami_schedule_free(&s);
        }
    }
}

/* One position waits for no message: no hop. */
static void test_no_hop(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("gpipe", 1, 4, 1);
    nami_schedule s;
    nami_prediction p;
    predict(&r, 1, &s, &p);
    const nami_layout l = {.train = s, .replicas = 1};
    assert_true(nami_gap_hop(&p.timeline, &l) == 0);
    nami_prediction_free(&p);
    nami_schedule_free(&s);
}

/* Three actions that begin late, on their rank alone, are the three gaps, the longest delay first. */
static void test_largest(void **state)
{
    (void)state;
    const struct {
        int rank, index;
        double late;
    } slow[NAMI_GAPS] = {{2, 3, 0.5}, {0, 5, 0.25}, {3, 2, 0.125}};
    nami_recipe r = oracle_recipe("dapple", 4, 8, 1);
    nami_schedule s;
    nami_prediction measured, predicted;
    nami_gap gap[NAMI_GAPS];
    predict(&r, 0, &s, &measured);
    nami_schedule_free(&s);
    predict(&r, 0, &s, &predicted);
    const nami_layout l = {.train = s, .replicas = 1};
    for (int i = 0; i < NAMI_GAPS; i++)
        measured.timeline.span[slow[i].rank][slow[i].index].start += slow[i].late;
    assert_int_equal(nami_gap_largest(&measured.timeline, &predicted.timeline, &l, gap),
                     NAMI_GAPS);
    for (int i = 0; i < NAMI_GAPS; i++) {
        const nami_span *at = &predicted.timeline.span[slow[i].rank][slow[i].index];
        assert_int_equal(gap[i].rank, slow[i].rank);
        assert_memory_equal(&gap[i].before, &at->action, sizeof at->action);
        assert_true(fabs(gap[i].measured - gap[i].predicted - slow[i].late) < 1e-12);
    }
    nami_prediction_free(&measured);
    nami_prediction_free(&predicted);
    nami_schedule_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hop),
        cmocka_unit_test(test_no_hop),
        cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
