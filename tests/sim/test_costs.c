/* SPDX-License-Identifier: MIT */
/* test_costs.c - what actions, messages and sums cost; the critical path; profiles of measured times. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "sched/oracle.h"
#include "sim/sim.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1.0 + fabs(b));
}

static void predict(const char *name, int p, int m, int c, bool lowered,
                    const nami_cost *cost, nami_prediction *out)
{
    nami_schedule s;
    nami_recipe r = oracle_smallest(name, p, m, c);
    if (lowered)
        assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    else
        assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
    assert_ok(nami_simulate(&s, cost, false, out));
    nami_schedule_free(&s);
}

static double chain(const nami_critical *c)
{
    double sum = 0.0;
    for (int kind = 0; kind < NAMI_KINDS; kind++)
        sum += c->kind[kind];
    return sum;
}

/* Without latency the chain has no gap: its actions alone add up to the makespan. With latency every gap is a
 * message. Nobody waits for a receive that is posted late where lists do not communicate. */
static void test_critical_path(void **state)
{
    (void)state;
    for (int i = 0; i < nami_presets_with_flush(); i++) {
        for (int lowered = 0; lowered < 2; lowered++) {
            const char *name = nami_preset_at(i)->name;
            nami_cost cost = {.tf = 3, .tbi = 4, .tbw = 2, .update = 5, .reduce = 7};
            nami_prediction p;
            predict(name, 4, 9, 2, lowered, &cost, &p);
            assert_true(near(chain(&p.critical), p.makespan));
            assert_true(fabs(p.critical.message) < 1e-9);
            assert_int_equal(p.critical.kind[NAMI_UPDATE] > 0.0, lowered);
            nami_prediction_free(&p);
            cost.latency = 0.5;
            predict(name, 4, 9, 2, lowered, &cost, &p);
            assert_true(near(p.critical.message, 0.5 * (double)p.critical.messages));
            assert_true(near(chain(&p.critical) + p.critical.message, p.makespan));
            assert_true(p.critical.actions > 4);
            nami_prediction_free(&p);
        }
    }
}

/* Two positions, one micro-batch: F, message, F B, message, B. */
static void test_links(void **state)
{
    (void)state;
    const double bytes[2] = {60.0, 0.0};
    nami_cost cost = {.tf = 1,
                      .tbi = 1,
                      .tbw = 1,
                      .latency = 0.25,
                      .bandwidth = 120.0,
                      .bytes = bytes,
                      .node_latency = 2,
                      .node_bandwidth = 30.0};
    nami_prediction p;
    predict("dapple", 2, 1, 1, false, &cost, &p);
    assert_true(near(p.makespan, 6 + 2 * (0.25 + 0.5)));
    assert_true(p.sent[0] == 60 && p.received[0] == 60 && p.sent[1] == 60);
    nami_prediction_free(&p);
    cost.ranks_per_node = 2;
    predict("dapple", 2, 1, 1, false, &cost, &p);
    assert_true(near(p.makespan, 6 + 2 * (0.25 + 0.5)));
    nami_prediction_free(&p);
    cost.ranks_per_node = 1;
    predict("dapple", 2, 1, 1, false, &cost, &p);
    assert_true(near(p.makespan, 6 + 2 * (2 + 2)));
    nami_prediction_free(&p);
}

/* All forwards of gpipe leave position 0 faster than its link carries them: with links that carry one at a time the
 * last arrives M transfers after the first forward, else one transfer after the last. */
static void test_serial_links(void **state)
{
    (void)state;
    const double bytes[2] = {50.0, 0.0};
    nami_cost cost = {.tf = 1, .bandwidth = 10.0, .bytes = bytes};
    nami_prediction p;
    for (int lowered = 0; lowered < 2; lowered++) {
        cost.serial = false;
        cost.bandwidth = 10.0; /* 5 a message */
        predict("gpipe", 2, 8, 1, false, &cost, &p);
        double free = p.makespan;
        assert_true(near(free, 8 + 5 + 1 + 5));
        nami_prediction_free(&p);
        cost.serial = true;
        predict("gpipe", 2, 8, 1, lowered, &cost, &p);
        assert_true(near(p.makespan, 1 + 8 * 5 + 1 + 8 * 5));
        nami_prediction_free(&p);
    }
}

static void test_sums(void **state)
{
    (void)state;
    /* two stages on one position, F F B(1) sum(1) beside B(0), sum(0) */
    nami_cost cost = {.tf = 2, .tbi = 2, .tbw = 2, .reduce = 2};
    nami_prediction p;
    predict("hanayo", 1, 1, 1, true, &cost, &p);
    assert_true(p.makespan == 1 + 1 + 2 + 2 + 1);
    assert_true(p.critical.kind[NAMI_REDUCE] == 1);
    nami_prediction_free(&p);
    cost.reduce_alone = true;
    predict("hanayo", 1, 1, 1, true, &cost, &p);
    assert_true(p.makespan == 1 + 1 + 2 + 1 + 2 + 1);
    assert_true(p.critical.kind[NAMI_REDUCE] == 2);
    assert_true(p.busy[0] == 6);
    nami_prediction_free(&p);
}

static void test_recompute(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("gpipe", 3, 4, 1);
    nami_schedule s;
    nami_prediction p;
    r.recompute = true;
    assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
    for (int i = 0; i < 2; i++) {
        const nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1, .tr = i == 0 ? 0 : 0.5};
        assert_ok(nami_simulate(&s, &cost, false, &p));
        assert_true(p.makespan == (4 + 2) * (i == 0 ? 4 : 3.5));
        nami_prediction_free(&p);
    }
    nami_schedule_free(&s);
}

static void test_profile(void **state)
{
    (void)state;
    nami_profile p;
    double f[3], bi[3], bw[3], bytes[3];
    assert_ok(nami_profile_parse("# measured\nname, f, b, bytes\nin, 1, 4, 10 # first\n"
                                 "\nmid, 2, 6, 20\nout, 3, 8, 30\nend, 4, 2, 0\n",
                                 "test", &p));
    assert_int_equal(p.rows, 4);
    assert_ok(nami_profile_cut(&p, 2, f, bi, bw, bytes));
    assert_true(f[0] == 3 && f[1] == 7 && bi[0] == 5 && bw[1] == 5);
    assert_true(bytes[0] == 20 && bytes[1] == 0);
    assert_fails(nami_profile_cut(&p, 3, f, bi, bw, bytes), NAMI_EPLAN,
                 "4 = 3 x 1 + 1");
    nami_profile_free(&p);
    assert_ok(nami_profile_parse("f bi bw\n1 2 3\n", "test", &p));
    assert_true(p.bi[0] == 2 && p.bw[0] == 3 && p.bytes[0] == 0);
    nami_profile_free(&p);
}

static void refuse(const char *text, const char *part)
{
    nami_profile p;
    assert_fails(nami_profile_parse(text, "test", &p), NAMI_EINPUT, part);
    nami_profile_free(&p);
}

static void test_broken_profiles(void **state)
{
    (void)state;
    nami_profile p;
    refuse("", "no times are in it");
    refuse("f b\n", "no times are in it");
    refuse("f\n1\n", "must name the columns f, and bi and bw or b");
    refuse("f b bi bw\n1 2 3 4\n", "must name the columns");
    refuse("f b speed\n1 2 3\n", "test:1: \"speed\" is no column");
    refuse("f b f\n1 2 3\n", "there twice");
    refuse("f b\n1 2\n\n1\n", "test:4: 2 columns are named, but here are 1");
    refuse("f b\n1 2 3\n", "but here are 3");
    refuse("f b\n1 x\n", "column b: \"x\" is no number");
    refuse("f b\n1 -2\n", "\"-2\" is no number of at least 0");
    refuse("f b\n1 nan\n", "is no number");
    refuse("f b\n1 inf\n", "is no number");
    assert_fails(nami_profile_read("/nonexistent", &p), NAMI_EINPUT,
                 "cannot be opened");
    nami_profile_free(&p);
}

/* Stage times of a profile drive the simulation: against the longest path. */
static void test_profile_times(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(77);
    for (uint64_t i = 0; i < 30; i++) {
        const char *name =
            nami_preset_at((int)(i % (uint64_t)nami_presets_with_flush()))->name;
        nami_recipe r = oracle_smallest(name, 2 + (int)(i % 3), 5, 2);
        int stages = nami_recipe_stages(&r);
        int64_t whole[3][32];
        double cost[3][32];
        for (int k = 0; k < 3 * stages; k++) {
            whole[k % 3][k / 3] = 1 + (int64_t)(9 * nami_uniform(key, 100 * i + k));
            cost[k % 3][k / 3] = (double)whole[k % 3][k / 3];
        }
        const nami_cost c = {
            .stage_f = cost[0], .stage_bi = cost[1], .stage_bw = cost[2], .latency = 3};
        const oracle_costs o = {
            .f = whole[0], .bi = whole[1], .bw = whole[2], .latency = 3 * r.slices};
        nami_schedule s;
        nami_prediction p;
        assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
        assert_ok(nami_simulate(&s, &c, false, &p));
        assert_true(near(p.makespan, (double)oracle_makespan(&s, &o) / r.slices));
        nami_prediction_free(&p);
        nami_schedule_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_critical_path),   cmocka_unit_test(test_links),
        cmocka_unit_test(test_serial_links),    cmocka_unit_test(test_sums),
        cmocka_unit_test(test_recompute),       cmocka_unit_test(test_profile),
        cmocka_unit_test(test_broken_profiles), cmocka_unit_test(test_profile_times),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
