/* SPDX-License-Identifier: MIT */
/* test_orders.c - every order of every size gives right lists, bare and lowered, by two independent judges. */
#include "nami_test.h"

#include "base/rng.h"
#include "sched/oracle.h"

static void copy_recipe(nami_recipe *r, nami_placement_kind placement,
                        const char *order)
{
    r->placement = placement;
    r->order = order;
}

/* Generate, lower, judge; `heavy` asks the slow judge too. */
static void check_recipe(const nami_recipe *r, nami_purpose purpose, int ahead,
                         bool heavy)
{
    nami_schedule bare, full;
    assert_ok(nami_schedule_generate(r, purpose, &bare));
    assert_ok(nami_schedule_validate(&bare));
    assert_ok(nami_schedule_lower(&bare, ahead, &full));
    assert_ok(nami_schedule_validate(&full));
    if (heavy) {
        assert_true(oracle_valid(&bare));
        assert_true(oracle_valid(&full));
    }
    nami_schedule_free(&bare);
    nami_schedule_free(&full);
}

static void check_size(int positions, int microbatches, int chunks, bool heavy)
{
    for (int i = 0; i < nami_presets(); i++) {
        nami_recipe r =
            oracle_recipe(nami_preset_at(i)->name, positions, microbatches, chunks);
        if ((chunks > 1 && !oracle_chunked(&r)) || !oracle_admits(&r))
            continue;
        check_recipe(&r, NAMI_PURPOSE_TRAIN, (positions + microbatches) % 4, heavy);
        check_recipe(&r, NAMI_PURPOSE_EVALUATE, 1, heavy);
    }
}

static void test_all_small(void **state)
{
    (void)state;
    for (int p = 1; p <= 8; p++) {
        for (int m = 1; m <= 3 * p; m++) {
            for (int c = 1; c <= 4; c++)
                check_size(p, m, c, p <= 5);
        }
    }
}

static void test_sampled(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(20261130);
    int samples = getenv("NAMI_TEST_LONG") ? 400 : 25;
    for (int i = 0; i < samples; i++) {
        int p = 9 + (int)(24 * nami_uniform(key, 3 * (uint64_t)i));
        int m = 1 + (int)(3 * p * nami_uniform(key, 3 * (uint64_t)i + 1));
        int c = 1 + (int)(4 * nami_uniform(key, 3 * (uint64_t)i + 2));
        check_size(p, m, c, false);
    }
}

/* Every pair of an order and a placement that it admits, named by a preset or not. */
static void test_all_pairs(void **state)
{
    (void)state;
    for (int i = 0; i < nami_orders(); i++) {
        for (int kind = NAMI_PLACE_LINEAR; kind <= NAMI_PLACE_FREE; kind++) {
            const nami_order *order = nami_order_at(i);
            nami_recipe r = oracle_recipe("gpipe", 4, 8, 2);
            copy_recipe(&r, (nami_placement_kind)kind, order->name);
            if (order == &nami_order_zb_v || order == &nami_order_dualpipev)
                r.waves = 1;
            if (order->placements & NAMI_ON(kind)) {
                check_recipe(&r, NAMI_PURPOSE_TRAIN, 1, true);
                check_recipe(&r, NAMI_PURPOSE_EVALUATE, 1, true);
            } else {
                nami_schedule s;
                assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s),
                             NAMI_EPLAN, "does not go with placement");
                nami_schedule_free(&s);
            }
        }
    }
}

/* Each micro-batch a stage and copy adds gradients of, K times; -1 when one comes before its predecessor. */
static int ascending(const nami_schedule *s, int copy, int stage)
{
    const nami_list *l = &s->list[nami_place_of(&s->place, copy, stage)];
    int last = 0, count = 0;
    for (int64_t k = 0; k < l->count; k++) {
        nami_action a = l->item[k];
        if (a.stage != stage || a.copy != copy ||
            !nami_semantics_of(a.kind)->adds_gradient)
            continue;
        if (a.unit < last)
            return -1;
        last = a.unit;
        count++;
    }
    return count;
}

/* Backwards of a stage ascend in every schedule, so that gradients add up in one order. */
static void test_backwards_ascend(void **state)
{
    (void)state;
    for (int i = 0; i < nami_presets(); i++) {
        nami_recipe r = oracle_smallest(nami_preset_at(i)->name, 5, 13, 2);
        nami_schedule s;
        assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
        for (int stage = 0; stage < s.place.stages; stage++) {
            int all = 0;
            for (int c = 0; c < s.place.copies; c++) {
                int count = ascending(&s, c, stage);
                assert_true(count > 0);
                all += count;
            }
            assert_int_equal(all, r.microbatches * r.slices);
        }
        nami_schedule_free(&s);
    }
}

static void check_text(const char *name, int p, int m, int c, const char *expected)
{
    nami_recipe r = oracle_recipe(name, p, m, c);
    nami_schedule s;
    nami_text text = {0};
    assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
    nami_schedule_print(&s, &text);
    assert_string_equal(nami_text_get(&text), expected);
    nami_text_free(&text);
    nami_schedule_free(&s);
}

/* Lists written down by hand from the papers' figures. */
static void test_known_lists(void **state)
{
    (void)state;
    check_text("gpipe", 2, 2, 1, "0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n");
    check_text("dapple", 3, 4, 1,
               "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
               "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
               "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n");
    check_text("interleaved", 2, 2, 2,
               "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
               "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
    check_text("hanayo", 2, 2, 1,
               "0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1\n1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1\n");
    check_text("gems", 2, 3, 1,
               "0F0 0B0 1F1@1 1B1@1 0F2 0B2\n1F0 1B0 0F1@1 0B1@1 1F2 1B2\n");
    check_text("chimera", 2, 2, 1, "0F0 1F1@1 1B1@1 0B0\n0F1@1 1F0 1B0 0B1@1\n");
    check_text("zb-h1", 2, 3, 1,
               "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
               "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
    check_text("terapipe", 2, 1, 2, "0F0 0F0/1 0B0/1 0B0\n1F0 1F0/1 1B0/1 1B0\n");
    check_text("hanayo-zb", 2, 2, 1,
               "0F0 0F1 3F0 3I0 3F1 3I1 0I0 3W0 0I1 3W1 0W0 0W1\n"
               "1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 1W0 2W1 1W1\n");
    check_text("hanayo", 1, 2, 2,
               "0F0 1F0 2F0 3F0 3B0 0F1 2B0 1F1 1B0 2F1 0B0 3F1 3B1 2B1 1B1 0B1\n");
}

static void test_placements(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int chunks, position[8];
    } expected[] = {
        {"interleaved", 2, {0, 1, 0, 1}},
        {"hanayo", 2, {0, 1, 1, 0, 0, 1, 1, 0}},
        {"dapple", 1, {0, 1}},
    };
    for (int i = 0; i < 3; i++) {
        nami_recipe r = oracle_recipe(expected[i].name, 2, 1, expected[i].chunks);
        nami_place place;
        assert_ok(nami_place_make(&r, &place));
        assert_int_equal(place.stages, nami_recipe_stages(&r));
        for (int s = 0; s < place.stages; s++)
            assert_int_equal(nami_place_of(&place, 0, s), expected[i].position[s]);
        nami_place_free(&place);
    }
    nami_recipe both = {.placement = NAMI_PLACE_BIDIRECTIONAL, .positions = 3};
    nami_place place;
    assert_ok(nami_place_make(&both, &place));
    assert_int_equal(place.copies, 2);
    for (int s = 0; s < 3; s++) {
        assert_int_equal(nami_place_of(&place, 0, s), s);
        assert_int_equal(nami_place_of(&place, 1, s), 2 - s);
    }
    nami_place_free(&place);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("hanayo", 2, 1, 1);
    nami_schedule s;
    assert_fails(nami_recipe_preset(&r, "hanayu"), NAMI_EINPUT,
                 "did you mean \"hanayo\"");
    assert_fails(nami_recipe_preset(&r, "quite-another"), NAMI_EINPUT,
                 "known are gpipe");
    r.microbatches = 0;
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EINPUT,
                 "microbatches = 0");
    r = oracle_recipe("hanayo", 20000, 1, 2);
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "80000 stages");
    r = oracle_recipe("hanayo", INT32_MAX, 1, INT32_MAX);
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EINPUT,
                 "positions");
    r = oracle_recipe("hanayo", 4096, 500000, 1);
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "8192000000 actions");
    r = oracle_recipe("hanayo", 2, 1, 1);
    r.order = "zigzag";
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EINPUT,
                 "unknown order");
    r = oracle_recipe("hanayo", 2, 1, 1);
    r.weights = NAMI_WEIGHTS_STASH;
    r.per_update = 0;
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "how many micro-batches make an update is not said");
    r.microbatches = 7;
    r.per_update = 3;
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "7 = 2 x 3 + 1");
}

static void refuse(const char *name, int positions, int microbatches, int waves,
                   const char *part)
{
    nami_recipe r = oracle_recipe(name, positions, microbatches, waves);
    nami_schedule s;
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN, part);
    nami_schedule_free(&s);
}

/* Real limits of orders, with the arithmetic. */
static void test_limits(void **state)
{
    (void)state;
    refuse("chimera", 3, 6, 1, "even number of positions");
    refuse("chimera-doubling", 5, 6, 1, "5 = 2 x 2 + 1");
    refuse("dualpipe", 3, 6, 1, "even number of positions, not 3");
    refuse("dualpipe", 4, 9, 1, "even number of micro-batches");
    refuse("dualpipe", 4, 6, 1, "2P = 2 x 4 = 8 on, not 6");
    refuse("dualpipev", 4, 7, 1, "2P = 2 x 4 = 8 micro-batches, not 7");
    refuse("dualpipev", 4, 8, 2, "one wave, not 2");
    refuse("zb-v", 4, 8, 2, "one wave, not 2");
    nami_recipe r = oracle_recipe("gpipe", 2, 2, 1);
    nami_schedule s;
    r.slices = 2;
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "terapipe does");
    r.slices = UINT16_MAX + 1;
    assert_fails(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "token slices are too many");
}

/* Where another schedule serves better, an order says so. */
static void test_advice(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("zb-h2", 4, 7, 1);
    assert_null(nami_order_zb_h2.advise(&r));
    assert_null(nami_order_zb_v.advise(&r));
    r.microbatches = 6;
    assert_non_null(strstr(nami_order_zb_h2.advise(&r), "zb-h1"));
    assert_non_null(strstr(nami_order_zb_v.advise(&r), "hanayo-zb"));
    r.microbatches = 8;
    assert_null(nami_order_chimera_doubling.advise(&r));
    r.microbatches = 7;
    assert_non_null(strstr(nami_order_chimera_doubling.advise(&r), "take chimera"));
}

/* Slots that the executor allocates, against a plain count. */
static void test_counts(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("dapple", 4, 6, 1);
    nami_schedule s;
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    for (int stage = 0; stage < 4; stage++) {
        assert_int_equal(nami_schedule_in_flight(&s, 0, stage), 4 - stage);
        assert_int_equal(nami_schedule_held(&s, stage), 4 - stage);
        assert_int_equal(nami_schedule_in_split(&s, 0, stage), 0);
        assert_true(nami_schedule_in_receipt(&s, 0, stage, NAMI_RECV_F) <= 2);
        assert_int_equal(nami_schedule_in_receipt(&s, 0, stage, NAMI_RECV_F) > 0,
                         stage > 0);
        assert_int_equal(nami_schedule_in_receipt(&s, 0, stage, NAMI_RECV_B) > 0,
                         stage < 3);
    }
    nami_schedule_free(&s);
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_EVALUATE, &s));
    assert_int_equal(nami_schedule_in_flight(&s, 0, 2), 1);
    nami_schedule_free(&s);
}

/* Both ends of a message have one key, no two messages share one, and peers point at each other. */
static void test_keys(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("hanayo", 3, 4, 2);
    nami_schedule s;
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    int64_t keys = nami_schedule_keys(&s), messages = 0;
    int *from = calloc((size_t)keys, sizeof *from),
        *to = calloc((size_t)keys, sizeof *to);
    for (int p = 0; p < 3; p++) {
        for (int64_t i = 0; i < s.list[p].count; i++) {
            nami_action a = s.list[p].item[i];
            const nami_semantics *is = nami_semantics_of(a.kind);
            if (!is->sends && !is->receives)
                continue;
            int64_t key = nami_action_key(&s, a);
            assert_true(key >= 0 && key < keys);
            int *end = is->sends ? from : to, *other = is->sends ? to : from;
            assert_int_equal(end[key], 0);
            end[key] = 1 + p;
            if (other[key] > 0)
                assert_int_equal(other[key] - 1, nami_action_peer(&s, a));
            messages += is->sends;
        }
    }
    for (int64_t key = 0; key < keys; key++)
        assert_int_equal(from[key] > 0, to[key] > 0);
    assert_int_equal(messages, nami_schedule_messages(&s));
    assert_int_equal(messages, 2 * 2 * 2 * (3 - 1) * 4);
    free(from);
    free(to);
    nami_schedule_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_small),   cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_all_pairs),   cmocka_unit_test(test_backwards_ascend),
        cmocka_unit_test(test_known_lists), cmocka_unit_test(test_placements),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_counts),
        cmocka_unit_test(test_keys),        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_advice),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
