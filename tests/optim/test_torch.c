/* SPDX-License-Identifier: MIT */
/* test_torch.c - every optimiser against PyTorch's numbers, made in double by validation/torch/optim.py. */
#include "numbers.h"
#include "optim/optim.h"

enum { COUNT = 37, STEPS = 12 };

/* The cases of the script. */
static const struct {
    const char *name;
    nami_optim_options o;
} cases[] = {
    {"sgd", {.optimizer = NAMI_OPTIMIZER_SGD}},
    {"sgd-momentum", {.optimizer = NAMI_OPTIMIZER_SGD, .momentum = 0.9, .decay = 0.1}},
    {"sgd-nesterov",
     {.optimizer = NAMI_OPTIMIZER_SGD,
      .momentum = 0.8,
      .nesterov = true,
      .decay = 0.1}},
    {"adam",
     {.optimizer = NAMI_OPTIMIZER_ADAM,
      .beta1 = 0.8,
      .beta2 = 0.99,
      .eps = 1e-4,
      .decay = 0.1}},
    {"adamw",
     {.optimizer = NAMI_OPTIMIZER_ADAMW,
      .beta1 = 0.8,
      .beta2 = 0.99,
      .eps = 1e-4,
      .decay = 0.1}},
    {"rmsprop", {.optimizer = NAMI_OPTIMIZER_RMSPROP, .alpha = 0.9, .eps = 1e-4}},
    {"rmsprop-momentum",
     {.optimizer = NAMI_OPTIMIZER_RMSPROP,
      .alpha = 0.9,
      .eps = 1e-4,
      .momentum = 0.7,
      .decay = 0.1}},
    {"rmsprop-centered",
     {.optimizer = NAMI_OPTIMIZER_RMSPROP,
      .alpha = 0.9,
      .eps = 1e-4,
      .centered = true,
      .decay = 0.1}},
    {"rmsprop-both",
     {.optimizer = NAMI_OPTIMIZER_RMSPROP,
      .alpha = 0.9,
      .eps = 1e-4,
      .momentum = 0.7,
      .centered = true}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Weights after all steps; half of each gradient comes as its factor, as clipping does it. */
static void train(nami_backend *b, nami_dtype wide, const nami_optim_options *o,
                  double *out)
{
    double w[COUNT], g[COUNT], state[NAMI_OPTIM_STATES][COUNT] = {{0}};
    nami_optim_kernels k;
    nami_optim_item item = {.count = COUNT, .decay = true, .w = w, .g = g};
    nami_optim_place(o, state, sizeof *state, &item);
    for (int i = 0; i < COUNT; i++)
        numbers_set(wide, w, i, numbers_uniform(0, (uint64_t)i));
    assert_ok(nami_optim_prepare(o, b, wide, COUNT, &k));
    for (int t = 1; t <= STEPS; t++) {
        for (int i = 0; i < COUNT; i++)
            numbers_set(wide, g, i,
                        2 * numbers_uniform((uint64_t)t, (uint64_t)i) *
                            pow(10, -(i % 4)));
        nami_optim_update(o, b, 0, &k, wide, &item, 0.01 * (1 + t % 3), 0.5, t - 1);
    }
    for (int i = 0; i < COUNT; i++)
        out[i] = numbers_get(wide, w, i);
}

static void check(const char *backend, nami_dtype wide, double tolerance)
{
    numbers n = numbers_read("tests/data/torch-optim.txt");
    nami_backend *b;
    double w[COUNT];
    assert_ok(nami_backend_open(backend, 1, wide, &b));
    for (int c = 0; c < CASES; c++) {
        train(b, wide, &cases[c].o, w);
        numbers_compare(&n, cases[c].name, w, COUNT, tolerance);
    }
    nami_backend_close(b);
    numbers_free(&n);
}

static void test_double(void **state)
{
    (void)state;
    check("ref", NAMI_F64, 1e-9);
}

static void test_float(void **state)
{
    (void)state;
    check("ref", NAMI_F32, 1e-6);
}

static void test_cpu(void **state)
{
    (void)state;
    check("cpu", NAMI_F32, 1e-6);
}

/* Every rate, without a warm-up. */
static void test_rates(void **state)
{
    (void)state;
    enum { RATE_STEPS = 30 };
    int milestones[] = {5, 6, 20};
    const struct {
        const char *name;
        nami_optim_options o;
    } rates[] = {
        {"rate/cosine", {.rate = NAMI_RATE_COSINE, .min_lr = 0.04}},
        {"rate/polynomial", {.rate = NAMI_RATE_POLYNOMIAL, .rate_power = 2}},
        {"rate/step", {.rate = NAMI_RATE_STEP, .rate_factor = 0.5, .rate_every = 7}},
        {"rate/milestones",
         {.rate = NAMI_RATE_STEP, .rate_factor = 0.1, .milestones = {3, milestones}}},
        {"rate/exponential",
         {.rate = NAMI_RATE_EXPONENTIAL, .rate_factor = 0.97, .rate_every = 1}},
    };
    numbers n = numbers_read("tests/data/torch-optim.txt");
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        nami_optim_options o = rates[r].o;
        double ours[RATE_STEPS];
        o.lr = 0.4;
        for (int step = 0; step < RATE_STEPS; step++)
            ours[step] = nami_optim_rate(&o, step, RATE_STEPS);
        numbers_compare(&n, rates[r].name, ours, RATE_STEPS, 1e-9);
    }
    numbers_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
