/* SPDX-License-Identifier: MIT */
/* test_text.c - lists to text and CSV and back; files that others wrote; broken files. */
#include "nami_test.h"

#include "base/rng.h"
#include "sched/oracle.h"

/* 1F1B with split backward on 2 ranks with 2 stages each, in the form that torch.distributed.pipelining writes:
 * B is the input gradient where a W follows, empty cells are idle slots. */
static const char torch_like[] = "0F0,0F1,2F0,,2F1,2B0,2W0,2B1,2W1,0B0,0W0,0B1,0W1\n"
                                 ",1F0,1F1,3F0,3B0,3F1,3B1,3W0,1B0,3W1,1W0,1B1,1W1\r\n";

static bool same_lists(const nami_schedule *a, const nami_schedule *b)
{
    if (a->place.positions != b->place.positions ||
        a->place.stages != b->place.stages || a->communicates != b->communicates ||
        a->recipe.microbatches != b->recipe.microbatches)
        return false;
    for (int p = 0; p < a->place.positions; p++) {
        if (a->list[p].count != b->list[p].count ||
            memcmp(a->list[p].item, b->list[p].item,
                   (size_t)a->list[p].count * sizeof(nami_action)) != 0)
            return false;
    }
    for (int s = 0; s < a->place.stages; s++) {
        if (a->place.position[s] != b->place.position[s])
            return false;
    }
    return true;
}

static void round_trip(const nami_schedule *s,
                       void (*write)(const nami_schedule *, nami_text *))
{
    nami_text text = {0};
    nami_schedule back;
    write(s, &text);
    assert_ok(nami_schedule_read(nami_text_get(&text), "text", &back));
    back.recipe.weights = s->recipe.weights; /* what a text does not say */
    back.recipe.per_update = s->recipe.per_update;
    assert_ok(nami_schedule_validate(&back));
    assert_true(same_lists(s, &back));
    nami_text_free(&text);
    nami_schedule_free(&back);
}

static void test_round_trips(void **state)
{
    (void)state;
    for (int i = 0; i < nami_presets(); i++) {
        for (int p = 1; p <= 5; p++) {
            for (int m = 1; m <= 2 * p; m++) {
                nami_recipe r = oracle_smallest(nami_preset_at(i)->name, p, m, 2);
                if (r.placement == NAMI_PLACE_BIDIRECTIONAL && r.microbatches == 1)
                    continue; /* a file shows no copy that does nothing */
                nami_schedule bare, full;
                assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &bare));
                round_trip(&bare, nami_schedule_print);
                if (r.positions >
                    1) /* one position alone has no comma to tell a CSV by its cells, but needs none */
                    round_trip(&bare, nami_schedule_csv);
                assert_ok(nami_schedule_lower(&bare, 1, &full));
                full.communicates = r.positions > 1; /* as a reader sees it */
                round_trip(&full, nami_schedule_print);
                if (r.positions > 1 && r.weights != NAMI_WEIGHTS_FLUSH)
                    round_trip(&full, nami_schedule_csv);
                nami_schedule_free(&bare);
                nami_schedule_free(&full);
            }
        }
    }
}

/* CSV with communication carries all but REDUCE and UPDATE, which lowering adds again. */
static void test_csv_lowered(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("hanayo", 3, 5, 2);
    nami_schedule full, back, again;
    nami_text csv = {0};
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &full));
    nami_schedule_csv(&full, &csv);
    assert_null(strstr(nami_text_get(&csv), "UPDATE"));
    assert_non_null(strstr(nami_text_get(&csv), "0SEND_F0"));
    assert_ok(nami_schedule_read(nami_text_get(&csv), "csv", &back));
    assert_true(back.communicates && !back.updates);
    assert_ok(nami_schedule_validate(&back));
    assert_ok(nami_schedule_lower(&back, 7, &again));
    assert_ok(nami_schedule_validate(&again));
    assert_true(same_lists(&full, &again));
    nami_text_free(&csv);
    nami_schedule_free(&full);
    nami_schedule_free(&back);
    nami_schedule_free(&again);
}

static void test_actions(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(99);
    for (uint64_t i = 0; i < 2000; i++) {
        nami_kind kind = (nami_kind)(NAMI_KINDS * nami_uniform(key, 8 * i));
        nami_action a = nami_action_of(kind,
                                       (int)(65535 * nami_uniform(key, 8 * i + 1)), -1),
                    b;
        if (nami_semantics_of(kind)->per_unit || i % 2 == 0)
            a.unit = (int32_t)(INT32_MAX * nami_uniform(key, 8 * i + 2));
        a.slice = i % 3 == 0 ? (uint16_t)(65536 * nami_uniform(key, 8 * i + 3)) : 0;
        a.copy = i % 5 == 0;
        a.version = i % 7 == 0 ? (uint8_t)(256 * nami_uniform(key, 8 * i + 4)) : 0;
        a.flags = i % 11 == 0 ? NAMI_FLAG_PAIR : 0;
        nami_text text = {0};
        nami_action_print(a, &text);
        assert_ok(nami_action_parse(nami_text_get(&text), &b));
        assert_memory_equal(&a, &b, sizeof a);
        nami_text_free(&text);
    }
}

static void test_bad_words(void **state)
{
    (void)state;
    const char *const bad[] = {"",
                               "F0",
                               "0",
                               "0F",
                               "0X0",
                               "0F0x",
                               "0F-1",
                               "-1F0",
                               "65535F0",
                               "0F2147483647",
                               "0F99999999999999999999",
                               "0SEND0",
                               "0SEND_F",
                               "0F0@2",
                               "0F0/",
                               "0F0/65536",
                               "0F0v256",
                               "0F0@1/2",
                               "0f0",
                               "0F0 ",
                               "0F0++",
                               "99999999999999999999F0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        nami_action a;
        assert_fails(nami_action_parse(bad[i], &a), NAMI_EINPUT, "\"");
    }
    nami_action full;
    assert_ok(nami_action_parse("3BW7", &full)); /* torch's full backward */
    assert_int_equal(full.kind, NAMI_B);
}

static void test_torch(void **state)
{
    (void)state;
    nami_schedule s;
    assert_ok(nami_schedule_read(torch_like, "torch", &s));
    assert_int_equal(s.place.positions, 2);
    assert_int_equal(s.place.stages, 4);
    assert_int_equal(s.recipe.microbatches, 2);
    assert_int_equal(s.place.position[2], 0);
    assert_int_equal(s.list[0].item[4].kind, NAMI_BI);
    assert_int_equal(s.list[1].count, 12);
    assert_ok(nami_schedule_validate(&s));
    assert_true(oracle_valid(&s));
    nami_schedule_free(&s);
    assert_ok(nami_schedule_read("(0F0;0F1)OVERLAP_F_B, 0B0,0BW1\n", "pair", &s));
    assert_int_equal(s.list[0].count, 4);
    assert_int_equal(s.list[0].item[0].flags, NAMI_FLAG_PAIR);
    assert_int_equal(s.list[0].item[1].flags, 0);
    assert_int_equal(s.list[0].item[3].kind, NAMI_B);
    assert_ok(nami_schedule_validate(&s));
    nami_text csv = {0};
    nami_schedule_csv(&s, &csv);
    assert_string_equal(nami_text_get(&csv), "(0F0;0F1)OVERLAP_F_B,0B0,0B1\n");
    nami_text_free(&csv);
    nami_schedule_free(&s);
}

static void refuse(const char *text, const char *part)
{
    nami_schedule s;
    assert_fails(nami_schedule_read(text, "file", &s), NAMI_EINPUT, part);
    nami_schedule_free(&s);
}

static void test_broken_files(void **state)
{
    (void)state;
    refuse("", "no action");
    refuse("# nothing\n\n  \n", "no action");
    refuse(",,,\n", "no action");
    refuse("0F0 0B0\n1F0 1G0\n", "file:2 (position 1): \"1G0\"");
    refuse("0F0 0B0\n\n\n1F0 hello\n", "file:4 (position 1): \"hello\"");
    refuse("0F0 0B0\n0F1 1B0\n", "stage 0 has actions on position 0 and on position 1");
    refuse("0F0 0B0\n2F0 2B0\n", "stage 1 has no action");
    refuse("(0F0,0B0\n", "OVERLAP_F_B");
    refuse("(0F0;0B0)OVERLAP,0W0\n", "OVERLAP_F_B");
    refuse("(;)OVERLAP_F_B,0W0\n", "\"\"");
    refuse("0F0000000000000000000000000000000000000000000000000000000000000000000000000"
           "0000000000000000000000000"
           "0000000000000\n",
           "longer");
    nami_schedule s;
    assert_ok(nami_schedule_read("0F2147483646,0W0,0F1\n", "far",
                                 &s)); /* no memory for what is not there */
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, "missing");
    nami_schedule_free(&s);
}

/* Cut and garbled files end in a status, and in no fault (run under the sanitizers). */
static void test_garbled(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(5);
    char text[sizeof torch_like];
    for (uint64_t i = 0; i < 4000; i++) {
        nami_schedule s;
        memcpy(text, torch_like, sizeof text);
        text[(size_t)(sizeof text * nami_uniform(key, 4 * i))] = '\0';
        for (uint64_t k = 1; k < 3; k++)
            text[(size_t)((sizeof text - 1) * nami_uniform(key, 4 * i + k))] =
                "0129,;()BFW@/v+\n x"[(int)(18 * nami_uniform(key, 4 * i + 3))];
        text[sizeof text - 1] = '\0';
        nami_status status = nami_schedule_read(text, "garbled", &s);
        if (status == NAMI_OK)
            status = nami_schedule_validate(&s);
        assert_true(status == NAMI_OK || status == NAMI_EINPUT || status == NAMI_EPLAN);
        assert_int_equal(status == NAMI_OK, *nami_fail_text() == '\0');
        nami_fail_clear();
        nami_schedule_free(&s);
    }
}

static void test_from_file(void **state)
{
    (void)state;
    char path[512], name[600];
    nami_schedule s;
    nami_test_path(path, "lists.csv");
    nami_test_write(path, torch_like, sizeof torch_like - 1);
    snprintf(name, sizeof name, "file:%s", path);
    nami_recipe r = {.slices = 1, .waves = 1, .chunks = 1};
    assert_ok(nami_recipe_preset(&r, name));
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
    assert_true(s.communicates && s.updates);
    nami_schedule_free(&s);
    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_EVALUATE, &s));
    assert_int_equal(s.list[0].item[0].kind, NAMI_F);
    assert_false(s.updates);
    nami_schedule_free(&s);
    r.positions = 3;
    assert_fails(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "has 2 positions");
    r.positions = 2;
    r.microbatches = 5;
    assert_fails(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EPLAN,
                 "has 2 micro-batches");
    nami_test_write(path, "0F0\0 0B0", 8);
    assert_fails(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s), NAMI_EINPUT,
                 "byte 3 is zero");
    assert_fails(nami_schedule_read_file("/nonexistent/lists", &s), NAMI_EINPUT,
                 "cannot be opened");
    assert_fails(nami_schedule_read_file("/", &s), NAMI_EINPUT, "/: cannot be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_csv_lowered),
        cmocka_unit_test(test_actions),     cmocka_unit_test(test_bad_words),
        cmocka_unit_test(test_torch),       cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_garbled),     cmocka_unit_test(test_from_file),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
