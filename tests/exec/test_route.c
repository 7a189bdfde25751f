/* SPDX-License-Identifier: MIT */
/* test_route.c - buffers and slots: with any times of actions and messages nothing is overwritten that is still
 * needed, and nobody waits for ever. */
#include "nami_test.h"

#include "base/rng.h"
#include "exec/route.h"

enum { NOBODY = -1 };

/* A pipeline whose messages are rendezvous: a send is complete when its receive is posted and both waited a while. */
typedef struct world {
    const nami_schedule *s;
    const nami_route *route; /* [positions] */
    int64_t *at;             /* [positions] next task */
    /* [positions][buffers] value that lies there, NOBODY: free for use */
    int **content;
    bool *posted, *sent; /* [keys] */
    uint64_t random;
} world;

static uint64_t next_random(world *w)
{
    return w->random = nami_mix(w->random, 1);
}

/* Names of values: what, stage, unit. A send's buffer holds the value until its receive is posted. */
static int value_of(const world *w, bool gradient, int stage, nami_action a)
{
    const nami_recipe *r = &w->s->recipe;
    int row = (gradient ? w->s->place.stages : 0) + stage;
    return (row * r->microbatches + a.unit) * r->slices + a.slice;
}

static bool is_free(const world *w, int p, int b)
{
    return b < 0 || w->content[p][b] == NOBODY;
}

static void fill(world *w, int p, int b, int value)
{
    assert_true(b < w->route[p].buffers);
    assert_int_equal(w->content[p][b], NOBODY);
    w->content[p][b] = value;
}

/* A buffer that was sent is free once its message was taken. */
static void complete_sends(world *w, int p)
{
    for (int64_t i = 0; i < w->at[p]; i++) {
        const nami_task *t = &w->route[p].task[i];
        int b = t->action.kind == NAMI_SEND_F ? t->out : t->din;
        if (!nami_semantics_of(t->action.kind)->sends || !w->sent[t->tag] ||
            !w->posted[t->tag])
            continue;
        int value =
            value_of(w, t->action.kind == NAMI_SEND_B, t->action.stage, t->action);
        if (w->content[p][b] == value + 1000000)
            w->content[p][b] = NOBODY;
    }
}

static int64_t key(const world *w, nami_action a, nami_kind kind)
{
    a.kind = (uint8_t)kind;
    return nami_action_key(w->s, a);
}

static bool away(const world *w, int copy, int from, int to)
{
    return to >= 0 && to < w->s->place.stages &&
           nami_place_of(&w->s->place, copy, to) !=
               nami_place_of(&w->s->place, copy, from);
}

static bool can_compute(const world *w, int p, const nami_task *t)
{
    nami_action a = t->action;
    const nami_semantics *is = nami_semantics_of(a.kind);
    if (is->needs_input && away(w, a.copy, a.stage, a.stage - 1) &&
        !w->sent[key(w, a, NAMI_RECV_F)])
        return false;
    if (is->needs_gradient && away(w, a.copy, a.stage, a.stage + 1) &&
        !w->sent[key(w, a, NAMI_RECV_B)])
        return false;
    return is_free(w, p, t->out) && is_free(w, p, t->din);
}

static void compute(world *w, int p, const nami_task *t)
{
    nami_action a = t->action;
    const nami_semantics *is = nami_semantics_of(a.kind);
    bool last = is->closes_saved ||
                (w->s->purpose == NAMI_PURPOSE_EVALUATE && a.kind == NAMI_F);
    if (t->in >= 0)
        assert_int_equal(w->content[p][t->in], value_of(w, false, a.stage - 1, a));
    if (t->dout >= 0)
        assert_int_equal(w->content[p][t->dout], value_of(w, true, a.stage + 1, a));
    if (t->out >= 0)
        fill(w, p, t->out, value_of(w, false, a.stage, a));
    if (t->din >= 0)
        fill(w, p, t->din, value_of(w, true, a.stage, a));
    assert_true(is->makes_output == (t->out >= 0) ||
                (is->makes_output && a.stage + 1 == w->s->place.stages));
    if (last && t->in >= 0)
        w->content[p][t->in] = NOBODY;
    if (last && t->dout >= 0)
        w->content[p][t->dout] = NOBODY;
}

/* Carry out the next task of position p if it can be; whether it was. */
static bool step(world *w, int p)
{
    const nami_task *t = &w->route[p].task[w->at[p]];
    const nami_semantics *is = nami_semantics_of(t->action.kind);
    complete_sends(w, p);
    if (is->compute) {
        if (!can_compute(w, p, t))
            return false;
        compute(w, p, t);
    } else if (is->receives) {
        bool gradient = t->action.kind == NAMI_RECV_B;
        int b = gradient ? t->dout : t->in;
        if (!is_free(w, p, b))
            return false;
        fill(w, p, b,
             value_of(w, gradient, t->action.stage + (gradient ? 1 : -1), t->action));
        w->posted[t->tag] = true;
    } else if (is->sends) {
        int b = t->action.kind == NAMI_SEND_F ? t->out : t->din;
        assert_int_equal(w->content[p][b], value_of(w, t->action.kind == NAMI_SEND_B,
                                                    t->action.stage, t->action));
        w->content[p][b] += 1000000; /* on its way */
        w->sent[t->tag] = true;
    }
    w->at[p]++;
    return true;
}

/* Positions take turns at random, so some run far ahead of others. */
static void run(world *w)
{
    int positions = w->s->place.positions, favourite = 0;
    for (int64_t turns = 0;; turns++) {
        int open = 0, moved = 0;
        if (next_random(w) % 16 == 0)
            favourite = (int)(next_random(w) % (uint64_t)positions);
        for (int i = 0; i < positions; i++) {
            int p = (favourite + i) % positions;
            bool ended = w->at[p] == w->route[p].count;
            open += !ended;
            if (!ended && moved == 0)
                moved += step(w, p);
        }
        if (open == 0)
            return;
        assert_int_equal(moved, 1);
    }
}

static void check(const nami_schedule *s, uint64_t seed)
{
    int positions = s->place.positions;
    nami_route *route = calloc((size_t)positions, sizeof *route);
    assert_ok(nami_routes_make(s, route));
    world w = {.s = s, .route = route, .random = seed};
    w.at = calloc((size_t)positions, sizeof *w.at);
    w.content = calloc((size_t)positions, sizeof *w.content);
    w.posted = calloc((size_t)nami_schedule_keys(s), 1);
    w.sent = calloc((size_t)nami_schedule_keys(s), 1);
    for (int p = 0; p < positions; p++) {
        w.content[p] = malloc(((size_t)route[p].buffers + 1) * sizeof(int));
        for (int b = 0; b < route[p].buffers; b++)
            w.content[p][b] = NOBODY;
        for (int i = 0; i < route[p].stages; i++) {
            int stage = route[p].stage[i], copy = route[p].copy[i];
            assert_int_equal(nami_place_of(&s->place, copy, stage), p);
            int slices = s->recipe.slices,
                flight = nami_schedule_in_flight(s, copy, stage);
            int units = (flight + slices - 1) / slices;
            assert_int_equal(route[p].kept[i], route[p].again[i] ? 1 : units);
            assert_int_equal(route[p].data[i], units);
            assert_int_equal(route[p].held[i], nami_schedule_in_split(s, copy, stage));
        }
    }
    run(&w);
    for (int p = 0; p < positions; p++) {
        complete_sends(&w, p);
        for (int b = 0; b < route[p].buffers; b++)
            assert_int_equal(w.content[p][b], NOBODY);
        free(w.content[p]);
    }
    free(w.at);
    free(w.content);
    free(w.posted);
    free(w.sent);
    nami_routes_free(route, positions);
    free(route);
}

static void check_both(const nami_recipe *r, uint64_t seed)
{
    nami_schedule s;
    for (int purpose = NAMI_PURPOSE_TRAIN; purpose <= NAMI_PURPOSE_EVALUATE;
         purpose++) {
        assert_ok(nami_schedule_make(r, (nami_purpose)purpose, &s));
        check(&s, seed);
        check(&s, seed + 1);
        nami_schedule_free(&s);
    }
}

static void test_every_schedule(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(77);
    for (int i = 0; i < nami_presets_with_flush(); i++) {
        for (int positions = 1; positions <= 6; positions++) {
            for (int micros = 1; micros <= 14; micros += positions > 4 ? 3 : 1) {
                for (int many = 1; many <= 3; many++) {
                    nami_recipe r = {.positions = positions,
                                     .microbatches = micros,
                                     .waves = many,
                                     .chunks = many,
                                     .slices = 1};
                    assert_ok(nami_recipe_preset(&r, nami_preset_at(i)->name));
                    r.slices = strcmp(r.order, "terapipe") == 0 ? many : 1;
                    nami_schedule s;
                    bool admitted =
                        nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s) == NAMI_OK;
                    nami_fail_clear();
                    if (!admitted)
                        continue;
                    nami_schedule_free(&s);
                    check_both(&r, seed++);
                }
            }
        }
    }
}

/* Windows of many updates, with every policy, and with forwards that run again. */
static void test_windows(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(78);
    static const char *const order[] = {"pipedream", "dapple", "hanayo", "interleaved"};
    int made = 0, ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        for (int weights = NAMI_WEIGHTS_STASH; weights <= NAMI_WEIGHTS_GROUPED;
             weights++) {
            for (int n = 0; n < 24; n++) {
                nami_recipe r = {.positions = 1 + n % 4,
                                 .per_update = 1 + n % 5,
                                 .microbatches = (1 + n % 5) * (1 + n % 7),
                                 .waves = 1,
                                 .chunks = 2,
                                 .slices = 1};
                assert_ok(nami_recipe_preset(&r, order[i]));
                r.weights = (nami_weights)weights;
                if (n % 3 == 0)
                    r.stage_recompute =
                        (nami_ints){.count = nami_recipe_stages(&r),
                                    .item = ones + 12 - nami_recipe_stages(&r)};
                nami_schedule s;
                bool admitted =
                    nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s) == NAMI_OK;
                nami_fail_clear();
                if (!admitted)
                    continue;
                nami_schedule_free(&s);
                check_both(&r, seed++);
                made++;
            }
        }
    }
    assert_true(made > 200);
}

/* A zero-bubble list as a file gives it: BI and BW apart, weight gradients late. */
static void test_split(void **state)
{
    (void)state;
    static const char *const text = "0F0 0F1 0I0 0F2 0W0 0I1 0W1 0I2 0W2\n"
                                    "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2\n";
    nami_schedule read, s;
    assert_ok(nami_schedule_read(text, "a text", &read));
    assert_ok(nami_schedule_lower(&read, 1, &s));
    assert_ok(nami_schedule_validate(&s));
    nami_route route[2];
    assert_ok(nami_routes_make(&s, route));
    assert_true(route[0].split[0] && route[1].split[0]);
    assert_int_equal(route[1].held[0], 3);
    assert_int_equal(route[0].held[0], 1);
    nami_routes_free(route, 2);
    check(&s, 3);
    nami_schedule_free(&s);
    nami_schedule_free(&read);
}

/* Few buffers: 1F1B needs what is in flight, not what a step has. */
static void test_bounded(void **state)
{
    (void)state;
    int before = 0;
    for (int micros = 16; micros <= 64; micros *= 2) {
        nami_recipe r = {.positions = 4,
                         .microbatches = micros,
                         .waves = 1,
                         .chunks = 1,
                         .slices = 1};
        assert_ok(nami_recipe_preset(&r, "dapple"));
        nami_schedule s;
        nami_route route[4];
        assert_ok(nami_schedule_make(&r, NAMI_PURPOSE_TRAIN, &s));
        assert_ok(nami_routes_make(&s, route));
        int most = 0;
        for (int p = 0; p < 4; p++)
            most = route[p].buffers > most ? route[p].buffers : most;
        assert_true(most <= 12);
        assert_true(before == 0 || most == before);
        before = most;
        nami_routes_free(route, 4);
        nami_schedule_free(&s);
    }
}

static void test_refusal(void **state)
{
    (void)state;
    nami_schedule read, s;
    assert_ok(nami_schedule_read("0F0 0B0 0F1 0B1\n", "a text", &read));
    assert_ok(nami_schedule_lower(&read, 1, &s));
    nami_route route[1];
    s.list[0].item[1].kind = NAMI_DRAIN;
    assert_fails(nami_routes_make(&s, route), NAMI_EPLAN, "cannot be run yet");
    s.list[0].item[1].kind = NAMI_REDUCE_SCATTER;
    assert_fails(nami_routes_make(&s, route), NAMI_EPLAN,
                 "REDUCE_SCATTER does not go with pipeline.zero = 0");
    s.list[0].item[1].kind = NAMI_REDUCE;
    s.recipe.zero = true;
    assert_fails(nami_routes_make(&s, route), NAMI_EPLAN,
                 "REDUCE does not go with pipeline.zero = 1");
    s.list[0].item[1].kind = NAMI_UPDATE;
    assert_fails(nami_routes_make(&s, route), NAMI_EPLAN, "comes after an UPDATE");
    nami_schedule_free(&s);
    nami_schedule_free(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_schedule), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_split),          cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
