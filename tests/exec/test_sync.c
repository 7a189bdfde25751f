/* SPDX-License-Identifier: MIT */
/* test_sync.c - batch norm over replicas: D replicas with micro-batches of B samples train as one rank does with D B of
 * them, and at one D every layout gives the same bits.
 *
 * Batch norm over the joined batch is what PyTorch's SyncBatchNorm computes, and that of one rank is held against
 * PyTorch in tests/model. */
#define TINY_TIME 1 /* one class a sample */
#include "family.h"
#include "tiny.h"
#include "tiny_emu.h"

#include <math.h>

enum { SIZE = 6, CHANNELS = 3, CLASSES = 5, WORDS = SIZE * SIZE * CHANNELS };

static bool synced = true;

static nami_model *net(const tiny_problem *p)
{
    static char layers[] =
        "conv 7 3 pad 1 bias no, norm, relu | conv 10 3 pad 1, norm, silu, conv 9 1, "
        "norm | conv 12 3 stride 2 pad 1 bias no, norm, relu, dropout | global, "
        "flatten, linear classes";
    nami_model *m = NULL;
    nami_model_options o = {.chain = layers,
                            .image_height = SIZE,
                            .image_width = SIZE,
                            .image_channels = CHANNELS,
                            .classes = CLASSES,
                            .sync_batch_norm = synced};
    o.family = family_named("chain");
    assert_ok(nami_model_new(&o, p->dropout, &m));
    return m;
}

/* How one rank reads so that its micro-batches are those that replicas share: each has its own part of the step. */
static struct joint {
    int replicas, units; /* units of a replica; 0: as they come */
    int64_t micro;       /* of a replica */
} joint;

static int64_t sample_of(int64_t i)
{
    const int64_t each = joint.replicas * joint.micro, unit = i / (each ? each : 1);
    return joint.units == 0
               ? i
               : (i % each / joint.micro * joint.units + unit) * joint.micro +
                     i % joint.micro;
}

/* Noise around a pattern of the class; micro-batches differ in their means. */
static nami_status read_images(void *context, int64_t step, int64_t first,
                               int64_t count, int32_t *token, int32_t *target)
{
    (void)context;
    for (int64_t i = 0; i < count; i++) {
        const int64_t sample = step < 1000 ? sample_of(first + i) : first + i;
        const uint64_t key = nami_mix((uint64_t)step, (uint64_t)sample);
        const int32_t class = (int32_t)(key % CLASSES);
        for (int64_t w = 0; w < WORDS && token; w++) {
            const float pixel =
                (float)(nami_normal(key, (uint64_t)w) +
                        nami_normal((uint64_t) class, (uint64_t)w) + 0.2 * sample);
            memcpy(&token[i * WORDS + w], &pixel, sizeof pixel);
        }
        if (target)
            target[i] = class;
    }
    return NAMI_OK;
}

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F64,
                                   .batch = 24,
                                   .micros = 8,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 2};

static tiny_way way(const char *schedule, int positions, int replicas)
{
    return (tiny_way){.schedule = schedule,
                      .positions = positions,
                      .waves = 1,
                      .chunks = 1,
                      .replicas = replicas};
}

/* Losses, gradients by their norm, and running statistics by the loss of an evaluation. */
static void check_close(const char *what, const tiny_problem *p,
                        const tiny_outcome *got, const tiny_outcome *want, double bound)
{
    bool good = fabs(got->valid - want->valid) <= bound * fabs(want->valid);
    for (int i = 0; i < p->steps; i++)
        good = good && fabs(got->loss[i] - want->loss[i]) <= bound * want->loss[i] &&
               fabs(got->norm[i] - want->norm[i]) <= bound * want->norm[i];
    if (!good)
        fail_msg("%s: losses %.15g %.15g, norms %.15g %.15g, validation %.15g %.15g",
                 what, got->loss[p->steps - 1], want->loss[p->steps - 1],
                 got->norm[p->steps - 1], want->norm[p->steps - 1], got->valid,
                 want->valid);
}

/* One rank, with micro-batches as large as those of `replicas` together. */
static tiny_outcome join(tiny_problem p, int replicas)
{
    joint = (struct joint){.replicas = replicas,
                           .units = p.micros / replicas,
                           .micro = p.batch / p.micros};
    p.micros /= replicas;
    p.partials = 1;
    const tiny_outcome out = tiny_reference(&p);
    joint = (struct joint){0};
    return out;
}

static void test_joint(void **state)
{
    (void)state;
    static const struct {
        const char *backend;
        nami_dtype act;
        int batch, micros, optimizer;
        double bound;
    } kinds[] = {{"ref", NAMI_F64, 24, 8, NAMI_OPTIMIZER_ADAMW, 1e-10},
                 {"ref", NAMI_F64, 18, 6, NAMI_OPTIMIZER_SGD, 1e-10},
                 {"ref", NAMI_F32, 12, 4, NAMI_OPTIMIZER_SGD, 1e-5},
                 {"cpu", NAMI_F32, 24, 8, NAMI_OPTIMIZER_SGD, 1e-5}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int d = size > 1 ? 2 : 1; d <= size; d++) {
            tiny_problem p = basis;
            p.backend = kinds[i].backend;
            p.act = kinds[i].act;
            p.batch = kinds[i].batch;
            p.micros = kinds[i].micros;
            p.optimizer = kinds[i].optimizer;
            if (size % d != 0 || p.micros % d != 0)
                continue;
            tiny_way w = way("dapple", size / d, d);
            const tiny_outcome want = join(p, d), got = tiny_run(world, &p, &w);
            check_close(p.backend, &p, &got, &want, kinds[i].bound);
        }
}

/* Without the key replicas keep to themselves: the test above would notice. */
static void test_apart(void **state)
{
    (void)state;
    if (size != 2)
        skip();
    tiny_way w = way("dapple", 1, size);
    synced = false;
    const tiny_outcome apart = tiny_run(world, &basis, &w);
    synced = true;
    const tiny_outcome together = tiny_run(world, &basis, &w);
    assert_true(fabs(apart.loss[0] - together.loss[0]) > 1e-3);
    assert_true(fabs(apart.valid - together.valid) > 1e-3);
}

/* With one replica nothing is shared, and no bit differs. */
static void test_one(void **state)
{
    (void)state;
    tiny_way w = way("dapple", 1, 1);
    for (int cpu = 0; cpu < 2 && size == 1; cpu++) {
        tiny_problem p = basis;
        p.backend = cpu ? "cpu" : "ref";
        p.act = NAMI_F32;
        synced = false;
        const tiny_outcome want = tiny_run(world, &p, &w);
        synced = true;
        const tiny_outcome got = tiny_run(world, &p, &w);
        assert_memory_equal(&got, &want, sizeof got);
    }
}

static const tiny_way ways[] = {
    {.schedule = "gpipe", .waves = 1, .chunks = 1},
    {.schedule = "dapple", .waves = 1, .chunks = 1},
    {.schedule = "interleaved", .waves = 1, .chunks = 2},
    {.schedule = "hanayo", .waves = 1, .chunks = 1},
    {.schedule = "hanayo-zb", .waves = 1, .chunks = 1},
    {.schedule = "zb-h1", .waves = 1, .chunks = 1},
    {.schedule = "zb-h2", .waves = 1, .chunks = 1},
    {.schedule = "dapple", .waves = 1, .chunks = 1, .zero = true},
};

/* At one D the same bits, recomputing every other time: `every` way, and what one position alone can vary. */
static void check_bits(tiny_problem p, int replicas, size_t every)
{
    const size_t count = sizeof ways / sizeof *ways;
    tiny_outcome want = {0};
    every = replicas == size ? count - 1 : every;
    for (size_t i = 0; i < count; i += every) {
        tiny_way w = ways[i];
        w.positions = size / replicas;
        w.replicas = replicas;
        const tiny_outcome got = tiny_run(world, &p, &w);
        if (i == 0)
            want = got;
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%s %s on %d x %d%s: losses %a %a, validation %a %a", p.backend,
                     w.schedule, w.positions, replicas, p.recompute ? " again" : "",
                     got.loss[p.steps - 1], want.loss[p.steps - 1], got.valid,
                     want.valid);
        p.recompute = !p.recompute;
    }
}

static void test_bits(void **state)
{
    (void)state;
    for (int d = 2; d <= size; d++) {
        tiny_problem p = basis;
        if (size % d != 0 || p.micros % d != 0)
            continue;
        p.dropout = 0.1;
        p.clip = 1;
        p.act = NAMI_F32;
        p.partials = p.micros;
        if (d < size || size == 2)
            check_bits(p, d, 1);
        p.backend = "cpu";
        p.act = NAMI_BF16;
        p.micros = p.partials = d; /* fewer micro-batches than positions */
        check_bits(p, d, 4);
    }
}

/* Two copies of the model, each with replicas of its own. */
static void test_copies(void **state)
{
    (void)state;
    static const char *const schedule[] = {"chimera", "dualpipe"};
    if (size != 4)
        skip();
    for (int i = 0; i < 2; i++) {
        tiny_way w = way(schedule[i], 2, 2);
        const tiny_outcome want = join(basis, 2), got = tiny_run(world, &basis, &w);
        check_close(schedule[i], &basis, &got, &want, 1e-10);
    }
}

/* Replicas that divide every micro-batch, any number for each position, share the statistics of the whole: those of one rank. */
static void test_samples(void **state)
{
    (void)state;
    static const int given[][3] = {{2}, {3},    {2, 1}, {1, 2},
                                   {4}, {3, 1}, {1, 3}, {1, 2, 1}};
    tiny_problem p = basis;
    p.batch = 28;
    p.micros = 4; /* of 7 samples: parts differ */
    p.dropout = 0.1;
    const tiny_outcome want = tiny_reference(&p);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        int list[3], positions = 0, ranks = 0;
        for (; positions < 3 && given[i][positions] > 0; positions++)
            ranks += list[positions] = given[i][positions];
        if (ranks != size)
            continue;
        tiny_way w = way(positions > 1 ? "zb-h1" : "gpipe", positions, 1);
        w.split = NAMI_SPLIT_SAMPLE;
        w.stage_replicas = (nami_ints){.item = list, .count = positions};
        const tiny_outcome got = tiny_run(world, &p, &w);
        check_close(w.schedule, &p, &got, &want, 1e-10);
    }
}

/* Without a flush: one position is plain training. */
static void test_window(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_way w = way("ashpipe", 1, 1);
    if (size == 1)
        skip();
    p.micros = 2;
    p.partials = 1;
    w.stage_replicas = (nami_ints){.item = &size, .count = 1};
    w.window = 2;
    const tiny_outcome want = tiny_reference(&p);
    tiny_poison = true;
    const tiny_outcome got = tiny_run(world, &p, &w);
    tiny_poison = false;
    check_close("ashpipe", &p, &got, &want, 1e-10);
}

/* Several positions have late weights; as late ones, and the same groups, when replicas divide micro-batches or have
 * their own. */
static void test_late(void **state)
{
    (void)state;
    static int given[3][2] = {{2, 2}, {1, 3}, {3, 1}};
    if (size != 4)
        skip();
    tiny_problem p = basis;
    tiny_way w = way("pipedream", 2, 2);
    p.partials = 2;
    w.window = 2;
    const tiny_outcome want = tiny_run(world, &p, &w);
    joint = (struct joint){.replicas = 2, .units = p.micros / 2, .micro = 3};
    p.micros /= 2;
    p.partials = 1;
    for (int i = 0; i < 3; i++) {
        tiny_way divided = way("ashpipe", 2, 1);
        divided.stage_replicas = (nami_ints){.item = given[i], .count = 2};
        divided.window = 2;
        const tiny_outcome got = tiny_run(world, &p, &divided);
        check_close("divided", &p, &got, &want, 1e-10);
    }
    joint = (struct joint){0};
}

/* A device whose memory is its own, with delays: the bits of the reference. NAMI_TEST_LONG=1 tries many delays, and all
 * ways. */
static void test_emu(void **state)
{
    (void)state;
    const bool all = getenv("NAMI_TEST_LONG") != NULL;
    tiny_problem p = basis;
    p.act = NAMI_F32;
    if (size != 2 && !(all && size == 4))
        skip();
    tiny_way w = way("zb-h1", size / 2, 2);
    const tiny_outcome want = tiny_run(world, &p, &w);
    assert_ok(nami_option_defaults(&nami_emu_option_table, &tiny_emu));
    tiny_emu.jitter = 1e-4;
    tiny_open = tiny_emu_open;
    for (int i = 0; i < (all ? 40 : 1); i++) {
        tiny_emu.seed = i;
        p.recompute = all && i % 3 == 1;
        if (all)
            w = ways[(size_t)i % (sizeof ways / sizeof *ways)];
        w.positions = size / 2;
        w.replicas = 2;
        const tiny_outcome got = tiny_run(world, &p, &w);
        assert_memory_equal(&got, &want, sizeof got);
    }
    tiny_open = nami_backend_open;
}

/* What the layout says of itself. */
static void test_promise(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_way w = way("dapple", 1, 4);
    nami_model *m = net(&p);
    nami_layout l;
    char text[256];
    p.partials = 4;
    assert_ok(tiny_layout(&p, &w, m, &l));
    assert_false(nami_layout_exact(&l, text));
    assert_non_null(strstr(text, "4 micro-batches of 4 replicas together"));
    assert_int_equal(nami_layout_together(&l, 0), 12);
    nami_layout_free(&l);
    w = way("chimera", 2, 4);
    assert_ok(tiny_layout(&p, &w, m, &l));
    assert_false(nami_layout_exact(&l, text));
    assert_non_null(strstr(text, "with two copies of the model to rounding"));
    nami_layout_free(&l);
    w = way("dapple", 1, 1);
    assert_ok(tiny_layout(&p, &w, m, &l));
    assert_true(nami_layout_exact(&l, text));
    assert_int_equal(nami_layout_together(&l, 0), 0);
    nami_layout_free(&l);
    nami_model_free(m);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    tiny_other = net;
    tiny_source = read_images;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joint),  cmocka_unit_test(test_apart),
        cmocka_unit_test(test_one),    cmocka_unit_test(test_bits),
        cmocka_unit_test(test_copies), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_window), cmocka_unit_test(test_late),
        cmocka_unit_test(test_emu),    cmocka_unit_test(test_promise),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
