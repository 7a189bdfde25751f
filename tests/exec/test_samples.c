/* SPDX-License-Identifier: MIT */
/* test_samples.c - micro-batches split by sample over any replicas of each position equal one rank to rounding. */
#include "tiny.h"

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F64,
                                   .dropout = 0.1,
                                   .clip = 1.0,
                                   .batch = 21,
                                   .micros = 3,
                                   .partials = 1,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 3};

static void compare(const tiny_problem *p, const tiny_way *w)
{
    tiny_outcome want = tiny_reference(p), got = tiny_run(world, p, w);
    for (int i = 0; i < p->steps; i++) {
        if (!tiny_near(got.loss[i], want.loss[i], 1e-9) ||
            !tiny_near(got.norm[i], want.norm[i], 1e-9))
            printf("rank %d, %s: step %d loss %a expected %a norm %a expected %a\n",
                   rank, w->schedule, i, got.loss[i], want.loss[i], got.norm[i],
                   want.norm[i]);
        assert_true(tiny_near(got.loss[i], want.loss[i], 1e-9));
        assert_true(tiny_near(got.norm[i], want.norm[i], 1e-9));
    }
    assert_true(tiny_near(got.valid, want.valid, 1e-9));
}

/* Ways to give all ranks to positions, as 3-1 or 1-2-1. */
static const int given[][4] = {
    {1},    {2},    {1, 1}, {3},       {2, 1},    {1, 2},       {1, 1, 1}, {4},
    {3, 1}, {1, 3}, {2, 2}, {2, 1, 1}, {1, 2, 1}, {1, 1, 1, 1}, {4, 3, 1}, {1, 2, 5}};

static void compare_all(const tiny_problem *p, const char *schedule, int waves)
{
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        int list[4], positions = 0, ranks = 0;
        for (; positions < 4 && given[i][positions] > 0; positions++) {
            list[positions] = given[i][positions];
            ranks += list[positions];
        }
        if (ranks != size)
            continue;
        tiny_way w = {.schedule = schedule,
                      .positions = positions,
                      .waves = waves,
                      .chunks = 1,
                      .replicas = 1,
                      .split = NAMI_SPLIT_SAMPLE,
                      .stage_replicas = {.item = list, .count = positions}};
        compare(p, &w);
    }
}

static void test_linear(void **state)
{
    (void)state;
    tiny_problem p = basis;
    compare_all(&p, "dapple", 1);
    p.recompute = true;
    tiny_bucket = 256; /* gradients go over replicas in many pieces */
    compare_all(&p, "zb-h1", 1);
    tiny_bucket = 0;
}

/* Positions with several stages; a tied embedding at both ends, which positions of unequal replicas exchange. */
static void test_wave(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.tied = true;
    compare_all(&p, "hanayo", 1);
    compare_all(&p, "dapple", 1);
}

/* Fewer micro-batches than positions, as many samples as replicas. */
static void test_few(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.micros = 1;
    p.batch = size < 4 ? 4 : size;
    compare_all(&p, "gpipe", 1);
    p.micros = 2;
    p.batch = size < 8 ? 10 : 22;
    compare_all(&p, "dapple", 1);
}

/* Whole micro-batches a replica: which pieces of gradients go over replicas together changes no bit. */
static void test_pieces(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.tied = true;
    p.act = NAMI_F32;
    p.micros = p.partials = size;
    p.batch = 2 * size;
    for (int positions = 1; positions <= size; positions++) {
        if (size % positions != 0)
            continue;
        tiny_way w = {.schedule = "hanayo",
                      .positions = positions,
                      .waves = 1,
                      .chunks = 1,
                      .replicas = size / positions};
        p.partials = w.replicas;
        tiny_outcome whole = tiny_run(world, &p, &w);
        tiny_bucket = 128;
        tiny_outcome pieces = tiny_run(world, &p, &w);
        tiny_bucket = 0;
        assert_memory_equal(&whole, &pieces, sizeof whole);
    }
}

/* A stage's own norm: the same stages in another order give the same bits, all holders of a tied parameter agree, and it
 * is not the norm of all. */
static void test_scope(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.tied = true;
    p.clip = 0.1;
    p.clip_scope = NAMI_CLIP_STAGE;
    tiny_way w = {.schedule = "dapple",
                  .positions = size,
                  .waves = 1,
                  .chunks = 1,
                  .replicas = 1};
    tiny_outcome one = tiny_run(world, &p, &w);
    w.schedule = "gpipe";
    tiny_outcome two = tiny_run(world, &p, &w);
    p.clip_scope = NAMI_CLIP_ALL;
    tiny_outcome all = tiny_run(world, &p, &w);
    assert_memory_equal(&one, &two, sizeof one);
    assert_true((one.parameters == all.parameters) == (size == 1));
}

/* A device, whose parts of messages lie in mirrors. */
static void test_device(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.batch = size < 8 ? p.batch : 27;
    p.backend = "emu";
    p.act = NAMI_F32;
    tiny_problem host = p;
    host.backend = "ref";
    int list[2] = {size - 1, 1};
    tiny_way w = {.schedule = "dapple",
                  .positions = size > 1 ? 2 : 1,
                  .waves = 1,
                  .chunks = 1,
                  .replicas = 1,
                  .split = NAMI_SPLIT_SAMPLE};
    if (size > 1)
        w.stage_replicas = (nami_ints){.item = list, .count = 2};
    tiny_outcome one = tiny_run(world, &p, &w), two = tiny_run(world, &host, &w);
    assert_memory_equal(&one, &two, sizeof one);
}

static void test_refusals(void **state)
{
    (void)state;
    int list[2] = {5, 1};
    nami_layout l;
    tiny_problem p = basis;
    p.batch = 12;
    nami_model *m = tiny_model(&p);
    tiny_way w = {.schedule = "dapple",
                  .positions = 2,
                  .waves = 1,
                  .chunks = 1,
                  .replicas = 1,
                  .split = NAMI_SPLIT_SAMPLE,
                  .stage_replicas = {.item = list, .count = 2}};
    assert_fails(
        tiny_layout(&p, &w, m, &l), NAMI_EPLAN,
        "position 0 has 5 replicas, but a micro-batch has only 4 samples "
        "(train.batch = 12 / pipeline.microbatches = 3): 1 replicas would have "
        "none");
    p.partials = 3;
    list[0] = 4;
    assert_fails(tiny_layout(&p, &w, m, &l), NAMI_EPLAN,
                 "train.partials = 3 does not go with split = sample");
    nami_model_free(m);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),   cmocka_unit_test(test_wave),
        cmocka_unit_test(test_few),      cmocka_unit_test(test_device),
        cmocka_unit_test(test_pieces),   cmocka_unit_test(test_scope),
        cmocka_unit_test(test_refusals),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
