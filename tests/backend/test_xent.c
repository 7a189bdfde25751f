/* SPDX-License-Identifier: MIT */
/* test_xent.c - cross entropy with smoothed labels against PyTorch's numbers, made by validation/torch/xent.py. */
#include "backend/backend.h"
#include "numbers.h"

enum { ROWS = 10, CLASSES = 37, COUNT = ROWS * CLASSES };

static void check(const char *backend, nami_dtype act, double tolerance)
{
    static const double smoothing[] = {0, 0.1, 0.5};
    numbers n = numbers_read("tests/data/torch-xent.txt");
    nami_backend *b;
    assert_ok(nami_backend_open(backend, 1, act, &b));
    for (int s = 0; s < 3; s++) {
        double logits[COUNT], loss[2], mean[1];
        int32_t target[ROWS];
        int counted = 0;
        for (int i = 0; i < ROWS; i++) {
            target[i] = i % 4 ? (int32_t)(numbers_hash(1, (uint64_t)i) % CLASSES) : -1;
            counted += target[i] >= 0;
        }
        for (int i = 0; i < COUNT; i++)
            numbers_set(act, logits, i, 16 * numbers_uniform(0, (uint64_t)i));
        nami_arg_xent a = {.act = act,
                           .batch = 2,
                           .time = ROWS / 2,
                           .vocabulary = CLASSES,
                           .logits = logits,
                           .target = target,
                           .scale = 1.0 / counted,
                           .smoothing = smoothing[s],
                           .gradient = true,
                           .loss = loss};
        const nami_prepared *p;
        assert_ok(nami_backend_prepare(b, NAMI_XENT_F, &a, &p));
        nami_backend_wait(b, nami_backend_launch(b, 0, p, &a));
        mean[0] = (loss[0] + loss[1]) / counted;
        for (int i = COUNT - 1; i >= 0; i--) /* widen in place */
            numbers_set(NAMI_F64, logits, i, numbers_get(act, logits, i));
        char *name = nami_strf("loss/%g", smoothing[s]);
        numbers_compare(&n, name, mean, 1, tolerance);
        nami_free(name);
        name = nami_strf("gradient/%g", smoothing[s]);
        numbers_compare(&n, name, logits, COUNT, tolerance);
        nami_free(name);
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
    check("cpu", NAMI_F32, 2e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
