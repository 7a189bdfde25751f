/* SPDX-License-Identifier: MIT */
/* test_async.c - windows without a flush, simulated: times, steady state, replicas, versions, recomputation. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "sched/oracle.h"
#include "sched/staleness.h"
#include "sim/sim.h"

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

static void predict(const nami_recipe *r, const nami_cost *c, nami_prediction *p)
{
    nami_schedule s;
    assert_ok(nami_schedule_make(r, NAMI_PURPOSE_TRAIN, &s));
    assert_ok(nami_simulate(&s, c, false, p));
    nami_schedule_free(&s);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1.0, fabs(a));
}

/* Against the longest path, with stages of their own times, messages, and stages that recompute. */
static void test_longest_path(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(311);
    for (uint64_t i = 0; i < 60; i++) {
        int first = nami_presets_with_flush(), all = nami_presets() - first;
        const char *name = nami_preset_at(first + (int)(i % (uint64_t)all))->name;
        nami_recipe r = oracle_smallest(name, 2 + (int)(i / 8 % 3), 6, 2);
        int again[8] = {1, 1, 0}, stages = nami_recipe_stages(&r);
        int64_t whole[3][16];
        double cost[3][16];
        for (int k = 0; k < 3 * stages; k++) {
            whole[k % 3][k / 3] = 1 + (int64_t)(9 * nami_uniform(key, 100 * i + k));
            cost[k % 3][k / 3] = (double)whole[k % 3][k / 3];
        }
        if (stages == 3)
            r.stage_recompute = (nami_ints){.count = 3, .item = again};
        const int64_t latency = (int64_t)(i % 4);
        const nami_cost c = {.stage_f = cost[0],
                             .stage_bi = cost[1],
                             .stage_bw = cost[2],
                             .latency = (double)latency};
        const oracle_costs o = {
            .f = whole[0], .bi = whole[1], .bw = whole[2], .latency = latency};
        nami_schedule s;
        nami_prediction p;
        assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
        assert_ok(nami_simulate(&s, &c, false, &p));
        assert_true(near(p.makespan, (double)oracle_makespan(&s, &o)));
        nami_prediction_free(&p);
        nami_schedule_free(&s);
    }
}

/* 1F1B over N units idles while S - 1 of them fill and drain, and never between; nor does the wave. */
static void test_steady(void **state)
{
    (void)state;
    const nami_cost c = {.tf = 1, .tbi = 1, .tbw = 1};
    for (int S = 1; S <= 8; S++) {
        nami_recipe r = window("pipedream", S, 10 * S, 1);
        nami_prediction p;
        predict(&r, &c, &p);
        assert_true(near(p.bubble, (S - 1.0) / (11.0 * S - 1.0)));
        assert_true(near(p.fill + p.steady + p.drain, p.makespan));
        assert_true(p.steady > 0.0 && fabs(p.steady_bubble) < 1e-9);
        nami_prediction_free(&p);
        r = window("hanayo", S, 10 * S, 1);
        r.weights = NAMI_WEIGHTS_STASH;
        predict(&r, &c, &p);
        assert_true(p.steady > 0.0 && fabs(p.steady_bubble) < 1e-9);
        nami_prediction_free(&p);
    }
    nami_recipe r = window("pipedream", 4, 3, 1); /* drains before it is full */
    nami_prediction p;
    predict(&r, &c, &p);
    assert_true(p.steady == 0.0 && p.steady_bubble == 0.0 && p.bubble > 0.49);
    nami_prediction_free(&p);
}

/* The slowest stage sets the pace: others idle the rest of it. */
static void test_slowest(void **state)
{
    (void)state;
    const double f[] = {1, 2, 1}, bi[] = {1, 2, 1}, bw[] = {1, 2, 1};
    const nami_cost c = {.stage_f = f, .stage_bi = bi, .stage_bw = bw};
    nami_recipe r = window("pipedream", 3, 400, 1);
    nami_prediction p;
    predict(&r, &c, &p);
    assert_true(fabs(p.steady_bubble - 1.0 / 3.0) < 0.01);
    assert_true(fabs(p.makespan / 400.0 - 6.0) < 0.1);
    nami_prediction_free(&p);
}

/* Samples that two ranks have in common, found one by one. */
static int pairs_of(int r, int q, int samples)
{
    bool shared[8][8] = {{false}};
    int count = 0, left[2] = {0, 0}, parts[2] = {r, q}, at[2];
    at[0] = at[1] = -1;
    for (int i = 0; i < samples; i++) {
        for (int k = 0; k < 2; k++) {
            while (left[k] == 0) {
                at[k]++;
                left[k] = (samples + at[k]) / parts[k];
            }
            left[k]--;
        }
        shared[at[0]][at[1]] = true;
    }
    for (int i = 0; i < 64; i++)
        count += shared[i / 8][i % 8];
    return count;
}

static void test_pairs(void **state)
{
    (void)state;
    for (int r = 1; r <= 8; r++) {
        for (int q = 1; q <= 8; q++) {
            for (int samples = r > q ? r : q; samples <= 60; samples++)
                assert_int_equal(nami_place_pairs(r, q, samples),
                                 pairs_of(r, q, samples));
            assert_int_equal(nami_place_pairs(r, q, 0), pairs_of(r, q, r * q));
        }
    }
}

/* Stages that cost as much as they have ranks are balanced; the ranks of two positions talk where they overlap. */
static void test_replicas(void **state)
{
    (void)state;
    int ranks[] = {4, 3, 1};
    const double cost[] = {4, 3, 1}, bytes[] = {12, 12, 0};
    nami_cost c = {.stage_f = cost, .stage_bi = cost, .stage_bw = cost};
    nami_recipe r = window("ashpipe", 3, 50, 1);
    nami_prediction p;
    r.stage_replicas = (nami_ints){.count = 3, .item = ranks};
    predict(&r, &c, &p);
    assert_true(near(p.makespan, 3.0 * 52));
    assert_true(near(p.bubble, 2.0 / 52));
    assert_int_equal(p.messages, 2 * 50 * (6 + 3));
    assert_true(near(p.weights[0], 3) && near(p.weights[2], 1));
    assert_true(near(p.peak[0], 3.0 / 4) && near(p.peak[1], 2.0 / 3));
    nami_prediction_free(&p);
    c.samples = 10; /* 2 2 3 3 | 3 3 4 | 10 */
    predict(&r, &c, &p);
    assert_int_equal(p.messages, 2 * 50 * (pairs_of(4, 3, 10) + 3));
    nami_prediction_free(&p);
    c.bytes = bytes; /* three ranks receive 4 each, one receives 12 */
    c.bandwidth = 4;
    c.reduce = 1;
    r.microbatches = 1;
    predict(&r, &c, &p);
    assert_true(near(p.makespan, 9 + 1 + 3 + 3 + 1 + 1)); /* the last stage sums none */
    nami_prediction_free(&p);
}

/* Weights held: versions, and one more where a forward reads a prediction. */
static void test_weights(void **state)
{
    (void)state;
    const nami_cost c = {.tf = 1, .tbi = 1, .tbw = 1};
    const struct {
        const char *name;
        int m;
        double first, last;
    } row[] = {{"pipedream", 1, 4, 1},     {"pipedream-vertical", 1, 4, 4},
               {"pipedream-2bw", 4, 2, 2}, {"pipemare", 1, 1, 1},
               {"spectrain", 1, 2, 1},     {"wpipe", 4, 1.5, 1.5}};
    for (int i = 0; i < 6; i++) {
        nami_recipe r = window(row[i].name, 4, 12 * row[i].m, row[i].m);
        nami_prediction p;
        predict(&r, &c, &p);
        assert_true(near(p.weights[0], row[i].first));
        assert_true(near(p.weights[3], row[i].last));
        nami_prediction_free(&p);
    }
}

/* A stage that recomputes holds one set of activations and runs its forward twice. */
static void test_again(void **state)
{
    (void)state;
    int again[] = {1, 1, 1, 0};
    const nami_cost c = {.tf = 1, .tbi = 1, .tbw = 1};
    nami_recipe r = window("pipedream", 4, 30, 1);
    nami_prediction p;
    r.stage_recompute = (nami_ints){.count = 4, .item = again};
    predict(&r, &c, &p);
    for (int i = 0; i < 4; i++) {
        assert_true(near(p.peak[i], 1));
        assert_true(near(p.busy[i], 30 * (3 + again[i])));
    }
    assert_true(near(p.critical.kind[NAMI_F] + p.critical.kind[NAMI_B] +
                         p.critical.kind[NAMI_R],
                     p.makespan));
    nami_prediction_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_path), cmocka_unit_test(test_steady),
        cmocka_unit_test(test_slowest),      cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_replicas),     cmocka_unit_test(test_weights),
        cmocka_unit_test(test_again),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
