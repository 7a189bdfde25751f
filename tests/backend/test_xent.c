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
        a.scratch = nami_backend_alloc(b, NAMI_MEM_TRANSIENT, p->scratch + 1);
        nami_backend_wait(b, nami_backend_launch(b, 0, p, &a));
        nami_backend_free(b, a.scratch);
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

/* Places by hand: the largest, a tie won by the number, a tie lost, sixth, one that does not count. */
static void count_places(const char *backend, nami_dtype act)
{
    enum { T = 6, V = 7 };
    static const double value[T * V] = {1, 2, 9, 3, 4, 5, 6, 7, 1, 7, 0, 0, 0, 0,
                                        7, 1, 7, 0, 0, 0, 0, 6, 5, 4, 3, 2, 1, 0,
                                        6, 5, 4, 3, 2, 1, 0, 1, 1, 1, 1, 1, 1, 1};
    const int32_t target[T] = {2, 0, 2, 5, 4, -1};
    double logits[T * V], loss[2], best[2], five[2];
    nami_backend *b;
    const nami_prepared *p;
    assert_ok(nami_backend_open(backend, 1, act, &b));
    for (int gradient = 0; gradient < 2; gradient++) {
        for (int i = 0; i < T * V; i++)
            if (act == NAMI_BF16)
                ((uint16_t *)(void *)logits)[i] = nami_f32_to_bf16((float)value[i]);
            else
                numbers_set(act, logits, i, value[i]);
        nami_arg_xent a = {.act = act,
                           .batch = 2,
                           .time = T / 2,
                           .vocabulary = V,
                           .logits = logits,
                           .target = target,
                           .scale = 0.2,
                           .gradient = gradient,
                           .loss = loss,
                           .best = best,
                           .five = five};
        assert_ok(nami_backend_prepare(b, NAMI_XENT_F, &a, &p));
        a.scratch = nami_backend_alloc(b, NAMI_MEM_TRANSIENT, p->scratch + 1);
        nami_backend_wait(b, nami_backend_launch(b, 0, p, &a));
        nami_backend_free(b, a.scratch);
        assert_true(best[0] == 2 && five[0] == 3);
        assert_true(best[1] == 0 && five[1] == 1);
    }
    nami_backend_close(b);
}

static void test_places(void **state)
{
    (void)state;
    count_places("ref", NAMI_F64);
    count_places("ref", NAMI_F32);
    count_places("cpu", NAMI_F32);
    count_places("cpu", NAMI_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
