/* SPDX-License-Identifier: MIT */
/* test_images.c - a small image model with batch norm, and a vision transformer: the same bits on every layout, running statistics included. */
#define TINY_TIME 1 /* one class a sample */
#include "tiny_image.h"

#include <math.h>

static nami_model *image_model(const tiny_problem *p)
{
    static char layers[] =
        "conv 8 3 pad 1 bias no, norm, relu | max 2 | conv 12 3 pad 1 bias no, norm, "
        "relu, dropout | conv 12 3 pad 1 groups 3, silu | conv 16 3 stride 2 pad 1 "
        "bias "
        "no, norm | relu, global, flatten | linear 11, relu | dropout, linear classes";
    nami_model *m = NULL;
    nami_model_options o = {.chain = layers,
                            .image_height = SIZE,
                            .image_width = SIZE,
                            .image_channels = CHANNELS,
                            .classes = CLASSES};
    o.family = family_named("chain");
    assert_ok(nami_model_new(&o, p->dropout, &m));
    return m;
}

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
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
    {.schedule = "zb-h1", .waves = 1, .chunks = 1},
};

/* Every way on the ranks there are, with and without replicas, recomputing every other time. */
static void compare_all(tiny_problem p)
{
    const tiny_outcome want = tiny_reference(&p);
    assert_true(want.loss[p.steps - 1] < want.loss[0]);
    assert_true(isfinite(want.valid));
    for (int d = 1; d <= size; d++) {
        for (size_t i = 0; size % d == 0 && i < sizeof ways / sizeof *ways; i++) {
            tiny_way w = ways[i];
            w.positions = size / d;
            w.replicas = d;
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
}

static void test_ref(void **state)
{
    (void)state;
    compare_all(basis);
}

static void test_cpu(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.backend = "cpu";
    compare_all(p);
    p.act = NAMI_BF16;
    p.optimizer = NAMI_OPTIMIZER_SGD;
    p.dropout = 0; /* then a ReLU in front of it is the last of its block */
    compare_all(p);
}

static void test_vit(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_other = tiny_vit;
    compare_all(p);
    p.backend = "cpu";
    p.act = NAMI_BF16;
    p.dropout = 0;
    compare_all(p);
    tiny_other = image_model;
}

/* The mean and variance that a step leaves, from the outside: the first batch norm sees x convolved, by hand. */
static double expected[2];

static void keep_statistics(nami_exec *e, const nami_model *m, int states, int64_t step)
{
    static const char *const name[2] = {"1.running_mean", "1.running_var"};
    (void)states;
    for (int k = 0; k < 2 && step == 1; k++) {
        const float *x = nami_exec_array(e, nami_model_find(m, name[k]), 0).data;
        if (x)
            assert_true(fabs((double)x[0] - expected[k]) < 1e-5);
    }
}

/* Channel 0 of the first convolution at pixel (h,w) of an image. */
static double convolved(const float *image, const float *weight, int h, int w)
{
    double sum = 0;
    for (int c = 0; c < CHANNELS; c++)
        for (int i = 0; i < 9; i++) {
            const int y = h + i / 3 - 1, x = w + i % 3 - 1;
            if (y >= 0 && y < SIZE && x >= 0 && x < SIZE)
                sum += (double)image[(y * SIZE + x) * CHANNELS + c] *
                       (double)weight[c * 9 + i];
        }
    return sum;
}

static void test_statistics(void **state)
{
    (void)state;
    enum { BATCH = 12, MICROS = 4, EACH = BATCH / MICROS * SIZE * SIZE };
    static float image[BATCH][WORDS];
    float weight[CHANNELS * 9];
    tiny_problem p = basis;
    nami_model *m = image_model(&p);
    int32_t words[WORDS];
    nami_model_init(m, nami_model_find(m, "0.weight"), 5, 0, CHANNELS * 9, weight);
    for (int i = 0; i < BATCH; i++) {
        assert_ok(tiny_image_read(NULL, 0, i, 1, words, NULL));
        memcpy(image[i], words, sizeof words);
    }
    double mean = 0, var = 0; /* means over the micro-batches */
    for (int u = 0; u < MICROS; u++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < EACH; i++) {
            const double y = convolved(image[u * BATCH / MICROS + i / (SIZE * SIZE)],
                                       weight, i / SIZE % SIZE, i % SIZE);
            sum += y;
            squares += y * y;
        }
        mean += sum / EACH / MICROS;
        var += (squares - sum * sum / EACH) / (EACH - 1) / MICROS;
    }
    expected[0] = 0.1 * mean;
    expected[1] = 0.9 + 0.1 * var;
    tiny_between = keep_statistics;
    p.steps = 1;
    p.recompute = true;
    (void)tiny_run(world, &p,
                   &(tiny_way){.schedule = "dapple",
                               .positions = size,
                               .waves = 1,
                               .chunks = 1,
                               .replicas = 1});
    tiny_between = NULL;
    nami_model_free(m);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    tiny_other = image_model;
    tiny_source = tiny_image_read;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_vit),
        cmocka_unit_test(test_statistics),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
