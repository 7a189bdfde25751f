/* SPDX-License-Identifier: MIT */
/* test_synthetic.c - the family that takes set times: its options, its cuts, the same bits however it is cut. */
#include <math.h>

#include "base/clock.h"
#include "chain.h"
#include "graph/plan.h"
#include "family.h"
#include "nami_test.h"

static nami_model_options defaults(void)
{
    nami_model_options o = {0};
    assert_ok(nami_option_defaults(&nami_model_option_table, &o));
    o.family = family_named("synthetic");
    o.layers = 4;
    o.width = 5;
    o.context = 3;
    return o;
}

static void release(nami_model_options *o)
{
    nami_option_release(&nami_model_option_table, o);
}

static void test_times(void **state)
{
    (void)state;
    nami_model_options o = defaults();
    nami_model *m;
    nami_test_set(&nami_model_option_table, &o, "forward", "20ms");
    nami_test_set(&nami_model_option_table, &o, "backward_input", "1ms, 2ms 3ms,0.004");
    assert_ok(nami_model_new(&o, 0, &m));
    assert_int_equal(m->blocks, 4);
    assert_int_equal(m->options.vocabulary, 5);
    assert_true(nami_model_made_up(&o));
    for (int b = 0; b < 4; b++) {
        assert_true(fabs(m->seconds[b] - 0.02) < 1e-12);
        assert_true(fabs(m->seconds[4 + b] - 0.001 * (b + 1)) < 1e-12);
        assert_true(fabs(m->seconds[8 + b] - 0.1) < 1e-12);
    }
    nami_model_free(m);
    release(&o);
    o = defaults();
    o.family = 0;
    assert_false(nami_model_made_up(&o));
    release(&o);
}

/* Times are those of `samples` samples: others take their share. */
static void test_samples(void **state)
{
    (void)state;
    nami_model_options o = defaults();
    nami_model *m;
    nami_backend *b = NULL;
    nami_graph *g = NULL;
    const struct {
        const char *samples;
        int64_t batch, nanoseconds;
    } cases[] = {
        {"0", 3, 20000000}, {"8", 3, 7500000}, {"8", 8, 20000000}, {"8", 24, 60000000}};
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    nami_test_set(&nami_model_option_table, &o, "forward", "20ms");
    for (int i = 0; i < 4; i++) {
        nami_test_set(&nami_model_option_table, &o, "samples", cases[i].samples);
        assert_ok(nami_model_new(&o, 0, &m));
        assert_ok(nami_model_graph(m, 1, 2, b, NAMI_F32, cases[i].batch, 3, &g));
        assert_int_equal(g->node[0].whole[0], cases[i].nanoseconds);
        nami_graph_free(g);
        nami_model_free(m);
    }
    nami_backend_close(b);
    release(&o);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_model_options o = defaults();
    nami_model *m;
    nami_test_set(&nami_model_option_table, &o, "forward", "fast");
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "'fast' is not a duration");
    nami_test_set(&nami_model_option_table, &o, "forward", "1ms 2ms");
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "synthetic.forward has 2");
    nami_test_set(&nami_model_option_table, &o, "forward", " ");
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "synthetic.forward has 0");
    nami_test_set(&nami_model_option_table, &o, "forward", "1ms 2ms 3ms 4ms 5ms");
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "synthetic.forward has 5");
    nami_test_set(&nami_model_option_table, &o, "forward", "1ms");
    nami_test_set(&nami_model_option_table, &o, "backward_weight", "2h");
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "at most an hour");
    nami_test_set(&nami_model_option_table, &o, "backward_weight", "1ms");
    o.vocabulary = 7;
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "vocabulary = 7");
    release(&o);
}

/* A slow block weighs as much as its time. */
static void test_cuts(void **state)
{
    (void)state;
    nami_model_options o = defaults();
    nami_model *m;
    int cut[3];
    nami_test_set(&nami_model_option_table, &o, "forward", "30ms 10ms 10ms 10ms");
    nami_test_set(&nami_model_option_table, &o, "backward_input",
                  "30ms 10ms 10ms 10ms");
    nami_test_set(&nami_model_option_table, &o, "backward_weight",
                  "30ms 10ms 10ms 10ms");
    assert_ok(nami_model_new(&o, 0, &m));
    assert_ok(nami_model_cuts(m, 3, 2, cut));
    assert_int_equal(cut[1], 1);
    nami_model_free(m);
    release(&o);
}

/* The chain of `stages` stages with its tokens, run once. */
static void run(chain *c, const nami_model *m, int stages, bool split, bool recompute)
{
    chain_options o = {.backend = "ref",
                       .act = NAMI_F32,
                       .batch = 2,
                       .time = 3,
                       .micro = 2,
                       .stages = stages,
                       .split = split,
                       .recompute = recompute};
    int cut[CHAIN_STAGES + 1];
    for (int i = 0; i <= stages; i++)
        cut[i] = i * m->blocks / stages;
    o.cut = cut;
    chain_open(c, m, &o);
    chain_tokens(c, 3);
    chain_forward(c);
    chain_backward(c);
}

static void test_bits(void **state)
{
    (void)state;
    nami_model_options o = defaults();
    nami_model *m;
    chain one, c;
    nami_test_set(&nami_model_option_table, &o, "forward", "1ms");
    nami_test_set(&nami_model_option_table, &o, "backward_input", "1ms");
    nami_test_set(&nami_model_option_table, &o, "backward_weight", "1ms");
    o.synthetic_saved = 100;
    assert_ok(nami_model_new(&o, 0, &m));
    run(&one, m, 1, false, false);
    assert_true(isfinite(chain_loss(&one)) && chain_loss(&one) > 0);
    assert_true(chain_grad(&one, nami_model_find(m, "2.weight"), 0) != 0);
    for (int way = 0; way < 8; way++) {
        run(&c, m, way & 4 ? 4 : 2, way & 1, way & 2);
        chain_assert_equal(&one, &c);
        chain_close(&c);
    }
    chain_close(&one);
    nami_model_free(m);
    release(&o);
}

/* Forward and backward of two micro-batches take 2 (F + BI + BW) on one stage, and room is kept for each. */
static void test_cost(void **state)
{
    (void)state;
    nami_model_options o = defaults();
    nami_model *m;
    chain c;
    o.layers = 1;
    nami_test_set(&nami_model_option_table, &o, "forward", "20ms");
    nami_test_set(&nami_model_option_table, &o, "backward_input", "30ms");
    nami_test_set(&nami_model_option_table, &o, "backward_weight", "40ms");
    o.synthetic_saved = 4000;
    assert_ok(nami_model_new(&o, 0, &m));
    const double start = nami_now();
    run(&c, m, 1, true, false);
    assert_true(nami_now() - start >= 0.18);
    assert_true(nami_graph_bytes(c.stage[0].graph)->kept >= 2 * 4000);
    chain_close(&c);
    nami_model_free(m);
    release(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),    cmocka_unit_test(test_samples),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_bits),     cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
