/* SPDX-License-Identifier: MIT */
/* test_legs.c - [switch]: the keys of [pipeline], what a switch keeps, and when a leg begins. */
#include "nami_test.h"
#include "train/leg.h"

typedef struct fixture {
    nami_pipeline_options pipeline;
    nami_switch_options change[NAMI_SWITCHES];
    nami_leg leg[NAMI_LEGS];
    int legs;
} fixture;

static void open_fixture(fixture *f)
{
    *f = (fixture){0};
    assert_int_equal(nami_option_defaults(&nami_pipeline_table, &f->pipeline), NAMI_OK);
    for (int i = 0; i < NAMI_SWITCHES; i++)
        assert_int_equal(nami_option_defaults(&nami_switch_tables[i], &f->change[i]),
                         NAMI_OK);
}

static void close_fixture(fixture *f)
{
    nami_legs_free(f->leg);
    nami_option_release(&nami_pipeline_table, &f->pipeline);
    for (int i = 0; i < NAMI_SWITCHES; i++)
        nami_option_release(&nami_switch_tables[i], &f->change[i]);
    nami_fail_clear();
}

static nami_status make(fixture *f)
{
    return nami_legs_make(&f->pipeline, f->change, f->leg, &f->legs);
}

/* Every key of [pipeline] can be given in a switch, and nothing else but `at`. */
static void test_keys(void **state)
{
    (void)state;
    for (int n = 0; n < NAMI_SWITCHES; n++) {
        const nami_option_table *t = &nami_switch_tables[n];
        assert_int_equal(t->rows, nami_pipeline_table.rows + 1);
        for (int i = 0; i < nami_pipeline_table.rows; i++) {
            bool found = false;
            for (int j = 0; j < t->rows; j++)
                found = found || !strcmp(t->row[j].key, nami_pipeline_table.row[i].key);
            if (!found)
                fail_msg("[%s] lacks %s", t->row[0].section,
                         nami_pipeline_table.row[i].key);
        }
    }
}

/* Without a schedule all stays but what is given. */
static void test_inherit(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    nami_test_set(&nami_pipeline_table, &f.pipeline, "schedule",
                  "file:a name # with marks");
    nami_test_set(&nami_pipeline_table, &f.pipeline, "replicas", "3");
    nami_test_set(&nami_pipeline_table, &f.pipeline, "cuts", "0,4,7");
    nami_test_set(&nami_pipeline_table, &f.pipeline, "recompute", "yes");
    nami_test_set(&nami_switch_tables[0], &f.change[0], "at", "7");
    nami_test_set(&nami_switch_tables[0], &f.change[0], "microbatches", "12");
    assert_int_equal(make(&f), NAMI_OK);
    assert_int_equal(f.legs, 2);
    const nami_pipeline_options *p = &f.leg[1].pipeline;
    assert_string_equal(p->schedule, "file:a name # with marks");
    assert_int_equal(p->replicas, 3);
    assert_int_equal(p->microbatches, 12);
    assert_int_equal(p->cuts.count, 3);
    assert_int_equal(p->cuts.item[2], 7);
    assert_true(p->recompute);
    assert_int_equal(f.leg[0].pipeline.microbatches, f.pipeline.microbatches);
    close_fixture(&f);
}

/* With a schedule what shapes a layout begins from its defaults. */
static void test_fresh(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    nami_test_set(&nami_pipeline_table, &f.pipeline, "replicas", "8");
    nami_test_set(&nami_pipeline_table, &f.pipeline, "cuts", "0,4,7");
    nami_test_set(&nami_pipeline_table, &f.pipeline, "placement", "wave");
    nami_test_set(&nami_pipeline_table, &f.pipeline, "microbatches", "16");
    nami_test_set(&nami_switch_tables[0], &f.change[0], "at", "7");
    nami_test_set(&nami_switch_tables[0], &f.change[0], "schedule", "dapple");
    assert_int_equal(make(&f), NAMI_OK);
    const nami_pipeline_options *p = &f.leg[1].pipeline;
    assert_string_equal(p->schedule, "dapple");
    assert_int_equal(p->replicas, 1);
    assert_int_equal(p->cuts.count, 0);
    assert_int_equal(p->placement, 0);
    assert_int_equal(p->microbatches, 16);
    close_fixture(&f);
}

/* The second switch starts from the first. */
static void test_chain(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    nami_test_set(&nami_switch_tables[0], &f.change[0], "at", "1 step");
    nami_test_set(&nami_switch_tables[0], &f.change[0], "waves", "5");
    nami_test_set(&nami_switch_tables[1], &f.change[1], "at", "1.5 epochs");
    nami_test_set(&nami_switch_tables[1], &f.change[1], "replicas", "2");
    assert_int_equal(make(&f), NAMI_OK);
    assert_int_equal(f.legs, 3);
    assert_int_equal(f.leg[2].pipeline.waves, 5);
    assert_int_equal(f.leg[2].pipeline.replicas, 2);
    assert_int_equal(f.leg[1].pipeline.replicas, 1);
    assert_int_equal(f.leg[1].at.steps, 1);
    assert_true(f.leg[2].at.epochs == 1.5);
    close_fixture(&f);
}

/* Wherever a run resumes, an epoch ends at the same step: the first after which all its samples were used. */
static void test_epochs(void **state)
{
    (void)state;
    for (int64_t batch = 1; batch <= 9; batch++)
        for (int64_t step = 0; step < 60; step++) {
            nami_leg leg[NAMI_LEGS] = {[1] = {.at = {.epochs = 2.5}}};
            int current = -1;
            nami_leg_place p = {
                .epoch = 30, .batch = batch, .step = step, .sample = step * batch};
            assert_int_equal(nami_legs_place(leg, 2, &p, &current), NAMI_OK);
            assert_int_equal(leg[1].first, (75 + batch - 1) / batch);
            assert_int_equal(current, step * batch >= 75);
        }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"0",          "-1",     "1.5",  "x",
                                      "3 weeks",    "nan",    "1e30", "0 epochs",
                                      "inf epochs", " epochs"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f;
        open_fixture(&f);
        nami_test_set(&nami_switch_tables[0], &f.change[0], "at", bad[i]);
        nami_test_set(&nami_switch_tables[0], &f.change[0], "schedule", "gpipe");
        assert_int_equal(make(&f), NAMI_EINPUT);
        assert_non_null(strstr(nami_fail_text(), "switch.at"));
        close_fixture(&f);
    }
    nami_leg leg[NAMI_LEGS] = {[1] = {.at = {.epochs = 1}}};
    int current;
    nami_leg_place nothing = {.batch = 4};
    assert_int_equal(nami_legs_place(leg, 2, &nothing, &current), NAMI_EINPUT);
    nami_fail_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),   cmocka_unit_test(test_inherit),
        cmocka_unit_test(test_fresh),  cmocka_unit_test(test_chain),
        cmocka_unit_test(test_epochs), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
