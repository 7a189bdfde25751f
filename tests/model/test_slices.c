/* SPDX-License-Identifier: MIT */
/* test_slices.c - the whole GPT, and Llama, by token slices: finite differences, and the numbers of whole samples to rounding. */
#include <math.h>

#include "base/rng.h"
#include "chain.h"
#include "model/family.h"
#include "nami_test.h"

enum { TIME = 12 };

static nami_model *make(const nami_family *family, bool tied, double dropout)
{
    nami_model_options o = {.layers = 2,
                            .width = family == &nami_family_llama ? 18 : 15,
                            .heads = 3,
                            .context = TIME + 1,
                            .vocabulary = 11,
                            .kv_heads = 1,
                            .mlp_width = 10,
                            .rope_theta = 100,
                            .norm_eps = 1e-5,
                            .tied = tied,
                            .bias = true};
    nami_model *m;
    assert_ok(nami_model_of(family, &o, dropout, &m));
    return m;
}

static const int whole[] = {0, 6}, some[] = {0, 2, 5, 6};

static void open_chain(chain *c, const nami_model *m, const chain_options *o)
{
    chain_open(c, m, o);
    chain_spread(c);
    chain_tokens(c, o->seed);
    c->step = 3;
}

/* Central differences of every seventh element through three slices. */
static void check_gradient(const nami_family *family)
{
    nami_model *m = make(family, false, 0.25);
    chain c;
    open_chain(&c, m,
               &(chain_options){.backend = "ref",
                                .act = NAMI_F64,
                                .batch = 2,
                                .time = TIME,
                                .slices = 3,
                                .micro = 1,
                                .stages = 3,
                                .cut = some,
                                .seed = nami_test_seed(17)});
    chain_forward(&c);
    chain_backward(&c);
    chain_assert_differences(&c, 7);
    chain_close(&c);
    nami_model_free(m);
}

static void test_gradient(void **state)
{
    (void)state;
    check_gradient(&nami_family_gpt);
    check_gradient(&nami_family_llama);
}

/* Losses and gradients of `a` and `b` within `tolerance` of the largest gradient of each parameter. */
static void assert_near(const chain *a, const chain *b, double tolerance)
{
    for (int64_t i = 0; i < a->o.micro * a->o.batch; i++)
        if (!(fabs(a->loss[i] - b->loss[i]) <= tolerance * fabs(b->loss[i])))
            fail_msg("K = %d: loss of sample %lld is %.17g, whole %.17g", a->o.slices,
                     (long long)i, a->loss[i], b->loss[i]);
    for (int p = 0; p < a->model->params; p++) {
        double most = 1e-30;
        for (int64_t e = 0; e < chain_count(a, p); e++)
            most = fmax(most, fabs(chain_grad(b, p, e)));
        for (int64_t e = 0; e < chain_count(a, p); e++)
            if (!(fabs(chain_grad(a, p, e) - chain_grad(b, p, e)) <= tolerance * most))
                fail_msg("K = %d: gradient of %s[%lld] is %.17g, whole %.17g",
                         a->o.slices, a->model->param[p].name, (long long)e,
                         chain_grad(a, p, e), chain_grad(b, p, e));
    }
}

/* Every K against whole samples, on one stage and on three, with the backward in one piece and split. */
static void check_equal(const nami_family *family, const char *backend, nami_dtype act,
                        double tolerance)
{
    static const int slices[] = {2, 3, 4, 6, TIME};
    uint64_t seed = nami_test_seed(23);
    for (int way = 0; way < 4; way++) {
        nami_model *m = make(family, way % 2 == 0, way < 2 ? 0 : 0.2);
        chain_options o = {.backend = backend,
                           .act = act,
                           .batch = 3,
                           .time = TIME,
                           .micro = 2,
                           .stages = 1,
                           .cut = whole,
                           .seed = seed};
        chain want;
        open_chain(&want, m, &o);
        chain_forward(&want);
        chain_backward(&want);
        for (int i = 0; i < 5; i++) {
            chain got;
            o.slices = slices[i];
            o.stages = way % 2 ? 3 : 1;
            o.cut = way % 2 ? some : whole;
            o.split = i % 2 == 1;
            open_chain(&got, m, &o);
            chain_forward(&got);
            chain_backward(&got);
            assert_near(&got, &want, tolerance);
            chain_close(&got);
        }
        chain_close(&want);
        nami_model_free(m);
    }
}

static void test_f64(void **state)
{
    (void)state;
    check_equal(&nami_family_gpt, "ref", NAMI_F64, 1e-12);
    check_equal(&nami_family_llama, "ref", NAMI_F64, 1e-12);
}

static void test_ref(void **state)
{
    (void)state;
    check_equal(&nami_family_gpt, "ref", NAMI_F32, 1e-5);
    check_equal(&nami_family_gpt, "ref", NAMI_BF16, 0.05);
}

static bool has_cpu(nami_dtype act)
{
    nami_backend *b = NULL;
    bool has = nami_backend_open("cpu", 1, act, &b) == NAMI_OK;
    nami_backend_close(b);
    nami_fail_clear();
    return has;
}

static void test_cpu(void **state)
{
    (void)state;
    if (!has_cpu(NAMI_F32))
        skip();
    check_equal(&nami_family_gpt, "cpu", NAMI_F32, 2e-5);
    check_equal(&nami_family_llama, "cpu", NAMI_F32, 2e-5);
    if (has_cpu(NAMI_BF16)) {
        check_equal(&nami_family_gpt, "cpu", NAMI_BF16, 0.05);
        check_equal(&nami_family_llama, "cpu", NAMI_BF16, 0.05);
    }
}

/* An evaluation keeps keys and values between slices, and nothing else. */
static void test_evaluate_keeps(void **state)
{
    (void)state;
    nami_backend *b;
    nami_graph *g;
    nami_model *m = make(&nami_family_gpt, true, 0);
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    assert_ok(nami_model_graph_sliced(m, 0, 6, b, NAMI_F32, 2, TIME, 3, &g));
    assert_ok(nami_graph_plan(g, false, false, false));
    size_t qkv = (2 * TIME / 3 * 3 * 15 * sizeof(float) + 63) / 64 * 64;
    assert_int_equal(nami_graph_bytes(g)->kept, 2 * qkv);
    nami_graph_free(g);
    nami_backend_close(b);
    nami_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_model *m = make(&nami_family_gpt, true, 0);
    assert_ok(nami_model_slices(m, TIME, 4));
    assert_fails(nami_model_slices(m, TIME, 5), NAMI_EPLAN, "the remainder is 2");
    assert_fails(nami_model_slices(m, TIME, 24), NAMI_EPLAN, "into 24 equal slices");
    nami_family other = nami_family_gpt;
    other.causal = false;
    other.name = "both ways";
    m->family = &other;
    assert_fails(nami_model_slices(m, TIME, 4), NAMI_EPLAN, "family both ways");
    m->family = &nami_family_gpt;
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_ref),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_evaluate_keeps),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("slices", tests, NULL, nami_test_balance);
}
