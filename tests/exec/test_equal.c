/* SPDX-License-Identifier: MIT */
/* test_equal.c - every schedule at any number of positions and replicas gives the bits of one rank.
 *
 * NAMI_TEST_LONG=1 tries every way on every kind of problem.
 */
#include "tiny.h"

static const tiny_way ways[] = {
    {.schedule = "gpipe", .waves = 1, .chunks = 1},
    {.schedule = "dapple", .waves = 1, .chunks = 1},
    {.schedule = "interleaved", .waves = 1, .chunks = 2},
    {.schedule = "hanayo", .waves = 1, .chunks = 1},
    {.schedule = "hanayo", .waves = 2, .chunks = 1},
    {.schedule = "hanayo-paper", .waves = 1, .chunks = 1},
    {.schedule = "hanayo-paper", .waves = 2, .chunks = 1},
    {.schedule = "hanayo-zb", .waves = 1, .chunks = 1},
    {.schedule = "hanayo-zb", .waves = 2, .chunks = 1},
    {.schedule = "zb-h1", .waves = 1, .chunks = 1},
    {.schedule = "zb-h2", .waves = 1, .chunks = 1},
    {.schedule = "zb-v", .waves = 1, .chunks = 1},
    {.schedule = "dualpipev", .waves = 1, .chunks = 1},
};

static void print_way(const tiny_problem *p, const tiny_way *w)
{
    if (rank == 0)
        printf("%s %s %s%s%s dropout %g clip %g batch %d M %d A %d: %s P %d D %d W %d "
               "V %d\n",
               p->backend, nami_dtype_name(p->act),
               p->optimizer == NAMI_OPTIMIZER_SGD ? "sgd" : "adamw",
               p->tied ? " tied" : "", p->recompute ? " recompute" : "", p->dropout,
               p->clip, p->batch, p->micros, p->partials, w->schedule, w->positions,
               w->replicas, w->waves, w->chunks);
}

typedef enum promise { REFUSED, CLOSE, EXACT } promise;

/* What the layout promises: the bits of one replica, the same to rounding, or nothing: the schedule does not admit M. */
static promise promised(const tiny_problem *p, const tiny_way *w)
{
    char text[256];
    nami_layout layout;
    nami_model *m = tiny_model(p);
    bool admitted = tiny_layout(p, w, m, &layout) == NAMI_OK;
    nami_fail_clear();
    bool exact = admitted && nami_layout_exact(&layout, text);
    nami_layout_free(&layout);
    nami_model_free(m);
    return exact ? EXACT : admitted ? CLOSE : REFUSED;
}

static void compare(const tiny_problem *p, const tiny_way *w, const tiny_outcome *want)
{
    promise given = promised(p, w);
    if (given == REFUSED) {
        assert_true(strncmp(w->schedule, "zb-", 3) ==
                        0 || /* the others admit every M */
                    strcmp(w->schedule, "dualpipev") == 0);
        return;
    }
    tiny_outcome got = tiny_run(world, p, w);
    bool same = memcmp(&got, want, sizeof got) == 0;
    if (given == CLOSE) {
        for (int i = 0; i < p->steps; i++)
            assert_true(tiny_near(got.loss[i], want->loss[i], 1e-5));
        return;
    }
    if (!same) {
        print_way(p, w);
        for (int i = 0; rank == 0 && i < p->steps; i++)
            printf("step %d loss %a expected %a norm %a expected %a\n", i, got.loss[i],
                   want->loss[i], got.norm[i], want->norm[i]);
        printf("rank %d: evaluation %a expected %a, parameters %llx expected %llx\n",
               rank, got.valid, want->valid, (unsigned long long)got.parameters,
               (unsigned long long)want->parameters);
        fflush(stdout);
    }
    assert_true(same);
}

/* Ways `first`, first + every, ... on the ranks there are, for one problem. */
static void compare_some(const tiny_problem *p, size_t first, size_t every)
{
    tiny_outcome want = tiny_reference(p);
    assert_true(want.loss[p->steps - 1] <
                want.loss[0]); /* it learns: this is no empty run */
    tiny_problem same = *p;
    for (int d = 1; d <= size; d++) {
        if (size % d != 0 || p->partials % d != 0)
            continue;
        for (size_t i = first; i < sizeof ways / sizeof *ways; i += every) {
            tiny_way w = ways[i];
            w.positions = size / d;
            w.replicas = d;
            compare(&same, &w, &want);
            same.recompute = !same.recompute; /* changes no bit either */
        }
    }
}

/* One way in three, from `first` on; all with NAMI_TEST_LONG. */
static void compare_third(const tiny_problem *p, size_t first)
{
    const bool all = getenv("NAMI_TEST_LONG") != NULL;
    compare_some(p, all ? 0 : first, all ? 1 : 3);
}

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .dropout = 0.1,
                                   .clip = 1.0,
                                   .batch = 12,
                                   .micros = 4,
                                   .partials = 4,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = TINY_STEPS};

static void test_ref(void **state)
{
    (void)state;
    tiny_problem p = basis;
    compare_some(&p, 0, 1);
    p.tied = false;
    p.steps = 4;
    p.optimizer = NAMI_OPTIMIZER_SGD;
    compare_third(&p, 0);
}

static void test_ref_bf16(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.act = NAMI_BF16;
    compare_third(&p, 1);
}

/* Fewer micro-batches than positions, and many; partial sums of several micro-batches. */
static void test_counts(void **state)
{
    (void)state;
    static const int count[][2] = {{1, 1}, {2, 1}, {2, 2}, {5, 1},
                                   {6, 3}, {6, 6}, {8, 2}, {12, 4}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
        tiny_problem p = basis;
        p.steps = 3;
        p.micros = count[i][0];
        p.partials = count[i][1];
        p.batch = 2 * p.micros;
        compare_some(&p, i % 3, 3);
    }
}

static bool has_cpu(nami_dtype act)
{
    nami_backend *b = NULL;
    bool has = nami_backend_open("cpu", 1, act, &b) == NAMI_OK;
    if (has)
        nami_backend_close(b);
    nami_fail_clear();
    return has;
}

static void cpu(nami_dtype act, size_t first)
{
    if (!has_cpu(act))
        skip();
    tiny_problem p = basis;
    p.backend = "cpu";
    p.act = act;
    compare_third(&p, first);
    p.tied = false;
    p.steps = 4;
    compare_third(&p, (first + 1) % 3);
}

static void test_cpu(void **state)
{
    (void)state;
    cpu(NAMI_F32, 2);
}

static void test_cpu_bf16(void **state)
{
    (void)state;
    cpu(NAMI_BF16, 0);
}

static void test_llama(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_other = tiny_llama;
    p.steps = 3;
    p.backend = has_cpu(NAMI_F32) ? "cpu" : "ref";
    compare_some(&p, 0, 1);
    p.tied = false;
    p.dropout = 0;
    p.act = has_cpu(NAMI_BF16) ? NAMI_BF16 : NAMI_F32;
    compare_some(&p, 1, 3);
    tiny_other = NULL;
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),      cmocka_unit_test(test_ref_bf16),
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_cpu_bf16), cmocka_unit_test(test_llama),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
