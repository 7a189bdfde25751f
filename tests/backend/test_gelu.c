/* SPDX-License-Identifier: MIT */
/* test_gelu.c - x Phi(x) and its slope against the error function in double, down to both tails. */
#include "nami_test.h"

#include <math.h>

#include "backend/backend.h"

enum { COUNT = 2 * 12 * 256 + 1 };

static double at(int i)
{
    return (i - COUNT / 2) / 256.0;
}

static double bell(double x)
{
    return exp(-0.5 * x * x) / sqrt(8 * atan(1));
}

static void run(const char *name, float *x, float *y, float *dx)
{
    static float one[COUNT];
    nami_backend *b;
    const nami_prepared *p;
    nami_arg_unary a = {.act = NAMI_F32,
                        .function = NAMI_GELU_ERF,
                        .count = COUNT,
                        .x = x,
                        .y = y,
                        .dy = one,
                        .dx = dx};
    for (int i = 0; i < COUNT; i++)
        one[i] = 1;
    assert_ok(nami_backend_open(name, 1, NAMI_F32, &b));
    assert_ok(nami_backend_prepare(b, NAMI_UNARY_F, &a, &p));
    nami_backend_launch(b, 0, p, &a);
    assert_ok(nami_backend_prepare(b, NAMI_UNARY_BI, &a, &p));
    nami_backend_launch(b, 0, p, &a);
    nami_backend_close(b);
}

/* The value keeps its relative error where it is tiny: x^2/2 is rounded once before the exponential. */
static void test_values(void **state)
{
    (void)state;
    static const char *const name[] = {"ref", "cpu"};
    static float x[COUNT], y[COUNT], dx[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)at(i);
    for (int k = 0; k < 2; k++) {
        run(name[k], x, y, dx);
        for (int i = 0; i < COUNT; i++) {
            const double v = at(i), phi = 0.5 * erfc(-v / sqrt(2));
            if (!(fabs(y[i] - v * phi) <= (6e-7 + 6e-8 * v * v) * fabs(v * phi)))
                fail_msg("%s: gelu(%g) is %.9g, not %.9g", name[k], v, y[i], v * phi);
            if (!(fabs(dx[i] - phi - v * bell(v)) <= 6e-7))
                fail_msg("%s: gelu'(%g) is %.9g, not %.9g", name[k], v, dx[i],
                         phi + v * bell(v));
        }
    }
}

/* Numbers that overflow on the way, and those that are none. */
static void test_ends(void **state)
{
    (void)state;
    static float x[COUNT], y[COUNT], dx[COUNT];
    x[0] = -3e38F;
    x[1] = 3e38F;
    x[2] = NAN;
    x[3] = -20;
    run("cpu", x, y, dx);
    assert_true(y[0] == 0 && dx[0] == 0);
    assert_true(y[1] == x[1] && dx[1] == 1);
    assert_true(isnan(y[2]) && isnan(dx[2]));
    assert_true(y[3] == 0 && dx[3] == 0);
    assert_true(y[4] == 0 && dx[4] == 0.5F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests_name("gelu", tests, NULL, nami_test_balance);
}
