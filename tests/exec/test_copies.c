/* SPDX-License-Identifier: MIT */
/* test_copies.c - two copies of the weights, in opposite directions: the losses of one rank to rounding, and copies
 * that stay equal to the last bit. */
#include "tiny.h"

#include <math.h>

static const char *const schedules[] = {"gems", "chimera", "chimera-doubling",
                                        "dualpipe"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F64,
                                   .tied = true,
                                   .dropout = 0.1,
                                   .clip = 0.5,
                                   .batch = 16,
                                   .micros = 16,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 5};

/* Relative difference that another order of a few sums may make, over the steps of a test. */
static double tolerance(nami_dtype act)
{
    return act == NAMI_F64 ? 1e-10 : 1e-5;
}

static bool near(double a, double b, double by)
{
    return fabs(a - b) <= by * fabs(b);
}

/* Whether the schedule admits the problem; then it promises rounding only. */
static bool admitted(const tiny_problem *p, const tiny_way *w)
{
    char text[256];
    nami_layout layout;
    nami_model *m = tiny_model(p);
    bool can = tiny_layout(p, w, m, &layout) == NAMI_OK;
    if (can) {
        assert_false(nami_layout_exact(&layout, text));
        assert_non_null(strstr(text, "2 copies"));
    }
    nami_fail_clear();
    nami_layout_free(&layout);
    nami_model_free(m);
    return can;
}

/* tiny_run asserts that all holders of a parameter, so both copies, have the same bits. */
static void compare(const tiny_problem *p, const tiny_way *w, const tiny_outcome *want)
{
    const double by = tolerance(p->act);
    const tiny_outcome got = tiny_run(world, p, w);
    bool good = near(got.valid, want->valid, by);
    for (int i = 0; i < p->steps; i++)
        good = good && near(got.loss[i], want->loss[i], by) &&
               near(got.norm[i], want->norm[i], 10 * by);
    for (int i = 0; !good && i < p->steps; i++)
        print_error("rank %d: %s P %d D %d M %d %s, step %d: loss %.17g, expected "
                    "%.17g, norm %.17g, expected %.17g\n",
                    rank, w->schedule, w->positions, w->replicas, p->micros,
                    nami_dtype_name(p->act), i, got.loss[i], want->loss[i], got.norm[i],
                    want->norm[i]);
    assert_true(good);
}

/* All schedules at every number of replicas; returns, one bit each, which could run. */
static unsigned all_ways(const tiny_problem *p)
{
    const tiny_outcome want = tiny_reference(p);
    unsigned ran = 0;
    for (int d = 1; d <= size; d++) {
        if (size % d != 0 || p->micros % d != 0)
            continue;
        for (int i = 0; i < SCHEDULES; i++) {
            const tiny_way w = {.schedule = schedules[i],
                                .positions = size / d,
                                .replicas = d,
                                .waves = 1,
                                .chunks = 1};
            if (!admitted(p, &w))
                continue;
            compare(p, &w, &want);
            ran |= 1u << i;
        }
    }
    return ran;
}

static const unsigned every = (1u << SCHEDULES) - 1u, gems = 1;

static void test_f64(void **state)
{
    (void)state;
    tiny_problem p = basis;
    assert_int_equal(all_ways(&p), size % 2 == 0 ? every : gems);
    p.tied = false;
    p.clip = 0;
    p.recompute = true;
    assert_int_equal(all_ways(&p), size % 2 == 0 ? every : gems);
}

static void test_f32(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.act = NAMI_F32;
    p.optimizer = NAMI_OPTIMIZER_SGD;
    p.partials =
        4; /* of no use to copies, which make one sum each, but no harm either */
    assert_int_equal(all_ways(&p), size % 2 == 0 ? every : gems);
}

/* A copy with few micro-batches, with one, with none. */
static void test_few(void **state)
{
    (void)state;
    for (int micros = 1; micros <= 4; micros++) {
        tiny_problem p = basis;
        p.micros = micros;
        p.batch = 3 * micros;
        p.steps = 3;
        assert_true(all_ways(&p) & gems);
    }
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f64),
                                       cmocka_unit_test(test_f32),
                                       cmocka_unit_test(test_few)};
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
