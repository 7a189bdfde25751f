/* SPDX-License-Identifier: MIT */
/* test_statistics.c - running statistics of batch norm have no versions: without a flush, with replicas and poisoned
 * weights, on a device, they are what one rank makes of them. */
#define TINY_TIME 1 /* an image has one target */
#include "tiny.h"

#include <math.h>

#include "family.h"

enum { SIDE = 8, CLASSES = 4 };

static nami_model *net(const tiny_problem *p)
{
    nami_model *m = NULL;
    nami_model_options o = {.image_height = SIDE,
                            .image_width = SIDE,
                            .image_channels = 3,
                            .classes = CLASSES};
    o.family = family_named("resnet20");
    assert_ok(nami_model_new(&o, p->dropout, &m));
    return m;
}

/* Images of a class are brighter in its channel. */
static nami_status read_images(void *context, int64_t step, int64_t first,
                               int64_t count, int32_t *token, int32_t *target)
{
    (void)context;
    for (int64_t s = first; s < first + count; s++) {
        int32_t class = (int32_t)(nami_mix((uint64_t)step, (uint64_t)s) % CLASSES);
        for (int64_t i = 0; token != NULL && i < SIDE * SIDE * 3; i++) {
            uint64_t noise = nami_mix((uint64_t)(step * 1000 + s), (uint64_t)i);
            float x = (float)(noise % 1000) / 1000 + (i % 3 == class ? 1.0f : 0.0f);
            memcpy(&token[(s - first) * SIDE * SIDE * 3 + i], &x, sizeof x);
        }
        if (target != NULL)
            target[s - first] = class;
    }
    return NAMI_OK;
}

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .clip = 0,
                                   .batch = 8,
                                   .micros = 2,
                                   .partials = 1,
                                   .optimizer = NAMI_OPTIMIZER_SGD,
                                   .steps = 3};

static tiny_way way(const char *schedule, int positions)
{
    return (tiny_way){.schedule = schedule,
                      .positions = positions,
                      .waves = 1,
                      .chunks = 1,
                      .replicas = 1,
                      .window = 3};
}

/* One rank that updates behind each step is plain training: all statistics, too. */
static void test_alone(void **state)
{
    (void)state;
    if (size > 1)
        return;
    tiny_way steps = way("gpipe", 1), window = way("pipedream", 1);
    tiny_outcome want = tiny_run(world, &basis, &steps);
    tiny_poison = true;
    tiny_outcome got = tiny_run(world, &basis, &window);
    tiny_poison = false;
    assert_true(isfinite(want.valid));
    assert_memory_equal(&got, &want, sizeof got);
}

/* Versions come and go, statistics stay: the evaluation behind it reads them. */
static void test_poison(void **state)
{
    (void)state;
    tiny_way w = way("pipedream", size);
    tiny_outcome want = tiny_run(world, &basis, &w);
    tiny_poison = true;
    tiny_outcome got = tiny_run(world, &basis, &w);
    assert_true(isfinite(want.valid));
    assert_memory_equal(&got, &want, sizeof got);
    tiny_problem p = basis;
    p.backend = "emu";
    got = tiny_run(world, &p, &w);
    tiny_poison = false;
    assert_memory_equal(&got, &want, sizeof got);
}

/* Replicas add their own micro-batches' statistics; all of them end with the same ones (the checksum says). */
static void test_replicas(void **state)
{
    (void)state;
    tiny_way w = way("ashpipe", 1);
    w.replicas = size;
    tiny_outcome got = tiny_run(world, &basis, &w);
    assert_true(isfinite(got.valid));
}

/* Replicas that keep slices update those of the statistics, and all get them. */
static void test_slices(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.micros = p.partials = size;
    p.steps = 2;
    tiny_way w = way("gpipe", 1);
    w.replicas = size;
    tiny_outcome want = tiny_run(world, &p, &w);
    w.zero = true;
    tiny_outcome got = tiny_run(world, &p, &w);
    assert_true(isfinite(got.valid));
    assert_memory_equal(&got, &want, sizeof got);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    tiny_other = net;
    tiny_source = read_images;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_slices),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
