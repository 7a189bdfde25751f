/* SPDX-License-Identifier: MIT */
/* test_simulate.c - times of arbitrary lists against the longest path of an independent graph; pictures. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "sched/oracle.h"
#include "sim/sim.h"

static uint64_t key, counter;

static int draw(int below)
{
    return (int)(nami_uniform(key, counter++) * below);
}

/* Lists of a random order: any action whose data is there may come next, on any placement. */
static void random_lists(nami_schedule *s, int positions, int stages, int units,
                         bool split)
{
    *s = (nami_schedule){0};
    s->recipe = (nami_recipe){.name = "random",
                              .placement = NAMI_PLACE_FREE,
                              .order = "file",
                              .positions = positions,
                              .microbatches = units,
                              .waves = 1,
                              .chunks = 1,
                              .slices = 1};
    s->place = (nami_place){.positions = positions, .stages = stages, .copies = 1};
    s->place.position = nami_alloc(NAMI_MEM_OTHER, (size_t)stages * sizeof(int));
    s->place.replicas = nami_calloc(NAMI_MEM_OTHER, (size_t)positions, sizeof(int));
    s->list = nami_calloc(NAMI_MEM_OTHER, (size_t)positions, sizeof *s->list);
    for (int i = 0; i < stages; i++)
        s->place.position[i] = i < positions ? i : draw(positions);
    int *step = calloc((size_t)units, sizeof *step),
        *owed = calloc((size_t)(units * stages), sizeof *owed);
    for (int64_t left = (int64_t)units * stages * (split ? 3 : 2); left > 0;) {
        int u = draw(units), stage = draw(stages);
        nami_action a = nami_action_of(NAMI_F, step[u], u);
        if (split && owed[u * stages + stage] == 1 && draw(2) == 0) {
            a = nami_action_of(NAMI_BW, stage, u);
            owed[u * stages + stage] = 2;
        } else if (step[u] < stages) {
            step[u]++;
        } else if (step[u] < 2 * stages) {
            a = nami_action_of(split ? NAMI_BI : NAMI_B, 2 * stages - 1 - step[u]++, u);
            owed[u * stages + a.stage] = split;
        } else {
            continue;
        }
        nami_list_add(&s->list[s->place.position[a.stage]], a);
        left--;
    }
    free(step);
    free(owed);
}

/* Simulate with costs of each stage and compare with the longest path. */
static void compare(const nami_schedule *s, const int64_t *f, const int64_t *bi,
                    const int64_t *bw, int64_t latency)
{
    double cost[3][64];
    nami_prediction p;
    const oracle_costs whole = {.f = f, .bi = bi, .bw = bw, .latency = latency};
    for (int i = 0; i < s->place.stages; i++) {
        cost[0][i] = (double)f[i];
        cost[1][i] = (double)bi[i];
        cost[2][i] = (double)bw[i];
    }
    const nami_cost c = {.stage_f = cost[0],
                         .stage_bi = cost[1],
                         .stage_bw = cost[2],
                         .latency = (double)latency};
    assert_ok(nami_simulate(s, &c, true, &p));
    assert_true(p.makespan == (double)oracle_makespan(s, &whole));
    assert_true(fabs(nami_timeline_bubble(&p.timeline) - p.bubble) < 1e-12);
    double steady;
    assert_true(fabs(nami_timeline_steady(&p.timeline, &steady) - p.steady_bubble) <
                1e-12);
    assert_true(fabs(steady - p.steady) < 1e-9);
    for (int i = 0; i < s->place.positions; i++)
        assert_true(p.idle[i] + p.busy[i] == p.makespan);
    nami_prediction_free(&p);
}

static void test_random_lists(void **state)
{
    (void)state;
    key = nami_test_seed(1234);
    int problems = getenv("NAMI_TEST_LONG") ? 5000 : 400;
    for (int i = 0; i < problems; i++) {
        int positions = 1 + draw(6), stages = positions + draw(10), units = 1 + draw(7);
        int64_t f[64], bi[64], bw[64], latency = i % 3 == 0 ? 0 : draw(9);
        nami_schedule s, full;
        random_lists(&s, positions, stages, units, i % 2 == 1);
        for (int k = 0; k < stages; k++) {
            f[k] = 1 + draw(20);
            bi[k] = 1 + draw(20);
            bw[k] = 1 + draw(20);
        }
        assert_ok(nami_schedule_validate(&s));
        compare(&s, f, bi, bw, latency);
        assert_ok(nami_schedule_lower(&s, draw(4), &full));
        assert_ok(nami_schedule_validate(&full));
        compare(&full, f, bi, bw, latency);
        nami_schedule_free(&s);
        nami_schedule_free(&full);
    }
}

static void predict(const char *name, int p, int m, int c, const nami_cost *cost,
                    nami_prediction *out)
{
    nami_schedule s;
    nami_recipe r = oracle_recipe(name, p, m, c);
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    assert_ok(nami_simulate(&s, cost, true, out));
    nami_schedule_free(&s);
}

/* Idle time that grows with latency: known values at P = 8, M = 16, T_C = 0.1. */
static void test_latency(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int waves;
        double idle;
    } row[] = {{"hanayo", 1, 18.2},   {"hanayo", 2, 14.0},    {"hanayo", 4, 16.1},
               {"hanayo-zb", 1, 7.7}, {"hanayo-zb", 2, 8.75}, {"hanayo-zb", 4, 13.475},
               {"zb-v", 1, 6.8}};
    const nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1, .latency = 0.1};
    for (int i = 0; i < 7; i++) {
        nami_prediction p;
        predict(row[i].name, 8, 16, row[i].waves, &cost, &p);
        assert_true(fabs(p.makespan - 48.0 - row[i].idle) < 1e-9);
        nami_prediction_free(&p);
    }
    /* bytes over bandwidth count like latency */
    double bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = 50.0;
    const nami_cost same = {
        .tf = 1, .tbi = 1, .tbw = 1, .bytes = bytes, .bandwidth = 500.0};
    nami_prediction p;
    predict("hanayo", 8, 16, 1, &same, &p);
    assert_true(fabs(p.makespan - 66.2) < 1e-9);
    nami_prediction_free(&p);
}

/* One position, one micro-batch: all by hand. */
static void test_by_hand(void **state)
{
    (void)state;
    nami_cost cost = {.tf = 3, .tbi = 4, .tbw = 5, .update = 2, .reduce = 7};
    nami_prediction p;
    predict("dapple", 1, 1, 1, &cost, &p);
    assert_true(p.makespan == 3 + 4 + 5 + 7 + 2);
    assert_true(p.busy[0] == 14 && p.idle[0] == 7);
    assert_true(p.bubble == 7.0 / 21.0);
    nami_prediction_free(&p);
    /* two stages on one position: the REDUCE of the later stage hides behind the backward of the first */
    cost = (nami_cost){.tf = 2, .tbi = 2, .tbw = 2, .reduce = 2};
    predict("hanayo", 1, 1, 1, &cost, &p);
    assert_true(p.makespan == 1 + 1 + 2 + 2 + 1);
    nami_prediction_free(&p);
}

static void test_recompute(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("gpipe", 3, 4, 1);
    nami_schedule s;
    nami_prediction p;
    const nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1};
    r.recompute = true;
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    assert_ok(nami_simulate(&s, &cost, false, &p));
    assert_true(p.makespan == (4 + 2) * 4);
    nami_prediction_free(&p);
    nami_schedule_free(&s);
}

static void test_span_bubble(void **state)
{
    (void)state;
    const nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1};
    nami_prediction p;
    predict("dapple", 3, 3, 1, &cost, &p);
    assert_true(p.makespan == 15);
    assert_true(p.span_bubble == 6.0 / 15.0); /* position 0 runs from 0 to 15 */
    assert_true(p.bubble == 6.0 / 15.0);
    nami_prediction_free(&p);
}

static void test_stuck(void **state)
{
    (void)state;
    nami_schedule s;
    const nami_cost cost = {.tf = 1};
    nami_prediction p;
    assert_ok(nami_schedule_read("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n", "test", &s));
    assert_fails(nami_simulate(&s, &cost, true, &p), NAMI_EPLAN, "waits for ever");
    nami_prediction_free(&p);
    nami_schedule_free(&s);
}

static int occurrences(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        count++;
    return count;
}

/* The picture has a box for each action, the numbers, rows, axis, legend, and balanced elements. */
static void test_svg(void **state)
{
    (void)state;
    const nami_cost cost = {
        .tf = 1, .tbi = 1, .tbw = 1, .latency = 0.25, .reduce = 1, .update = 1};
    nami_prediction p;
    nami_text svg = {0};
    predict("hanayo", 4, 4, 2, &cost, &p);
    nami_timeline_svg(&p.timeline, "four <positions> & \"waves\"", "s", &svg);
    const char *text = nami_text_get(&svg);
    assert_int_equal(occurrences(text, "class=\"f"),
                     16 * 4 + 1 + 4); /* boxes, legend, shades */
    assert_int_equal(occurrences(text, "class=\"b"), 16 * 4 + 1);
    assert_int_equal(occurrences(text, "class=\"c\""), 2 * 12 * 4 + 1);
    assert_int_equal(occurrences(text, "class=\"u\""), 16 + 1);
    assert_int_equal(occurrences(text, "class=\"s\""), 16 + 1);
    for (int i = 0; i < 4; i++) {
        char label[32];
        snprintf(label, sizeof label, ">position %d<", i);
        assert_int_equal(occurrences(text, label), 1);
    }
    assert_int_equal(occurrences(text, "&lt;positions&gt; &amp;"), 1);
    assert_non_null(strstr(text, "bubble "));
    assert_int_equal(occurrences(text, "<text"), occurrences(text, "</text>"));
    assert_int_equal(occurrences(text, "<title>"),
                     occurrences(text, "</title></rect>"));
    assert_int_equal(occurrences(text, "<svg"), 1);
    assert_non_null(strstr(text, "</svg>\n"));
    nami_text_free(&svg);
    nami_prediction_free(&p);
}

/* Big timelines stay small files and say what they leave out. */
static void test_svg_big(void **state)
{
    (void)state;
    const nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1};
    nami_prediction p;
    nami_text svg = {0};
    predict("hanayo", 100, 128, 1, &cost, &p);
    nami_timeline_svg(&p.timeline, "big", "", &svg);
    assert_true(svg.length < 4u << 20);
    assert_non_null(strstr(nami_text_get(&svg), "heights are shares of time"));
    assert_non_null(strstr(nami_text_get(&svg), "positions 32 to 67 are left out"));
    nami_text_free(&svg);
    nami_prediction_free(&p);
}

/* Measured timelines: rows without boxes, times that do not start at 0, seconds shown as ms or us. */
static void test_svg_measured(void **state)
{
    (void)state;
    nami_span boxes[] = {
        {.action = {.kind = NAMI_F}, .start = 100.0, .end = 100.0012},
        {.action = {.kind = NAMI_B}, .start = 100.0015, .end = 100.004}};
    nami_span *rows[] = {boxes, NULL};
    int64_t count[] = {2, 0};
    const nami_timeline t = {.positions = 2, .span = rows, .count = count};
    nami_text svg = {0};
    nami_timeline_svg(&t, "measured", "s", &svg);
    assert_non_null(strstr(nami_text_get(&svg), "makespan 4 ms"));
    assert_non_null(strstr(nami_text_get(&svg), "idle 100.0 %"));
    assert_true(fabs(nami_timeline_bubble(&t) - (1.0 - 0.0037 / 0.008)) < 1e-6);
    nami_text_free(&svg);
    count[0] = 0;
    nami_timeline_svg(&t, "empty", "s", &svg);
    assert_non_null(strstr(nami_text_get(&svg), "</svg>"));
    assert_true(nami_timeline_bubble(&t) == 0.0);
    nami_text_free(&svg);
}

/* Pairs kept apart are lists without pairs; together they take no less time. */
static void test_apart(void **state)
{
    (void)state;
    static const char *const names[] = {"dualpipe", "dualpipev", "dapple"};
    for (int i = 0; i < 3; i++)
        for (int positions = 2; positions <= 8; positions += 2) {
            nami_recipe r = {.positions = positions,
                             .microbatches = 2 * positions,
                             .waves = 1,
                             .chunks = 1,
                             .slices = 1};
            nami_schedule s;
            nami_prediction together, apart, without;
            nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1, .latency = 0.125};
            int pairs = 0;
            assert_ok(nami_recipe_preset(&r, names[i]));
            assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
            assert_ok(nami_simulate(&s, &cost, false, &together));
            cost.apart = true;
            assert_ok(nami_simulate(&s, &cost, false, &apart));
            cost.apart = false;
            for (int p = 0; p < positions; p++)
                for (int64_t k = 0; k < s.list[p].count; k++) {
                    pairs += s.list[p].item[k].flags != 0;
                    s.list[p].item[k].flags = 0;
                }
            assert_ok(nami_simulate(&s, &cost, false, &without));
            assert_true(apart.makespan == without.makespan);
            assert_true(apart.critical.messages == without.critical.messages);
            assert_true(apart.makespan <= together.makespan);
            assert_int_equal(pairs > 0, i < 2);
            assert_int_equal(apart.makespan < together.makespan, i < 2);
            nami_prediction_free(&without);
            nami_prediction_free(&apart);
            nami_prediction_free(&together);
            nami_schedule_free(&s);
        }
}

static void test_text_and_trace(void **state)
{
    (void)state;
    const nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1};
    nami_prediction p;
    nami_text text = {0};
    predict("dapple", 2, 2, 1, &cost, &p); /* makespan 9: one letter a time unit */
    nami_timeline_text(&p.timeline, 14 + 18, &text);
    assert_non_null(strstr(nami_text_get(&text), "position   0  0011....aaaa..bbbb\n"));
    assert_non_null(strstr(nami_text_get(&text), "position   1  ..00aaaa11bbbb....\n"));
    nami_text_free(&text);
    nami_timeline_trace(&p.timeline, &text);
    assert_int_equal(occurrences(nami_text_get(&text), "\"ph\":\"X\""), 8 + 4);
    assert_non_null(strstr(nami_text_get(&text),
                           "{\"name\":\"1B1\",\"cat\":\"B\",\"ph\":\"X\",\"pid\":1,"
                           "\"tid\":0,\"ts\":5000000.000,\"dur\":2000000.000,"));
    nami_text_free(&text);
    nami_prediction_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lists),
        cmocka_unit_test(test_latency),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_span_bubble),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_svg),
        cmocka_unit_test(test_svg_big),
        cmocka_unit_test(test_svg_measured),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_text_and_trace),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
