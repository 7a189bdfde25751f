/* SPDX-License-Identifier: MIT */
/* test_validate.c - the validator objects to every wrong list, and to no right one.
 *
 * Lists of every schedule are mutated; the independent judge of oracle.h says what the validator must say.
 */
#include "nami_test.h"

#include "base/rng.h"
#include "sched/oracle.h"

enum {
    DROP,
    DUPLICATE,
    RETARGET,
    UNIT,
    ELSEWHERE,
    SLICE, /* up to here the lists are always wrong */
    COPY,
    KIND,
    PAIR,
    VERSION,
    SWAP,
    MOVE,
    MUTATIONS
};

static uint64_t key, counter;

static int draw(int below)
{
    return (int)(nami_uniform(key, counter++) * below);
}

static void insert(nami_list *l, int64_t at, nami_action a)
{
    nami_list_add(l, a);
    for (int64_t i = l->count - 1; i > at; i--)
        l->item[i] = l->item[i - 1];
    l->item[at] = a;
}

static nami_action take(nami_list *l, int64_t at)
{
    nami_action a = l->item[at];
    for (int64_t i = at; i + 1 < l->count; i++)
        l->item[i] = l->item[i + 1];
    l->count--;
    return a;
}

/* Change the lists in one place; false when the draw changes nothing. */
static bool mutate(nami_schedule *s, int mutation, int position, int64_t at,
                   int64_t other)
{
    nami_list *l = &s->list[position];
    nami_action *a = &l->item[at], was = *a;
    switch (mutation) {
    case DROP:
        take(l, at);
        return true;
    case DUPLICATE:
        insert(l, other, was);
        return true;
    case RETARGET:
        a->stage = (uint16_t)draw(s->place.stages + 1);
        return a->stage != was.stage;
    case UNIT:
        a->unit = draw(s->recipe.microbatches + 2) - 1;
        return a->unit != was.unit;
    case COPY:
        a->copy = (uint8_t)draw(3);
        return a->copy != was.copy;
    case SLICE:
        a->slice = (uint16_t)draw(s->recipe.slices + 1);
        return a->slice != was.slice;
    case PAIR:
        a->flags ^= NAMI_FLAG_PAIR;
        return true;
    case VERSION:
        a->version = (uint8_t)draw(4);
        return a->version != was.version;
    case KIND:
        a->kind = (uint8_t)draw(NAMI_KINDS);
        return a->kind != was.kind;
    case ELSEWHERE:
        if (s->place.positions == 1)
            return false;
        was = take(l, at);
        nami_list_add(&s->list[(position + 1) % s->place.positions], was);
        return true;
    case SWAP:
        *a = l->item[other];
        l->item[other] = was;
        return at != other;
    default: /* MOVE */
        was = take(l, at);
        insert(l, other == l->count + 1 ? l->count : other, was);
        return at != other;
    }
}

/* Ask both judges; the first mutations always leave wrong lists. */
static void judge(const nami_schedule *s, int mutation, long *rejected, long *accepted)
{
    nami_status status = nami_schedule_validate(s);
    bool valid = oracle_valid(s);
    if ((status == NAMI_OK) != valid) {
        nami_text text = {0};
        nami_schedule_print(s, &text);
        fail_msg("mutation %d of %s: validator says \"%s\", the judge says %s\n%s",
                 mutation, s->recipe.name, nami_fail_text(), valid ? "right" : "wrong",
                 nami_text_get(&text));
    }
    if (!valid) {
        assert_int_equal(status, NAMI_EPLAN);
        assert_true(strlen(nami_fail_text()) > 10);
    }
    if (mutation <= SLICE)
        assert_false(valid);
    nami_fail_clear();
    *(valid ? accepted : rejected) += 1;
}

static void check_mutations(const nami_recipe *r, nami_purpose purpose, bool lowered,
                            int each, long *rejected, long *accepted)
{
    nami_schedule bare, s;
    assert_ok(nami_schedule_generate(r, purpose, &bare));
    for (int mutation = 0; mutation < MUTATIONS; mutation++) {
        for (int i = 0; i < each; i++) {
            if (lowered)
                assert_ok(nami_schedule_lower(&bare, draw(3), &s));
            else
                assert_ok(nami_schedule_generate(r, purpose, &s));
            int position = draw(r->positions);
            int64_t count = s.list[position].count, at = draw((int)count),
                    other = draw((int)count);
            if (i % 2 == 1) /* neighbours: changes that may leave the lists right */
                other = at + 1 < count ? at + 1 : at;
            if (mutate(&s, mutation, position, at, other))
                judge(&s, mutation, rejected, accepted);
            nami_schedule_free(&s);
        }
    }
    nami_schedule_free(&bare);
}

static void test_mutations(void **state)
{
    (void)state;
    long rejected = 0, accepted = 0;
    key = nami_test_seed(4711);
    int each = getenv("NAMI_TEST_LONG") ? 400 : 12;
    for (int i = 0; i < nami_presets(); i++) {
        for (int p = 1; p <= 5; p++) {
            for (int c = 1; c <= 2; c++) {
                nami_recipe r =
                    oracle_smallest(nami_preset_at(i)->name, p, 1 + draw(2 * p), c);
                for (int lowered = 0; lowered < 2; lowered++) {
                    check_mutations(&r, NAMI_PURPOSE_TRAIN, lowered, each, &rejected,
                                    &accepted);
                    check_mutations(&r, NAMI_PURPOSE_EVALUATE, lowered, each, &rejected,
                                    &accepted);
                }
            }
        }
    }
    printf("%ld mutations rejected, %ld still right\n", rejected, accepted);
    assert_true(rejected > 20 * accepted / 10);
    assert_true(accepted > 50);
}

/* The same of windows with what presets do not choose: waves, depth, stages that recompute. */
static void test_windows(void **state)
{
    (void)state;
    int depth[] = {4, 2, 0}, again[] = {1, 0, 1, 0};
    long rejected = 0, accepted = 0;
    key = nami_test_seed(815);
    int each = getenv("NAMI_TEST_LONG") ? 400 : 12;
    for (int i = 0; i < 12; i++) {
        static const nami_weights policy[] = {
            NAMI_WEIGHTS_STASH,  NAMI_WEIGHTS_VERTICAL, NAMI_WEIGHTS_2BW,
            NAMI_WEIGHTS_NEWEST, NAMI_WEIGHTS_PREDICT,  NAMI_WEIGHTS_GROUPED};
        const bool wave = i < 6, grouped = policy[i % 6] == NAMI_WEIGHTS_GROUPED;
        nami_recipe r = oracle_recipe(grouped ? "wpipe"
                                      : wave  ? "hanayo"
                                              : "pipedream",
                                      wave || grouped ? 2 : 3, 15, 1);
        r.weights = policy[i % 6];
        r.per_update = r.weights == NAMI_WEIGHTS_2BW ? 5 : 3;
        if (r.placement == NAMI_PLACE_LINEAR)
            r.depth = (nami_ints){.count = 3, .item = depth};
        if (r.placement == NAMI_PLACE_LINEAR)
            again[2] = 0;
        r.stage_recompute = (nami_ints){.count = nami_recipe_stages(&r), .item = again};
        check_mutations(&r, NAMI_PURPOSE_TRAIN, false, each, &rejected, &accepted);
        check_mutations(&r, NAMI_PURPOSE_TRAIN, true, 4 * each, &rejected, &accepted);
    }
    printf("%ld mutations rejected, %ld still right\n", rejected, accepted);
    assert_true(rejected > 20 * accepted / 10);
    assert_true(accepted > 20);
}

/* Every single drop, duplicate and swap of neighbours of some small lists. */
static void test_all_single(void **state)
{
    (void)state;
    long rejected = 0, accepted = 0;
    key = 1;
    for (int i = 0; i < nami_presets(); i++) {
        nami_recipe r = oracle_smallest(nami_preset_at(i)->name, 3, 4, 1);
        nami_schedule s;
        assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
        nami_text clean = {0};
        nami_schedule_print(&s, &clean);
        for (int p = 0; p < r.positions; p++) {
            int64_t count = s.list[p].count;
            for (int64_t at = 0; at + 1 < count; at++) {
                for (int mutation = 0; mutation < MUTATIONS; mutation++) {
                    nami_schedule copy;
                    if (mutation != DROP && mutation != DUPLICATE && mutation != SWAP)
                        continue;
                    assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &copy));
                    assert_true(mutate(&copy, mutation, p, at, at + 1));
                    judge(&copy, mutation, &rejected, &accepted);
                    nami_schedule_free(&copy);
                }
            }
        }
        nami_text_free(&clean);
        nami_schedule_free(&s);
    }
    assert_true(accepted > 0 && rejected > 2 * accepted);
}

/* Lists of a text, as if read from a file. */
static void read_text(const char *text, nami_schedule *s)
{
    assert_ok(nami_schedule_read(text, "test", s));
}

static void refuse(const char *text, const char *part)
{
    nami_schedule s;
    read_text(text, &s);
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, part);
    nami_schedule_free(&s);
}

static void accept(const char *text)
{
    nami_schedule s;
    read_text(text, &s);
    assert_ok(nami_schedule_validate(&s));
    nami_schedule_free(&s);
}

/* The reason names position, entry, action and what is wrong. */
static void test_reasons(void **state)
{
    (void)state;
    refuse("0F0 0B0\n1F0\n", "some are missing");
    refuse("0F0 0B0 0F1 0B1\n1F0 1F1 1B1 1F0\n",
           "position 1, entry 3 (1F0): it stands in the list twice");
    refuse("0F0 0B0 0R0\n1F0\n",
           "position 0, entry 2 (0R0): its backward has run already");
    refuse("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n", "waits for ever");
    refuse("0F0 0F1 0B0 0B1\n1F1 1B1 1B0 1F0\n",
           "position 1, entry 2 (1B0): its forward has not run");
    refuse("0F0 0I0 0F1 0B1 0W1\n", "its input backward (I) has not run");
    refuse("0F0 0I0 0F1 0B1\n", "0W0 is missing");
    refuse("0F0 0B0 0I0\n", "has had its backward already");
    refuse("0F0 0F1 0B0 0B1 0REDUCE 0REDUCE 0UPDATE\n", "has had it already");
    refuse("0F0 0B0 0UPDATE\n", "have not been reduced");
    refuse("0F0 0B0 0REDUCE 0F1 0B1 0UPDATE\n", "have been reduced already");
    refuse("0F0 0B0 0REDUCE\n", "REDUCE or UPDATE of stage 0 is missing");
    refuse("0F0 0B0 0REDUCE 0UPDATE 0F1 0B1\n", "already");
    refuse("0F0 0B0 0REDUCE_SCATTER 0UPDATE\n",
           "GATHER or UPDATE of stage 0 is missing");
    refuse("0F0 0B0 0REDUCE 0UPDATE 0GATHER\n", "nothing of stage 0 was scattered");
    refuse("0F0 0B0 0REDUCE_SCATTER 0GATHER 0UPDATE\n", "has not been updated");
    refuse("0F0v1 0B0v1\n", "only version 0");
    refuse("0F0 0SEND_F0 0RECV_B0 0B0\n1F0 1B0 1SEND_B0\n", "no 1RECV_F0 before it");
    refuse("0F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0\n",
           "position 0: 0SEND_F0 is missing");
    refuse("0F0 0SEND_B0 0SEND_F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0\n",
           "no such message");
    refuse("0SEND_F0 0F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0\n",
           "has not been made");
}

/* Kinds and fields that the orders of this list do not use yet. */
static void test_beyond(void **state)
{
    (void)state;
    accept("0F0 0F1 0I0 0I1 0W0 0W1\n1F0 1I0 1F1 1W0 1I1 1W1\n");
    accept("0F0 0F1 0R0 0B0 0B1\n1F0 1B0 1F1 1R1 1B1\n");
    accept("0F0 0B0 0REDUCE_SCATTER 0UPDATE 0GATHER\n");
    accept("0F0 0F0/1 0B0/1 0B0\n1F0 1F0/1 1B0/1 1B0\n");
    refuse("0F0 0F0/1 0B0 0B0/1\n", "slice 1 must come before it");
    refuse("0F0/1 0F0 0B0/1 0B0\n", "slice 0 must come before it");
    accept("0F0 1F1@1 0B0 1B1@1\n1F0 0F1@1 1B0 0B1@1\n");
    refuse("0F0 1F0@1 0B0 1B0@1\n1F0 0F0@1 1B0 0B0@1\n", "runs in copy 0");
    accept("0F0 1F1@1 0B0 1B1@1 0REDUCE 1REDUCE@1 0UPDATE 1UPDATE@1\n"
           "1F0 0F1@1 1B0 0B1@1 1REDUCE 0REDUCE@1 0UPDATE@1 1UPDATE\n"
           "# without communication\n");
}

/* Copies exchange gradients before either updates: an UPDATE waits for the REDUCE of both. */
static void test_copies_wait(void **state)
{
    (void)state;
    nami_schedule s;
    read_text("0F0 1F1@1 0B0 1B1@1 0REDUCE 1REDUCE@1 0UPDATE 1UPDATE@1\n"
              "1F0 0F1@1 1B0 0B1@1 1REDUCE 0REDUCE@1 0UPDATE@1 1UPDATE\n",
              &s);
    s.list[0].count = 7; /* the last UPDATE lost */
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, "stage 1 is missing");
    s.list[0].count = 5; /* and a REDUCE, which others wait for */
    s.updates = false;
    assert_fails(nami_schedule_walk(&s, NULL, NULL), NAMI_EPLAN,
                 "waits for ever for the REDUCE");
    nami_schedule_free(&s);
}

/* Weight versions of a schedule without flush. */
static void test_versions(void **state)
{
    (void)state;
    nami_schedule s;
    read_text("0F0 0F1 0B0 0REDUCE0 0UPDATE0v1 0F2v1 0B1 0REDUCE1 0UPDATE1 0B2v1 "
              "0REDUCE2 0UPDATE2v1\n",
              &s);
    s.recipe.weights = NAMI_WEIGHTS_STASH;
    s.recipe.per_update = 1;
    assert_int_equal(nami_schedule_versions(&s, 0, 0), 2);
    assert_ok(nami_schedule_validate(&s));
    s.list[0].item[9].version = 0;
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN,
                 "entry 9 (0B2): it must read version 1, but slot 0 holds version 2");
    s.list[0].item[9].version = 2;
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, "have only 2 slots");
    s.list[0].item[9].version = 1;
    s.list[0].item[4].version = 0;
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, "version 1 lies in slot 1");
    s.list[0].item[4].version = 1;
    s.recipe.weights = NAMI_WEIGHTS_NEWEST; /* one version will do */
    assert_int_equal(nami_schedule_versions(&s, 0, 0), 1);
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, "have only 1 slots");
    for (int64_t i = 0; i < s.list[0].count; i++)
        s.list[0].item[i].version = 0;
    assert_ok(nami_schedule_validate(&s));
    s.recipe.weights = NAMI_WEIGHTS_2BW;
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, "lies in slot 1 of 2");
    s.recipe.weights = NAMI_WEIGHTS_STASH;
    s.recipe.per_update = 3;
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN,
                 "only 1 of the 3 gradients of update 0");
    nami_schedule_free(&s);
}

/* Lists out of range must be refused, not followed. */
static void test_hostile(void **state)
{
    (void)state;
    nami_recipe r = oracle_recipe("dapple", 2, 2, 1);
    for (int i = 0; i < 4; i++) {
        nami_schedule s;
        assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
        nami_action *a = &s.list[1].item[i];
        a->stage = i == 0 ? 65535 : a->stage;
        a->unit = i == 1 ? INT32_MAX : a->unit;
        a->kind = i == 2 ? 200 : a->kind;
        a->copy = i == 3 ? 255 : a->copy;
        assert_status(nami_schedule_validate(&s), NAMI_EPLAN);
        assert_status(nami_schedule_walk(&s, NULL, NULL), NAMI_EPLAN);
        nami_schedule_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations),  cmocka_unit_test(test_windows),
        cmocka_unit_test(test_all_single), cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_beyond),     cmocka_unit_test(test_copies_wait),
        cmocka_unit_test(test_versions),   cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
