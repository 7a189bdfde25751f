/* SPDX-License-Identifier: MIT */
/* test_options.c - section [pipeline] of the deck becomes a recipe, or is refused with its arithmetic. */
#include "nami_test.h"

#include "sched/options.h"

/* Options from "key=value key=value"; the rest at its default. */
static void set(nami_pipeline_options *o, const char *words)
{
    char copy[400];
    memset(o, 0, sizeof *o);
    assert_ok(nami_option_defaults(&nami_pipeline_table, o));
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        nami_test_set(&nami_pipeline_table, o, word, equals + 1);
    }
}

static void accept(const char *words, int ranks, int positions, int microbatches,
                   int stages)
{
    nami_pipeline_options o;
    nami_recipe r;
    nami_schedule s;
    set(&o, words);
    assert_ok(nami_recipe_from_options(&o, ranks, &r));
    assert_int_equal(r.positions, positions);
    assert_int_equal(r.microbatches, microbatches);
    assert_int_equal(nami_recipe_stages(&r), stages);
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    nami_schedule_free(&s);
    nami_option_release(&nami_pipeline_table, &o);
}

static void refuse(const char *words, int ranks, nami_status status, const char *part)
{
    nami_pipeline_options o;
    nami_recipe r;
    set(&o, words);
    assert_fails(nami_recipe_from_options(&o, ranks, &r), status, part);
    nami_option_release(&nami_pipeline_table, &o);
}

static void test_recipes(void **state)
{
    (void)state;
    accept("microbatches=4", 4, 4, 4, 8);
    accept("schedule=hanayo waves=2 microbatches=8 replicas=2", 4, 2, 4, 8);
    accept("schedule=interleaved chunks=3 microbatches=5", 2, 2, 5, 6);
    accept("schedule=dapple waves=2 chunks=4 microbatches=3", 3, 3, 3, 3);
    accept("schedule=gpipe placement=wave waves=2 microbatches=3", 2, 2, 3, 8);
    accept("schedule=dapple positions=3 cuts=0,4,9 microbatches=3", 3, 3, 3, 3);
    accept("schedule=hanayo order=one-by-one microbatches=3 weights=flush "
           "split=microbatch",
           2, 2, 3, 4);
    accept("schedule=terapipe slices=4 microbatches=3", 2, 2, 3, 2);
    accept("schedule=hanayo-zb waves=2 microbatches=3", 2, 2, 3, 8);
    accept("schedule=gems microbatches=3", 2, 2, 3, 2);
    accept("placement=bidirectional order=gems microbatches=3", 2, 2, 3, 2);
}

/* Without a flush the lists are a window of updates; ranks are counted by position. */
static void check_window(const char *words, int ranks, int units, int per_update,
                         const char *replicas)
{
    nami_pipeline_options o;
    nami_recipe r;
    nami_schedule s;
    nami_text text = {0};
    set(&o, words);
    assert_ok(nami_recipe_from_options(&o, ranks, &r));
    assert_int_equal(r.microbatches, units);
    assert_int_equal(nami_recipe_group(&r), per_update);
    assert_int_equal(nami_recipe_updates(&r), units / per_update);
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    assert_int_equal(nami_place_ranks(&s.place), ranks);
    for (int p = 0; p < s.place.positions; p++) {
        int rank = nami_place_first(&s.place, p);
        nami_text_add(&text, "%s%d", p > 0 ? "-" : "", s.place.replicas[p]);
        assert_int_equal(nami_place_first(&s.place, p + 1), rank + s.place.replicas[p]);
    }
    assert_string_equal(nami_text_get(&text), replicas);
    nami_text_free(&text);
    nami_schedule_free(&s);
    nami_option_release(&nami_pipeline_table, &o);
}

static void test_windows(void **state)
{
    (void)state;
    check_window("schedule=pipedream window=7", 3, 7, 1, "1-1-1");
    check_window("schedule=pipedream window=7 microbatches=4 replicas=2", 6, 14, 2,
                 "2-2-2");
    check_window("schedule=pipedream window=7 microbatches=4 stage_replicas=2-2", 4, 14,
                 2, "2-2");
    check_window("schedule=ashpipe window=9 microbatches=2 stage_replicas=4-3-1", 8, 18,
                 2, "4-3-1");
    check_window("schedule=ashpipe window=9 replicas=2", 4, 9, 1, "2-2");
    check_window("schedule=ashpipe window=9 depth=3,1,1 stage_recompute=1,1,0", 3, 9, 1,
                 "1-1-1");
    check_window("schedule=hanayo weights=2bw microbatches=8 window=3", 4, 24, 8,
                 "1-1-1-1");
    check_window("schedule=wpipe microbatches=8 window=3", 4, 24, 8, "1-1-1-1");
    check_window("schedule=interleaved weights=stash microbatches=2 window=9", 2, 18, 2,
                 "1-1");
    check_window("schedule=hanayo microbatches=6 stage_replicas=3-1 split=sample", 4, 6,
                 6, "3-1");
    check_window("schedule=dapple microbatches=6 depth=3,3,0 stage_recompute=1,0,0", 3,
                 6, 6, "1-1-1");
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("schedule=dapple slices=2", 2, NAMI_EPLAN, "terapipe does");
    refuse("schedule=file:x slices=2", 2, NAMI_EINPUT, "remove pipeline.slices");
    refuse("schedule=chimera microbatches=3", 3, NAMI_EPLAN,
           "even number of positions");
    refuse("schedule=dualpipe microbatches=8 replicas=2", 8, NAMI_EPLAN,
           "2P = 2 x 4 = 8 on, not 4");
    refuse("replicas=3", 4, NAMI_EPLAN, "4 = 3 x 1 + 1");
    refuse("positions=3 replicas=2", 4, NAMI_EPLAN,
           "3 positions x 2 replicas need 6 ranks, but there are 4");
    refuse(
        "positions=2", 4, NAMI_EPLAN,
        "2 positions x 1 replica need 2 ranks, but there are 4 (pipeline.replicas = 2 "
        "takes them all)");
    refuse("positions=2", 1, NAMI_EPLAN, "need 2 ranks, but there is 1");
    refuse("microbatches=7 replicas=2", 4, NAMI_EPLAN, "7 = 2 x 3 + 1");
    refuse("microbatches=2 replicas=4", 4, NAMI_EPLAN, "2 = 4 x 0 + 2");
    refuse("split=sample placement=bidirectional order=gems", 2, NAMI_EPLAN,
           "two copies of the model");
    refuse("schedule=ashpipe stage_replicas=4-3-2", 8, NAMI_EPLAN,
           "4 + 3 + 2 = 9 ranks, but there are 8");
    refuse("schedule=ashpipe stage_replicas=4-3-1 positions=2", 8, NAMI_EPLAN,
           "names 3 positions, but pipeline.positions = 2");
    refuse("schedule=ashpipe stage_replicas=4-3-1 replicas=2", 8, NAMI_EINPUT,
           "remove pipeline.replicas");
    refuse("schedule=ashpipe stage_replicas=4-0-4", 8, NAMI_EINPUT, "at least 1");
    refuse("schedule=pipedream stage_replicas=4-3-1", 8, NAMI_EPLAN,
           "split = sample takes any");
    refuse("schedule=pipedream stage_replicas=2-2 microbatches=3", 4, NAMI_EPLAN,
           "3 = 2 x 1 + 1");
    refuse("schedule=pipedream window=500000000 microbatches=4", 4, NAMI_EPLAN,
           "500000000 steps of 4");
    refuse("schedule=pipedream depth=2,1", 3, NAMI_EPLAN, "depth names 2 stages");
    refuse("schedule=pipedream depth=1,2,0", 3, NAMI_EPLAN,
           "stage 1 runs 2 units ahead, stage 0 before it only 1");
    refuse("schedule=hanayo depth=1,0", 2, NAMI_EPLAN, "goes with order \"1f1b\"");
    refuse("schedule=pipedream stage_recompute=1,0,1", 3, NAMI_EPLAN,
           "the last stage runs its backward right behind");
    refuse("schedule=pipedream stage_recompute=1,0", 3, NAMI_EPLAN, "names 2 stages");
    refuse("schedule=pipedream stage_recompute=2,0", 2, NAMI_EINPUT, "stage 0 has 2");
    refuse("schedule=pipedream stage_recompute=1,0 recompute=yes", 2, NAMI_EPLAN,
           "already runs every block again");
    refuse("schedule=gpipe weights=stash", 2, NAMI_EPLAN, "is made for a flush");
    refuse("schedule=gems weights=stash", 2, NAMI_EPLAN, "two copies of the model");
    refuse("schedule=terapipe slices=2 weights=stash", 2, NAMI_EPLAN, "token slices");
    refuse("schedule=pipedream weights=2bw microbatches=3", 4, NAMI_EPLAN,
           "stage 0 has 4 micro-batches under way, so an update needs at least 4 of "
           "them, but has 3");
    refuse("schedule=pipedream weights=grouped", 3, NAMI_EPLAN, "cannot be halved");
    refuse("schedule=hanoya", 2, NAMI_EINPUT, "did you mean \"hanayo\"");
    refuse("placement=bidirectional", 2, NAMI_EPLAN, "does not go with placement");
    refuse("schedule=dapple placement=wave", 2, NAMI_EPLAN,
           "\"1f1b\" does not go with placement \"wave\"");
    refuse("order=sideways", 2, NAMI_EINPUT, "unknown order");
    refuse("schedule=file:x order=wave", 2, NAMI_EINPUT, "remove pipeline.placement");
    refuse("schedule=dapple cuts=0,4", 3, NAMI_EPLAN,
           "names 2 stages, but the layout has 3");
    refuse("schedule=dapple cuts=1,4", 2, NAMI_EINPUT, "starts with block 1");
    refuse("schedule=dapple cuts=0,4,4", 3, NAMI_EINPUT, "must increase");
}

/* Every row explains itself and has a default that parses. */
static void test_table(void **state)
{
    (void)state;
    for (int i = 0; i < nami_pipeline_table.rows; i++) {
        const nami_option *o = &nami_pipeline_table.row[i];
        assert_string_equal(o->section, "pipeline");
        assert_true(o->help != NULL && o->help[strlen(o->help) - 1] == '.');
        assert_non_null(o->fallback);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
