/* SPDX-License-Identifier: MIT */
/* test_values.c - makespan, bubble, memory and messages of every schedule against formulas, exactly.
 *
 * Times are whole numbers of one stage's share, so equality is rational equality: with C stages a position the
 * simulator's makespan must be (whole number) / C, the double nearest to the rational.
 */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "sched/oracle.h"
#include "sim/sim.h"

static void simulate(const nami_recipe *r, double tf, double tb, nami_prediction *out)
{
    nami_schedule s;
    const nami_cost cost = {.tf = tf, .tbi = tb / 2, .tbw = tb / 2};
    assert_ok(nami_schedule_generate(r, NAMI_PURPOSE_TRAIN, &s));
    assert_ok(nami_simulate(&s, &cost, false, out));
    nami_schedule_free(&s);
}

/* The same of schedules with a split backward, at T_F = T_BI = T_BW = f. */
static int64_t split_formula(const nami_recipe *r, int64_t f)
{
    int64_t p = r->positions, m = r->microbatches, w = r->waves;
    if (strcmp(r->name, "zb-h1") == 0)
        return m >= p ? (3 * m + p - 1) * f : 0;
    if (strcmp(r->name, "zb-h2") == 0)
        return m >= 2 * p - 1 ? (3 * m + p - 1) * f : 0;
    if (strcmp(r->name, "zb-v") == 0)
        return m >= 2 * p - 1 ? (6 * m + p - 1) * f : 0;
    if (m >= p)
        return (6 * w * m + p - 1) * f;
    int64_t whole = 2 * w * (2 * m + p) + p - 1, deep = 4 * w * p + 2 * m - 1;
    return (whole > deep ? whole : deep) * f;
}

/* The same of schedules with two copies or pairs, at T_B = 2 T_F. */
static int64_t copies_formula(const nami_recipe *r, int64_t f)
{
    int64_t p = r->positions, m = r->microbatches;
    if (strcmp(r->name, "gems") == 0)
        return (m * (2 * p + 1) + p - 1) * f;
    if (strcmp(r->name, "chimera") == 0)
        return m % p == 0 ? (3 * m + (p - 2) * (m / p + 1)) * f : 0;
    if (strcmp(r->name, "chimera-doubling") == 0)
        return m % (2 * p) == 0 ? (3 * m + 2 * (p - 2)) * f : 0;
    if (strcmp(r->name, "dualpipe") == 0)
        return (3 * m + p - 2) * f;
    return 2 * (3 * m + p - 1) * f;
}

/* The formulas, times the stages a position; 0 where there is none. */
static int64_t formula(const nami_recipe *r, int64_t f, int64_t b)
{
    int64_t p = r->positions, m = r->microbatches, w = r->waves, x = f > b ? f : b;
    if (strcmp(r->name, "gpipe") == 0 || strcmp(r->name, "dapple") == 0)
        return (m + p - 1) * (f + b);
    if (strcmp(r->name, "interleaved") == 0)
        return m % p == 0 ? r->chunks * m * (f + b) + (p - 1) * (f + b) : 0;
    if (strcmp(r->name, "terapipe") == 0)
        return (m * r->slices + p - 1) * (f + b);
    if (r->placement == NAMI_PLACE_BIDIRECTIONAL || strcmp(r->name, "dualpipev") == 0)
        return b == 2 * f ? copies_formula(r, f) : 0;
    if (strncmp(r->name, "zb-", 3) == 0 || strcmp(r->name, "hanayo-zb") == 0)
        return b == 2 * f ? split_formula(r, f) : 0;
    if (strcmp(r->name, "hanayo-paper") == 0 && m != p)
        return 0;
    int64_t rest = (p - m % p) % p;
    if (m >= p)
        return 2 * w * m * (f + b) + 2 * (p - 1) * x + 2 * x * (w - 1) * rest;
    return 2 * w * p * (f + b) + 2 * (m - 1) * x;
}

/* A schedule and, where wanted, the explicit graph of its lists. */
typedef struct judged {
    nami_schedule s;
    oracle graph;
    bool drawn;
} judged;

static int64_t longest(judged *j, int64_t f, int64_t b)
{
    if (!j->drawn)
        assert_true(oracle_open(&j->graph, &j->s, 0));
    j->drawn = true;
    return oracle_longest_uniform(&j->graph, 2 * f, b, b);
}

/* At one ratio, against the formula; where there is none, or `both`, against the longest path through the graph. */
static void check_time(judged *j, int64_t f, int64_t b, bool both, bool every)
{
    const nami_recipe *r = &j->s.recipe;
    int64_t chunks = nami_recipe_stages(r) / r->positions * r->slices;
    int64_t expected = 2 * formula(r, f, b); /* halves: odd T_B is split */
    if (expected == 0 && r->positions > 12 && !every)
        return; /* the graph is slow */
    if (expected == 0)
        expected = longest(j, f, b);
    else if (both)
        assert_int_equal(longest(j, f, b), expected);
    const nami_cost cost = {
        .tf = (double)f, .tbi = (double)b / 2, .tbw = (double)b / 2};
    nami_prediction p;
    assert_ok(nami_simulate(&j->s, &cost, false, &p));
    assert_true(p.makespan == (double)expected / (double)(2 * chunks));
    int64_t work = 2 * chunks * r->microbatches * (f + b);
    assert_true(p.bubble == (double)(r->positions * (expected - work)) /
                                (double)(r->positions * expected));
    nami_prediction_free(&p);
}

static void check_ratios(const nami_recipe *r, bool both, bool every)
{
    static const int64_t ratio[5][2] = {
        {1, 2}, {2, 1}, {1, 1}, {2, 3}, {1, 3}}; /* T_F, T_B */
    judged j = {.drawn = false};
    assert_ok(nami_schedule_generate(r, NAMI_PURPOSE_TRAIN, &j.s));
    for (int k = 0; k < 5; k++)
        check_time(&j, ratio[k][0], ratio[k][1], both, every);
    if (j.drawn)
        oracle_close(&j.graph);
    nami_schedule_free(&j.s);
}

/* Every schedule with 1 to 4 waves, chunks or slices; `every`: those without a formula at any size, too. */
static void check_size(int positions, int microbatches, bool both, bool every)
{
    for (int i = 0; i < nami_presets_with_flush(); i++) {
        for (int c = 1; c <= 4; c++) {
            nami_recipe r =
                oracle_recipe(nami_preset_at(i)->name, positions, microbatches, c);
            if ((c == 1 || oracle_chunked(&r)) && oracle_admits(&r))
                check_ratios(&r, both, every);
        }
    }
}

static void test_formulas(void **state)
{
    (void)state;
    for (int p = 1; p <= 6; p++) {
        for (int m = 1; m <= 4 * p; m++)
            check_size(p, m, p <= 4, true);
    }
}

static void test_formulas_sampled(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(32);
    if (getenv("NAMI_TEST_LONG")) {
        for (int p = 7; p <= 32; p++) {
            for (int m = 1; m <= 4 * p; m++)
                check_size(p, m, false, true);
            print_message("P = %d\n", p);
        }
        return;
    }
    for (uint64_t i = 0; i < 10; i++) {
        int p = 7 + (int)(26 * nami_uniform(key, 2 * i));
        check_size(p, 1 + (int)(4 * p * nami_uniform(key, 2 * i + 1)), false, false);
    }
}

/* Bubbles that are printed in the literature of these schedules, T_B = 2 T_F. */
static void test_table(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int p, m, chunks;
        double over, under; /* the rational; under 1: four digits */
    } row[] = {
        {"gpipe", 4, 4, 1, 9, 21},
        {"dapple", 4, 4, 1, 9, 21},
        {"interleaved", 4, 4, 2, 9, 33},
        {"interleaved", 4, 4, 4, 9, 57},
        {"hanayo", 4, 4, 1, 1, 3},
        {"hanayo", 4, 4, 2, 1, 5},
        {"hanayo", 4, 4, 4, 1, 9},
        {"hanayo-paper", 4, 4, 2, 1, 5},
        {"zb-h1", 4, 4, 1, 1, 5},
        {"zb-h1", 8, 16, 1, 7, 55},
        {"zb-h1", 32, 64, 1, 0.1390, 1},
        {"zb-v", 8, 16, 1, 7, 103},
        {"zb-v", 32, 64, 1, 0.0747, 1},
        {"chimera", 4, 4, 1, 1, 4},
        {"chimera", 8, 16, 1, 3, 11},
        {"chimera", 32, 64, 1, 0.3191, 1},
        {"gems", 4, 4, 1, 27, 39},
        {"gems", 8, 16, 1, 0.8280, 1},
        {"gems", 32, 64, 1, 0.9542, 1},
        {"gpipe", 8, 16, 1, 21, 69},
        {"dapple", 8, 16, 1, 21, 69},
        {"interleaved", 8, 16, 2, 21, 117},
        {"interleaved", 8, 16, 4, 21, 213},
        {"hanayo", 8, 16, 1, 7, 31},
        {"hanayo", 8, 16, 2, 7, 55},
        {"hanayo", 8, 16, 4, 7, 103},
        {"gpipe", 32, 64, 1, 93, 285},
        {"dapple", 32, 64, 1, 93, 285},
        {"interleaved", 32, 64, 2, 0.1950, 1},
        {"interleaved", 32, 64, 4, 0.1080, 1},
        {"hanayo", 32, 64, 1, 0.2441, 1},
        {"hanayo", 32, 64, 2, 0.1390, 1},
        {"hanayo", 32, 64, 4, 0.0747, 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        nami_prediction p;
        nami_recipe r = oracle_recipe(row[i].name, row[i].p, row[i].m, row[i].chunks);
        simulate(&r, 1, 2, &p);
        if (row[i].under > 1)
            assert_true(p.bubble == row[i].over / row[i].under);
        else
            assert_true(fabs(p.bubble - row[i].over) <= 0.00005);
        nami_prediction_free(&p);
    }
}

/* Activations in flight, exactly. */
static void check_peak(const char *name, int p, int m, int c,
                       double (*promised)(int, int, int, int))
{
    nami_prediction x;
    nami_recipe r = oracle_recipe(name, p, m, c);
    simulate(&r, 1, 2, &x);
    for (int d = 0; d < p; d++) {
        assert_true(x.peak[d] == promised(p, m, c, d));
        assert_true(x.weights[d] == (r.placement == NAMI_PLACE_BIDIRECTIONAL ? 2 : 1));
    }
    nami_prediction_free(&x);
}

static double all(int p, int m, int c, int d)
{
    (void)p, (void)c, (void)d;
    return m;
}

static double depth(int p, int m, int c, int d)
{
    (void)c;
    return m < p - d ? m : p - d;
}

static double wave(int p, int m, int w, int d)
{
    return m == p ? (double)(2 * w * p - (p - 1 - d)) / (2 * w) : p;
}

static double full(int p, int m, int c, int d)
{
    (void)c, (void)d;
    return m < p ? m : p;
}

static double twice(int p, int m, int c, int d)
{
    (void)c, (void)d;
    return m < 2 * p - 1 ? m : 2 * p - 1;
}

static double one(int p, int m, int c, int d)
{
    (void)p, (void)m, (void)c, (void)d;
    return 1;
}

static double middle(int p, int m, int c, int d)
{
    (void)m, (void)c;
    return p / 2 + 1 + (d < p / 2 ? d : p - 1 - d);
}

/* Of the fullest position. */
static double most_held(const char *name, int p, int m)
{
    nami_prediction x;
    nami_recipe r = oracle_recipe(name, p, m, 1);
    double most = 0.0;
    simulate(&r, 1, 2, &x);
    for (int d = 0; d < p; d++)
        most = fmax(most, x.peak[d]);
    nami_prediction_free(&x);
    return most;
}

static void test_peaks_of_copies(void **state)
{
    (void)state;
    for (int p = 1; p <= 8; p++) {
        for (int m = 1; m <= 4 * p; m++) {
            check_peak("gems", p, m, 1, one);
            check_peak("terapipe", p, m, 3, all);
            if (p % 2 == 0 && m >= p)
                check_peak("chimera", p, m, 1, middle);
            if (p % 2 == 0 && m >= 2 * p)
                assert_true(most_held("chimera-doubling", p, m) == 2 * p);
            if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p)
                assert_true(most_held("dualpipe", p, m) == p + 1);
            if (m >= 2 * p)
                assert_true(most_held("dualpipev", p, m) == p + 0.5);
        }
    }
}

static void test_peaks(void **state)
{
    (void)state;
    for (int p = 1; p <= 8; p++) {
        for (int m = 1; m <= 3 * p; m++) {
            check_peak("gpipe", p, m, 1, all);
            check_peak("dapple", p, m, 1, depth);
            check_peak("zb-h1", p, m, 1, full);
            check_peak("zb-h2", p, m, 1, twice);
            if (m >= 2 * p - 1)
                check_peak("zb-v", p, m, 1, full);
            for (int w = 1; w <= 4; w++)
                check_peak("hanayo-zb", p, m, w, full);
            for (int w = 1; w <= 4 && (m == p || m >= 2 * p); w++)
                check_peak("hanayo", p, m, w, wave);
        }
        for (int v = 1; v <= 4; v++) {
            nami_prediction x;
            for (int groups = 1; groups <= 3; groups++) {
                nami_recipe r = oracle_recipe("interleaved", p, groups * p, v);
                simulate(&r, 1, 2, &x);
                assert_true(x.peak[0] ==
                            (groups == 1 ? p : (double)(p * v + p - 1) / v));
                nami_prediction_free(&x);
            }
        }
    }
}

static void test_messages(void **state)
{
    (void)state;
    for (int p = 1; p <= 6; p++) {
        for (int c = 1; c <= 3; c++) {
            int m = p + c;
            const struct {
                const char *name;
                int64_t each; /* per micro-batch and direction */
            } row[] = {{"gpipe", p - 1},
                       {"dapple", p - 1},
                       {"interleaved", p > 1 ? c * p - 1 : 0},
                       {"hanayo", 2 * c * (p - 1)},
                       {"hanayo-paper", 2 * c * (p - 1)},
                       {"hanayo-zb", 2 * c * (p - 1)},
                       {"zb-h1", p - 1},
                       {"zb-h2", p - 1},
                       {"gems", p - 1},
                       {"terapipe", c * (p - 1)}};
            for (int i = 0; i < 10; i++) {
                nami_recipe r = oracle_recipe(row[i].name, p, m, c);
                nami_prediction x;
                simulate(&r, 1, 2, &x);
                assert_int_equal(x.messages, 2 * m * row[i].each);
                nami_prediction_free(&x);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas), cmocka_unit_test(test_formulas_sampled),
        cmocka_unit_test(test_table),    cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_peaks_of_copies),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
