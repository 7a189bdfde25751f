/* SPDX-License-Identifier: MIT */
/* test_windows.c - lists without a flush: what each policy reads, when each stage updates, how stale it is. */
#include "nami_test.h"

#include "base/rng.h"
#include "sched/oracle.h"
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
    int ones[] = {1, 0}, depth[] = {0, 0};
    nami_recipe r = window("pipedream", 2, 3, 1);
    check_text(&r, "0F0 0SEND_F0 0RECV_B0 0F1 0SEND_F1 0B0 0REDUCE0 0UPDATE0v1 "
                   "0RECV_B1 0F2v1 0SEND_F2 0RECV_B2 0B1 0REDUCE1 0UPDATE1 0B2v1 "
                   "0REDUCE2 0UPDATE2v1\n"
                   "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1REDUCE0 1UPDATE0 1F1 1RECV_F2 "
                   "1B1 1SEND_B1 1REDUCE1 1UPDATE1 1F2 1B2 1SEND_B2 1REDUCE2 "
                   "1UPDATE2\n");
    r.stage_recompute = (nami_ints){.count = 2, .item = ones};
    r.depth = (nami_ints){.count = 2, .item = depth};
    r.microbatches = 1;
    check_text(&r, "0F0 0SEND_F0 0RECV_B0 0R0 0B0 0REDUCE0 0UPDATE0\n"
                   "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE0 1UPDATE0\n");
    r = window("wpipe", 1, 4, 2);
    check_text(&r, "0F0 0F1 1F0 1B0 1F1 1B1 1REDUCE0 1UPDATE0 0F2 0B0 0F3 0B1 0REDUCE0 "
                   "0UPDATE0v1 1F2 1B2 1F3 1B3 1REDUCE1 1UPDATE1 0B2 0B3 0REDUCE1 "
                   "0UPDATE1\n");
}

/* The steady state of a stage: all units have these delays. */
static void check_stage(const nami_schedule *s, int stage, int forward, int backward,
                        int versions)
{
    nami_staleness got;
    nami_schedule_staleness(s, stage, &got);
    const nami_spread *f = &got.forward[NAMI_WINDOW_STEADY],
                      *b = &got.backward[NAMI_WINDOW_STEADY];
    int all = 0;
    assert_true(f->units > 0 && b->units == f->units);
    assert_int_equal(f->least, forward);
    assert_int_equal(f->most, forward);
    assert_true(f->mean == forward);
    assert_int_equal(b->least, backward);
    assert_int_equal(b->most, backward);
    assert_int_equal(got.versions, versions);
    for (int i = 0; i < NAMI_WINDOW_PHASES; i++) {
        assert_true(got.forward[i].most <= forward);
        all += got.forward[i].units;
    }
    assert_int_equal(all, s->recipe.microbatches);
    assert_int_equal(nami_schedule_versions(s, 0, stage), versions);
}

/* The table of policies (docs/schedules.md): delay and versions of stage s of S in the steady state. */
static void test_table(void **state)
{
    (void)state;
    for (int S = 1; S <= 8; S++) {
        const struct {
            const char *schedule;
            int m, stages;
        } row[] = {{"pipedream", 1, S}, {"pipedream-vertical", 1, S},
                   {"pipemare", 1, S},  {"spectrain", 1, S},
                   {"xpipe", 1, S},     {"pipedream-2bw", S, S},
                   {"wpipe", S, 2 * S}, {"ashpipe", 1, S}};
        for (int i = 0; i < 8; i++) {
            nami_recipe r = window(row[i].schedule, S, 6 * S * row[i].m, row[i].m);
            nami_schedule s;
            assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
            assert_int_equal(s.place.stages, row[i].stages);
            for (int k = 0; k < row[i].stages; k++) {
                int behind = S - 1 - k, half = k < S;
                switch (r.weights) {
                case NAMI_WEIGHTS_STASH:
                    check_stage(&s, k, behind, behind, behind + 1);
                    break;
                case NAMI_WEIGHTS_VERTICAL:
                    check_stage(&s, k, S - 1, S - 1, S);
                    break;
                case NAMI_WEIGHTS_2BW:
                    check_stage(&s, k, 1, 1, 2);
                    break;
                case NAMI_WEIGHTS_GROUPED:
                    check_stage(&s, k, half, half, 1 + half);
                    break;
                default:
                    check_stage(&s, k, behind, 0, 1);
                }
            }
            nami_schedule_free(&s);
        }
    }
}

/* A stage's depth is its delay; two versions serve any depth below m. */
static void test_depth(void **state)
{
    (void)state;
    int depth[] = {5, 2, 2, 1};
    nami_recipe r = window("ashpipe", 4, 40, 1);
    nami_schedule s;
    r.depth = (nami_ints){.count = 4, .item = depth};
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    for (int k = 0; k < 4; k++)
        check_stage(&s, k, depth[k], depth[k], depth[k] + 1);
    nami_schedule_free(&s);
    r.weights = NAMI_WEIGHTS_2BW;
    r.per_update = 5;
    assert_fails(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "needs at least 6 of them, but has 5");
    r.per_update = 10;
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    for (int k = 0; k < 4; k++)
        check_stage(&s, k, 1, 1, 2);
    nami_schedule_free(&s);
}

/* Every policy on every order that windows admit: the lists are proven, or there is a reason. Two judges. */
static void test_all_pairs(void **state)
{
    (void)state;
    int proven = 0, refused = 0;
    for (int i = 0; i < 2 * 4 * 5 * 4 * 6; i++) {
        static const char *const base[] = {"dapple", "hanayo", "interleaved", "wpipe"};
        int k = i, chunks = 1 + k % 2, positions = 1 + k / 2 % 4, m = 1 + k / 8 % 5;
        nami_recipe r = window(base[k / 40 % 4], positions, 4 * m, m);
        r.weights = (nami_weights)(NAMI_WEIGHTS_STASH + k / 160);
        r.waves = chunks;
        nami_schedule bare, s = {0};
        nami_status status = nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &bare);
        if (status == NAMI_OK) {
            assert_ok(nami_schedule_validate(&bare));
            status = nami_schedule_lower(&bare, i % 3, &s);
        }
        if (status == NAMI_OK) {
            proven++;
            assert_ok(nami_schedule_validate(&s));
            assert_true(oracle_valid(&s));
        } else {
            refused++;
            assert_int_equal(status, NAMI_EPLAN);
            assert_true(strstr(nami_fail_text(), nami_weights_name(r.weights)) != NULL);
            nami_fail_clear();
        }
        nami_schedule_free(&bare);
        nami_schedule_free(&s);
    }
    printf("%d proven, %d refused\n", proven, refused);
    assert_true(proven > 600 && refused > 20);
}

/* The asynchronous wave: chunks near the end of the snake need few versions, chunk 0 most. One wave is as stale as a
 * linear pipeline of as many stages; more waves only spread the delays of the chunks between. */
static void test_wave(void **state)
{
    (void)state;
    for (int positions = 1; positions <= 8; positions++) {
        for (int waves = 1; waves <= 2; waves++) {
            nami_recipe r = window("hanayo", positions, 12 * positions, 1);
            nami_schedule s;
            r.waves = waves;
            r.weights = NAMI_WEIGHTS_STASH;
            assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
            const int last = s.place.stages - 1;
            for (int k = 0; k <= last; k++) {
                if (waves == 1)
                    check_stage(&s, k, last - k, last - k, last - k + 1);
                assert_true(k == last || nami_schedule_versions(&s, 0, k) >=
                                             nami_schedule_versions(&s, 0, k + 1));
            }
            check_stage(&s, 0, 2 * positions - 1, 2 * positions - 1, 2 * positions);
            check_stage(&s, last, 0, 0, 1);
            nami_schedule_free(&s);
            r.weights = NAMI_WEIGHTS_2BW;
            r.per_update = 2 * positions;
            assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
            for (int k = 0; k < s.place.stages; k++)
                check_stage(&s, k, 1, 1, 2);
            nami_schedule_free(&s);
            r.per_update = positions;
            if (positions < 2)
                continue;
            assert_fails(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                         "weights = 2bw: it is of update 2 (");
        }
    }
}

/* An evaluation reads what the drain left, whatever trains. */
static void test_evaluate(void **state)
{
    (void)state;
    for (int i = nami_presets_with_flush(); i < nami_presets(); i++) {
        int ones[] = {1, 1, 0}, depth[] = {4, 1, 1};
        nami_recipe r =
            window(nami_preset_at(i)->name, 3, 7, 5); /* 5 of 7: no window */
        nami_schedule s;
        if (r.placement == NAMI_PLACE_LINEAR)
            r.depth = (nami_ints){.count = 3, .item = depth};
        if (r.placement == NAMI_PLACE_LINEAR)
            r.stage_recompute = (nami_ints){.count = 3, .item = ones};
        assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_EVALUATE, &s));
        assert_true(oracle_valid(&s));
        for (int k = 0; k < s.place.stages; k++)
            assert_int_equal(nami_schedule_versions(&s, 0, k), 1);
        nami_schedule_free(&s);
    }
}

/* More versions than an action can name are refused. */
static void test_many_versions(void **state)
{
    (void)state;
    nami_recipe r = window("pipedream", 257, 600, 1);
    nami_schedule s;
    assert_fails(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "stage 0 keeps 257 versions of its weights; at most 256 fit");
    r.positions = 256;
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    check_stage(&s, 0, 255, 255, 256);
    nami_schedule_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_lists),   cmocka_unit_test(test_table),
        cmocka_unit_test(test_depth),         cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_wave),          cmocka_unit_test(test_evaluate),
        cmocka_unit_test(test_many_versions),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
