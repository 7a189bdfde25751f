/* SPDX-License-Identifier: MIT */
/* test_masked.c - BERT, whose every stage reads the lengths of samples and whose loss is the sum of two: the same bits on
 * every layout, samples split, windows, devices. */
#define TINY_TIME 2 /* masked tokens of a sample that count */
#include "model/family.h"
#include "tiny.h"

#include <math.h>

enum { CONTEXT = 9, MASKED = 3, WORDS = 2 * CONTEXT + 1, TARGETS = 2 * MASKED + 1 };

static nami_model *masked_model(const tiny_problem *p)
{
    nami_model *m = NULL;
    nami_model_options o = {.layers = 5,
                            .width = 12,
                            .heads = 3,
                            .context = CONTEXT,
                            .vocabulary = TINY_VOCABULARY,
                            .tied = p->tied,
                            .type_vocabulary = 2,
                            .predictions = MASKED};
    assert_ok(nami_model_of(&nami_family_bert, &o, p->dropout, &m));
    return m;
}

/* A sentence that counts on in fives, and one that goes on or not; two tokens of a length of 4 to 9 are masked. */
static void read_one(uint64_t key, int32_t *token, int32_t *target)
{
    const int length = 4 + (int)(key % 6);
    const bool other = key / 6 % 2, asked = key / 12 % 4 > 0;
    for (int t = 0; t < CONTEXT && token; t++) {
        const int start = (int)(key / 48 % 5) + (t >= length / 2 && other ? 2 : 0);
        token[t] = t < length ? (start + t) % 5 * 7 : 1 + (int)(key % 3);
        token[CONTEXT + t] = t >= length / 2;
    }
    if (token)
        token[2 * CONTEXT] = length;
    for (int k = 0; k < MASKED; k++) {
        const int row =
            (int)(key / 240 % (uint64_t)length + (uint64_t)(2 * k)) % length;
        const int start = (int)(key / 48 % 5) + (row >= length / 2 && other ? 2 : 0);
        if (token && k < TINY_TIME)
            token[row] = TINY_VOCABULARY - 1;
        if (!target)
            continue;
        target[k] = k < TINY_TIME ? row : 0;
        target[MASKED + k] = k < TINY_TIME ? (start + row) % 5 * 7 : -1;
    }
    if (target)
        target[2 * MASKED] = asked ? other : -1;
}

static nami_status masked_read(void *context, int64_t step, int64_t first,
                               int64_t count, int32_t *token, int32_t *target)
{
    (void)context;
    for (int64_t i = 0; i < count; i++)
        read_one(nami_mix((uint64_t)step, (uint64_t)(first + i)),
                 token ? token + i * WORDS : NULL,
                 target ? target + i * TARGETS : NULL);
    return NAMI_OK;
}

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .dropout = 0.1,
                                   .clip = 1.0,
                                   .batch = 12,
                                   .micros = 4,
                                   .partials = 4,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 6};

static const tiny_way ways[] = {
    {.schedule = "gpipe", .waves = 1, .chunks = 1},
    {.schedule = "dapple", .waves = 1, .chunks = 1},
    {.schedule = "interleaved", .waves = 1, .chunks = 2},
    {.schedule = "hanayo", .waves = 1, .chunks = 1},
    {.schedule = "hanayo-zb", .waves = 1, .chunks = 1},
    {.schedule = "zb-h1", .waves = 1, .chunks = 1},
};

/* Every way on the ranks there are, with and without replicas, whose states lie in slices every other time, as there is
 * recomputation. */
static void compare_all(tiny_problem p)
{
    const tiny_outcome want = tiny_reference(&p);
    assert_true(want.loss[p.steps - 1] < want.loss[0]);
    for (int d = 1; d <= size; d++)
        for (size_t i = 0;
             size % d == 0 && p.partials % d == 0 && i < sizeof ways / sizeof *ways;
             i++) {
            tiny_way w = ways[i];
            w.positions = size / d;
            w.replicas = d;
            w.zero = i % 2 == 1;
            tiny_outcome got = tiny_run(world, &p, &w);
            if (memcmp(&got, &want, sizeof got) != 0)
                fail_msg("%s on %d x %d%s: losses %a %a, validation %a %a, arrays %llx "
                         "%llx",
                         w.schedule, w.positions, d, p.recompute ? " recomputed" : "",
                         got.loss[p.steps - 1], want.loss[p.steps - 1], got.valid,
                         want.valid, (unsigned long long)got.parameters,
                         (unsigned long long)want.parameters);
            p.recompute = !p.recompute;
        }
}

static void test_ref(void **state)
{
    (void)state;
    compare_all(basis);
    tiny_problem p = basis; /* fewer micro-batches than positions */
    p.micros = p.partials = 2;
    p.batch = 6;
    compare_all(p);
}

static void test_cpu(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.backend = "cpu";
    compare_all(p);
    p.act = NAMI_BF16;
    compare_all(p);
}

/* `w` in double against one rank, to rounding. */
static void compare_close(const tiny_problem *p, const tiny_way *w)
{
    tiny_outcome want = tiny_reference(p), got = tiny_run(world, p, w);
    for (int i = 0; i < p->steps; i++)
        if (!tiny_near(got.loss[i], want.loss[i], 1e-9) ||
            !tiny_near(got.norm[i], want.norm[i], 1e-9))
            fail_msg("%s step %d: loss %a expected %a norm %a expected %a", w->schedule,
                     i, got.loss[i], want.loss[i], got.norm[i], want.norm[i]);
    assert_true(tiny_near(got.valid, want.valid, 1e-9));
}

/* Samples of a micro-batch split over unequal replicas; two copies of the weights. */
static void test_rounding(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.act = NAMI_F64;
    p.partials = 1;
    p.steps = 3;
    p.batch = 16;
    int list[2] = {size - 1, 1};
    tiny_way w = {.schedule = "dapple",
                  .positions = size > 1 ? 2 : 1,
                  .waves = 1,
                  .chunks = 1,
                  .replicas = 1,
                  .split = NAMI_SPLIT_SAMPLE};
    if (size > 1)
        w.stage_replicas = (nami_ints){.item = list, .count = 2};
    compare_close(&p, &w);
    if (size % 2 == 0)
        compare_close(&p, &(tiny_way){.schedule = "chimera",
                                      .positions = size,
                                      .waves = 1,
                                      .chunks = 1,
                                      .replicas = 1});
}

/* A device, whose side words lie in mirrors. */
static void test_device(void **state)
{
    (void)state;
    tiny_problem p = basis, host;
    tiny_way w = ways[3];
    p.steps = 3;
    w.positions = size;
    w.replicas = 1;
    host = p;
    p.backend = "emu";
    tiny_outcome one = tiny_run(world, &p, &w), two = tiny_run(world, &host, &w);
    assert_memory_equal(&one, &two, sizeof one);
}

/* Without a flush: one position is plain training; recomputation and a device change no bit, whatever a stage holds. */
static void test_windows(void **state)
{
    (void)state;
    static const char *const schedule[] = {"pipedream", "hanayo"};
    tiny_problem p = basis;
    p.clip = 0;
    p.tied = false; /* its uses would be updated apart */
    p.micros = 2;
    p.partials = 1;
    p.clip_scope = NAMI_CLIP_STAGE;
    for (int k = 0; k < 2; k++) {
        tiny_way w = {.schedule = schedule[k],
                      .positions = size,
                      .waves = 1,
                      .chunks = 1,
                      .replicas = 1,
                      .window = 4,
                      .weights = NAMI_WEIGHTS_STASH + 1};
        tiny_outcome got = tiny_run(world, &p, &w);
        tiny_problem other = p;
        other.recompute = true;
        tiny_outcome again = tiny_run(world, &other, &w);
        assert_memory_equal(&got, &again, sizeof got);
        other.backend = "emu";
        again = tiny_run(world, &other, &w);
        assert_memory_equal(&got, &again, sizeof got);
        assert_true(got.loss[p.steps - 1] < got.loss[0]);
        if (size > 1 || k > 0)
            continue;
        tiny_outcome want = tiny_reference(&p);
        assert_memory_equal(&got, &want, sizeof got);
    }
}

/* The two losses and what they were counted over, against counts by hand. */
static void test_parts(void **state)
{
    (void)state;
    enum { BATCH = 12 };
    tiny_problem p = basis;
    nami_model *m = masked_model(&p);
    nami_optim_options optim = tiny_optim(&p);
    nami_backend *b = NULL;
    nami_layout layout;
    nami_exec *e = NULL;
    nami_prof prof;
    nami_exec_result r;
    nami_exec_source source = {.read = masked_read};
    tiny_way w = ways[1];
    w.positions = size;
    w.replicas = 1;
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    assert_ok(tiny_layout(&p, &w, m, &layout));
    nami_prof_open(&prof, 0);
    nami_exec_config config = {.comm = world,
                               .backend = b,
                               .model = m,
                               .optim = &optim,
                               .layout = &layout,
                               .seed = 5,
                               .stall_seconds = 500,
                               .prof = &prof};
    assert_ok(nami_exec_new(&config, &e));
    int64_t pairs = 0;
    for (int i = 0; i < BATCH; i++) {
        int32_t target[TARGETS];
        read_one(nami_mix(3, (uint64_t)i), NULL, target);
        pairs += target[2 * MASKED] >= 0;
    }
    assert_ok(nami_exec_evaluate(e, 3, BATCH, &source, &r));
    assert_true(r.tokens == BATCH * TINY_TIME && r.pairs == pairs && pairs < BATCH);
    assert_true(fabs(r.part[0] - log(TINY_VOCABULARY)) < 0.2);
    assert_true(fabs(r.part[1] - log(2)) < 0.05);
    assert_true(r.loss == r.part[0] + r.part[1]);
    assert_true(r.right >= 0 && r.right <= r.pairs);
    for (int64_t i = 0; i < 40; i++)
        assert_ok(nami_exec_step(e, i, 1e-2, &source, &r));
    assert_ok(nami_exec_evaluate(e, 3, BATCH, &source, &r));
    assert_true(r.part[0] < 0.5 * log(TINY_VOCABULARY));
    nami_exec_free(e);
    nami_prof_close(&prof);
    nami_layout_free(&layout);
    nami_backend_close(b);
    nami_model_free(m);
}

/* MPI counts in an int: each of the two losses has three numbers a sample. */
static void test_numbers(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.clip = 0;
    p.tied = false;
    p.batch = 1 << 20;
    p.micros = p.partials = 1;
    const tiny_way w = {.schedule = "pipedream",
                        .positions = 1,
                        .waves = 1,
                        .chunks = 1,
                        .replicas = 1,
                        .window = 512};
    nami_model *m = masked_model(&p);
    nami_optim_options optim = tiny_optim(&p);
    nami_backend *b = NULL;
    nami_layout l;
    nami_budget budget;
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    assert_ok(tiny_layout(&p, &w, m, &l));
    assert_fails(nami_layout_budget(&l, m, &optim, b, &budget), NAMI_EPLAN,
                 "losses and gradient norms of 512 steps");
    nami_layout_free(&l);
    nami_backend_close(b);
    nami_model_free(m);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    tiny_other = masked_model;
    tiny_source = masked_read;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),      cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_device),
        cmocka_unit_test(test_windows),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_numbers),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
