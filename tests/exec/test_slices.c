/* SPDX-License-Identifier: MIT */
/* test_slices.c - token slices give the losses of whole samples on one rank, to rounding. */
#define TINY_TIME 12
#include "tiny.h"

#include <math.h>

#include "exec/share.h"

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .dropout = 0.1,
                                   .clip = 1.0,
                                   .batch = 12,
                                   .micros = 4,
                                   .partials = 1,
                                   .optimizer = NAMI_OPTIMIZER_SGD,
                                   .steps = 8};

static tiny_way way_of(int slices, int replicas)
{
    return (tiny_way){.schedule = "terapipe",
                      .positions = size / replicas,
                      .waves = 1,
                      .chunks = 1,
                      .replicas = replicas,
                      .slices = slices};
}

static void assert_near(const tiny_outcome *got, const tiny_outcome *want, int steps,
                        double tolerance)
{
    for (int i = 0; i < steps; i++) {
        if (!(fabs(got->loss[i] - want->loss[i]) <= tolerance * want->loss[i]) ||
            !(fabs(got->norm[i] - want->norm[i]) <= 10 * tolerance * want->norm[i]))
            fail_msg("step %d: loss %.9g norm %.9g, whole samples %.9g %.9g", i,
                     got->loss[i], got->norm[i], want->loss[i], want->norm[i]);
    }
    assert_true(fabs(got->valid - want->valid) <= tolerance * want->valid);
}

/* Every K on the ranks there are, with D = 1 and, where it divides, D = 2. */
static void compare(tiny_problem p, double tolerance)
{
    tiny_outcome want = tiny_reference(&p);
    assert_true(want.loss[p.steps - 1] < want.loss[0]);
    for (int d = 1; d <= 2; d++) {
        if (size % d != 0 || p.micros % d != 0)
            continue;
        for (int k = 1; k <= 4; k *= 2) {
            tiny_way w = way_of(k, d);
            p.partials = d;
            tiny_outcome got = tiny_run(world, &p, &w);
            assert_near(&got, &want, p.steps, k * d == 1 ? 0 : tolerance);
        }
    }
}

static void test_ref(void **state)
{
    (void)state;
    tiny_problem p = basis;
    compare(p, 1e-5);
    p.tied = false;
    p.optimizer = NAMI_OPTIMIZER_ADAMW;
    p.act = NAMI_BF16;
    p.steps = 4;
    compare(p, 0.01);
}

/* Fewer micro-batches than positions, and partial sums of several micro-batches. */
static void test_counts(void **state)
{
    (void)state;
    static const int count[][2] = {{1, 1}, {2, 1}, {4, 2}, {6, 3}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
        tiny_problem p = basis;
        p.steps = 3;
        p.micros = count[i][0];
        p.partials = count[i][1];
        tiny_outcome want = tiny_reference(&p);
        tiny_way w = way_of(i % 2 ? 3 : 2, 1);
        tiny_outcome got = tiny_run(world, &p, &w);
        assert_near(&got, &want, p.steps, 1e-5);
        want = tiny_alone(
            &p, w.slices); /* for one K the number of positions changes no bit */
        assert_memory_equal(&got, &want, sizeof got);
    }
}

static void test_cpu(void **state)
{
    (void)state;
    nami_backend *b = NULL;
    bool has = nami_backend_open("cpu", 1, NAMI_F32, &b) == NAMI_OK;
    nami_backend_close(b);
    nami_fail_clear();
    if (!has)
        skip();
    tiny_problem p = basis;
    p.backend = "cpu";
    compare(p, 1e-4);
}

static void test_llama(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_other = tiny_llama;
    p.steps = 4;
    compare(p, 1e-5);
    tiny_other = NULL;
}

/* A device with its own addresses and lanes. */
static void test_emu(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_outcome want = tiny_reference(&p);
    p.backend = "emu";
    tiny_way w = way_of(4, 1);
    tiny_outcome got = tiny_run(world, &p, &w);
    assert_near(&got, &want, p.steps, 1e-5);
}

/* Messages are those of a slice; a slot holds all slices of a micro-batch. */
static void test_sizes(void **state)
{
    (void)state;
    tiny_problem p = basis;
    nami_model *m = tiny_model(&p);
    nami_optim_options optim = tiny_optim(&p);
    nami_backend *b;
    assert_ok(nami_backend_open("ref", 1, p.act, &b));
    for (int k = 1; k <= 4; k *= 2) {
        nami_layout l;
        nami_blueprint blueprint;
        tiny_way w = way_of(k, 1);
        w.positions = 2;
        assert_ok(tiny_layout(&p, &w, m, &l));
        assert_int_equal(nami_layout_slices(&l), k);
        char text[256];
        assert_int_equal(nami_layout_exact(&l, text), k == 1);
        assert_ok(nami_blueprint_make(&l, m, &optim, b, &blueprint));
        nami_share s;
        assert_ok(nami_share_make(&blueprint, 0, 0, &s));
        assert_int_equal(s.boundary, nami_share_round(3 * 12 / (size_t)k * 12 * 4));
        assert_int_equal(s.train->kept[0], p.micros);
        assert_int_equal(s.evaluate->kept[0], 1);
        assert_int_equal(s.activation, (size_t)p.micros * (size_t)k * s.stage[0].kept);
        nami_share_free(&s);
        nami_blueprint_free(&blueprint);
        nami_layout_free(&l);
    }
    nami_backend_close(b);
    nami_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    tiny_problem p = basis;
    nami_model *m = tiny_model(&p);
    nami_layout l;
    tiny_way w = way_of(5, 1);
    assert_fails(tiny_layout(&p, &w, m, &l), NAMI_EPLAN,
                 "12 tokens cannot be cut into 5 equal slices (the remainder is 2)");
    w.slices = 4;
    p.recompute = true;
    assert_fails(tiny_layout(&p, &w, m, &l), NAMI_EPLAN, "pipeline.recompute = yes");
    nami_model_free(m);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),      cmocka_unit_test(test_counts),
        cmocka_unit_test(test_cpu),      cmocka_unit_test(test_emu),
        cmocka_unit_test(test_llama),    cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_refusals),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
