/* SPDX-License-Identifier: MIT */
/* test_gpt.c - the whole GPT, and Llama: gradient by finite differences; the same bits however it is cut, split, recomputed. */
#include <math.h>

#include "model/family.h"
#include "nami_test.h"
#include "ways.h"

static nami_model *make(const nami_family *family, bool tied, bool bias, double dropout,
                        int64_t width, int64_t vocabulary)
{
    nami_model_options o = {.layers = 2,
                            .width = width,
                            .heads = family == &nami_family_template ? 1
                                     : width % 3                     ? 2
                                                                     : 3,
                            .context = 13,
                            .vocabulary = vocabulary,
                            .kv_heads = tied ? 1 : 0,
                            .mlp_width = 10,
                            .rope_theta = 100,
                            .norm_eps = 1e-5,
                            .tied = tied,
                            .bias = bias};
    nami_model *m;
    assert_ok(nami_model_of(family, &o, dropout, &m));
    return m;
}

static void test_gradient(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(11);
    ways_gradient(make(&nami_family_gpt, true, true, 0, 6, 7), 2, 5, 3, seed);
    ways_gradient(make(&nami_family_gpt, false, false, 0.25, 6, 7), 2, 5, 3, seed);
    ways_gradient(make(&nami_family_llama, true, false, 0, 6, 7), 2, 5, 3, seed);
    ways_gradient(make(&nami_family_llama, false, false, 0.25, 6, 7), 2, 5, 3, seed);
    ways_gradient(make(&nami_family_template, false, true, 0, 5, 7), 2, 5, 3, seed);
}

/* A loss of ln V at the start. */
static void check_ways(const nami_family *family, const char *backend, nami_dtype act,
                       bool tied, double dropout)
{
    ways_check(make(family, tied, tied, dropout, 24, 37), backend, act, log(37));
}

static void test_ways_ref(void **state)
{
    (void)state;
    check_ways(&nami_family_gpt, "ref", NAMI_F32, true, 0.2);
    check_ways(&nami_family_gpt, "ref", NAMI_F32, false, 0);
    check_ways(&nami_family_gpt, "ref", NAMI_BF16, true, 0.2);
    check_ways(&nami_family_gpt, "ref", NAMI_BF16, true, 0);
    check_ways(&nami_family_llama, "ref", NAMI_F32, true, 0.2);
    check_ways(&nami_family_llama, "ref", NAMI_BF16, false, 0);
}

static void test_ways_cpu(void **state)
{
    (void)state;
    check_ways(&nami_family_gpt, "cpu", NAMI_F32, true, 0.2);
    check_ways(&nami_family_gpt, "cpu", NAMI_F32, false, 0);
    check_ways(&nami_family_gpt, "cpu", NAMI_BF16, true, 0.2);
    check_ways(&nami_family_gpt, "cpu", NAMI_BF16, false, 0);
    check_ways(&nami_family_llama, "cpu", NAMI_F32, false, 0);
    check_ways(&nami_family_llama, "cpu", NAMI_BF16, true, 0.2);
}

/* Dropout masks follow seed, step and sample: another of them, other gradients. */
static void test_masks(void **state)
{
    (void)state;
    nami_model *m = make(&nami_family_gpt, true, true, 0.2, 24, 37);
    chain a, b;
    ways_run(&a, m, "ref", NAMI_F32, 0);
    ways_run(&b, m, "ref", NAMI_F32, 0);
    for (int change = 0; change < 4; change++) {
        b.step = 5 + (change == 1);
        b.first_sample = 60 + (change == 2);
        b.o.seed = 42 + (change == 3);
        chain_zero(&b);
        chain_forward(&b);
        chain_backward(&b);
        assert_true((chain_loss(&a) == chain_loss(&b)) == (change == 0));
    }
    chain_close(&a);
    chain_close(&b);
    nami_model_free(m);
}

/* Evaluation: no dropout, nothing kept, and the loss a training graph without dropout gives. */
static void test_evaluate(void **state)
{
    (void)state;
    nami_model *m = make(&nami_family_gpt, true, true, 0.2, 24, 37);
    nami_model *plain = make(&nami_family_gpt, true, true, 0, 24, 37);
    chain a, b;
    ways_run(&a, plain, "ref", NAMI_F32, 0);
    ways_run(&b, m, "ref", NAMI_F32, 0);
    nami_graph *g;
    assert_ok(nami_model_graph(m, 0, 6, b.backend, NAMI_F32, 3, 11, &g));
    assert_ok(nami_graph_plan(g, false, false, false));
    const nami_graph_sizes *z = nami_graph_bytes(g),
                           *t = nami_graph_bytes(b.stage[0].graph);
    assert_true(z->kept == 0 && z->held == 0 && z->packed == t->packed);
    assert_true(z->flops[NAMI_FORWARD] > 0 && z->flops[NAMI_BACKWARD_INPUT] == 0);
    nami_graph_call call = {.input = b.token,
                            .targets = b.target,
                            .transient = nami_alloc(NAMI_MEM_TRANSIENT, z->transient),
                            .packed = b.stage[0].packed,
                            .param = b.stage[0].param,
                            .loss = b.loss};
    nami_walk w = {0};
    nami_walk_begin(&w, g, NAMI_WALK_F, &call);
    while (nami_walk_next(&w)) {
    }
    assert_memory_equal(a.loss, b.loss, 3 * sizeof(double));
    nami_free(call.transient);
    nami_graph_free(g);
    chain_close(&a);
    chain_close(&b);
    nami_model_free(m);
    nami_model_free(plain);
}

static void test_too_long(void **state)
{
    (void)state;
    nami_model *m = make(&nami_family_gpt, true, true, 0, 24, 37);
    nami_backend *b;
    nami_graph *g;
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    assert_fails(nami_model_graph(m, 0, 1, b, NAMI_F32, 1, 14, &g), NAMI_EINPUT,
                 "longer than model.context = 13");
    nami_backend_close(b);
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient), cmocka_unit_test(test_ways_ref),
        cmocka_unit_test(test_ways_cpu), cmocka_unit_test(test_masks),
        cmocka_unit_test(test_evaluate), cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
