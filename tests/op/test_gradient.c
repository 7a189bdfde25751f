/* SPDX-License-Identifier: MIT */
/* test_gradient.c - every operator against finite differences, in double on the reference backend.
 */
#include "bench.h"

#include "base/clock.h"

static void test_linear(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        bench t = start(&nami_op_linear);
        add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 5, 0), 1));
        add_out(&t, nami_shape_of(2, 3, 4, 0));
        add_param(&t, 0, nami_shape_of(4, 5, 0, 0));
        if (variant & 1)
            add_param(&t, 1, nami_shape_of(4, 0, 0, 0));
        check(&t, variant & 2);
        finish(&t);
    }
}

static void test_norm(void **state)
{
    (void)state;
    for (int with_add = 0; with_add < 2; with_add++) {
        bench t = start(&nami_op_norm);
        t.node.real[0] = 1e-3;
        add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 7, 0), 2));
        add_out(&t, nami_shape_of(2, 3, 7, 0));
        add_param(&t, 0, nami_shape_of(7, 0, 0, 0));
        add_param(&t, 1, nami_shape_of(7, 0, 0, 0));
        add_saved(&t, 0, nami_shape_of(2, 3, 0, 0));
        add_saved(&t, 1, nami_shape_of(2, 3, 0, 0));
        check(&t, with_add);
        finish(&t);
    }
}

static void test_rms_norm(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        bench t = start(&nami_op_norm);
        t.node.real[0] = 1e-3;
        t.node.whole[0] = 1;
        add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 7, 0), 2));
        add_out(&t, nami_shape_of(2, 3, 7, 0));
        add_param(&t, 0, nami_shape_of(7, 0, 0, 0));
        if (variant & 1)
            add_param(&t, 1, nami_shape_of(7, 0, 0, 0));
        add_saved(&t, 1, nami_shape_of(2, 3, 0, 0));
        check(&t, variant & 2);
        finish(&t);
    }
}

/* q of 2 heads and k of 1, then v; also in a slice of a sample. */
static void test_rotary(void **state)
{
    (void)state;
    for (int slice = 0; slice < 3; slice++) {
        bench t = start(&nami_op_rotary);
        t.node.real[0] = 100;
        t.node.whole[0] = 3;
        t.node.whole[1] = 6;
        t.bind.slices = 3;
        t.bind.slice = slice;
        add_in(&t, 0, tensor(&t, nami_shape_of(2, 4, 4 * 6, 0), 1));
        add_out(&t, nami_shape_of(2, 4, 4 * 6, 0));
        check(&t, false);
        finish(&t);
    }
}

static void test_swiglu(void **state)
{
    (void)state;
    bench t = start(&nami_op_swiglu);
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 10, 0), 3));
    add_out(&t, nami_shape_of(2, 3, 5, 0));
    check(&t, false);
    finish(&t);
}

static void check_unary(const nami_op *op, double real)
{
    bench t = start(op);
    t.node.real[0] = real;
    add_in(&t, 0, tensor(&t, nami_shape_of(3, 2, 5, 0), 3));
    add_out(&t, nami_shape_of(3, 2, 5, 0));
    check(&t, false);
    finish(&t);
}

static void test_elements(void **state)
{
    (void)state;
    check_unary(&nami_op_gelu, 0);
    check_unary(&nami_op_template, 0);
    check_unary(&nami_op_dropout, 0.4);
    check_unary(&nami_op_dropout, 0);
}

static void test_wait(void **state)
{
    (void)state;
    bench t = start(&nami_op_wait);
    add_in(&t, 0, tensor(&t, nami_shape_of(3, 2, 5, 0), 3));
    add_param(&t, 0, nami_shape_of(1, 0, 0, 0));
    add_saved(&t, 0, nami_shape_of(3, 7, 0, 0));
    add_out(&t, nami_shape_of(3, 2, 5, 0));
    check(&t, false);
    static const double least[3] = {0.02, 0.03, 0.04};
    for (int pass = 0; pass < 3; pass++)
        t.node.whole[pass] = (int64_t)(1e9 * least[pass]);
    void (*const run[3])(const nami_node *, const nami_bind *) = {
        t.node.op->forward, t.node.op->backward_input, t.node.op->backward_weight};
    for (int pass = 0; pass < 3; pass++) {
        const double start_time = nami_now();
        run[pass](&t.node, &t.bind);
        assert_true(nami_now() - start_time >= least[pass]);
    }
    finish(&t);
}

static void test_residual(void **state)
{
    (void)state;
    for (int drop = 0; drop < 2; drop++) {
        bench t = start(&nami_op_residual);
        t.node.real[0] = drop ? 0.4 : 0;
        for (int k = 0; k < 2; k++)
            add_in(&t, k, tensor(&t, nami_shape_of(3, 2, 5, 0), 1));
        add_out(&t, nami_shape_of(3, 2, 5, 0));
        check(&t, false);
        finish(&t);
    }
}

/* Heads of q and of k, v (0: the same), with and without dropout; not causal with and without lengths. */
static void check_attention(int64_t heads, int64_t kv_heads, bool whole, bool lengths)
{
    const int64_t width = 3, row = heads + 2 * (kv_heads ? kv_heads : heads);
    for (int drop = 0; drop < 2; drop++) {
        bench t = start(&nami_op_attention);
        t.node.real[0] = drop ? 0.3 : 0;
        t.node.whole[0] = heads;
        t.node.whole[1] = kv_heads;
        t.node.whole[2] = whole;
        add_in(&t, 0, tensor(&t, nami_shape_of(2, 5, row * width, 0), 1));
        if (lengths) /* 4 and 1 */
            add_in(&t, 1, tokens(&t, nami_shape_of(2, 0, 0, 0), 5, false));
        if (lengths)
            ((int32_t *)t.bind.in[1].data)[0] = 4,
                      ((int32_t *)t.bind.in[1].data)[1] = 1;
        add_out(&t, nami_shape_of(2, 5, heads * width, 0));
        add_saved(&t, 0, nami_shape_of(2, heads, 5, 0));
        check(&t, false);
        finish(&t);
    }
}

static void test_attention(void **state)
{
    (void)state;
    check_attention(2, 0, false, false);
    check_attention(4, 2, false, false);
    check_attention(3, 1, false, false);
    check_attention(2, 2, true, false);
    check_attention(2, 1, true, true);
}

static void test_embed(void **state)
{
    (void)state;
    for (int positions = 0; positions < 2; positions++) {
        bench t = start(&nami_op_embed);
        add_in(&t, 0, tokens(&t, nami_shape_of(2, 4, 0, 0), 6, false));
        add_out(&t, nami_shape_of(2, 4, 3, 0));
        add_param(&t, 0, nami_shape_of(6, 3, 0, 0));
        if (positions)
            add_param(&t, 1, nami_shape_of(5, 3, 0, 0));
        check(&t, false);
        finish(&t);
    }
}

/* Words of a sample: 4 tokens, 4 types, 2 rows of it, 2 targets, one more. */
static nami_tensor words(bench *t)
{
    static const int32_t word[2][13] = {{3, 1, 5, 3, 0, 1, 0, 0, 2, 0, -1, 4, 7},
                                        {2, 2, 0, 4, 1, 1, 0, 1, 3, 3, 5, 8, 7}};
    nami_tensor all = tokens(t, nami_shape_of(2, 13, 0, 0), 1, false);
    memcpy(all.data, word, sizeof word);
    return all;
}

static void test_types(void **state)
{
    (void)state;
    bench t = start(&nami_op_embed);
    add_in(&t, 0, words(&t));
    add_out(&t, nami_shape_of(2, 4, 3, 0));
    for (int k = 0; k < 3; k++)
        add_param(&t, k, nami_shape_of(k == 2 ? 2 : 6, 3, 0, 0));
    const double *before = copy_of(&t, &t.bind.dparam[2]);
    check(&t, false);
    check_tensor(&t, "wtt", &t.bind.param[2], t.bind.dparam[2].data, before);
    finish(&t);
}

static void test_gather(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        bool chosen = variant & 1;
        bench t = start(&nami_op_gather);
        add_in(&t, 0, tensor(&t, nami_shape_of(2, 4, 3, 0), 1));
        if (chosen) { /* the types of the first two tokens, which may be one row twice */
            nami_tensor row = words(&t);
            memmove(row.data, (int32_t *)row.data + 4, 20 * sizeof(int32_t));
            add_in(&t, 1, row);
        }
        add_out(&t, nami_shape_of(2, chosen ? 2 : 1, 3, 0));
        check(&t, variant & 2);
        finish(&t);
    }
}

/* Targets that are some of the words. */
static void test_some_targets(void **state)
{
    (void)state;
    bench t = start(&nami_op_xent);
    t.node.whole[0] = 10;
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 2, 9, 0), 2));
    add_in(&t, 1, words(&t));
    prepare(&t);
    nami_tensor logits = t.bind.in[0];
    double *original = copy_of(&t, &logits), *gradient = copy_of(&t, &logits);
    t.node.op->forward(&t.node, &t.bind);
    memcpy(gradient, logits.data, nami_tensor_bytes(&logits));
    memcpy(logits.data, original, nami_tensor_bytes(&logits));
    check_tensor(&t, "logits", &t.bind.in[0], gradient, NULL);
    for (int v = 0; v < 9; v++)
        assert_true(gradient[v] == 0 && gradient[9 + v] != 0);
    finish(&t);
}

/* The loss leaves its gradient in the logits; its labels are smoothed in training alone. */
static void check_xent(double smoothing)
{
    bench t = start(&nami_op_xent);
    t.node.real[0] = smoothing;
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 6, 9, 0), 2));
    add_in(&t, 1, tokens(&t, nami_shape_of(2, 6, 0, 0), 9, true));
    prepare(&t);
    nami_tensor logits = t.bind.in[0];
    double *original = copy_of(&t, &logits), *gradient = copy_of(&t, &logits);
    t.node.op->forward(&t.node, &t.bind);
    const double loss = t.loss[0] + t.loss[1];
    memcpy(gradient, logits.data, nami_tensor_bytes(&logits));
    memcpy(logits.data, original, nami_tensor_bytes(&logits));
    check_tensor(&t, "logits", &t.bind.in[0], gradient, NULL);
    assert_true(fabs(loss - loss_of(&t) / t.bind.scale) < 1e-12 * loss);
    assert_true(loss > 0);
    memcpy(logits.data, original, nami_tensor_bytes(&logits));
    t.bind.train = false;
    assert_ok(t.node.op->prepare(&t.node, &t.bind));
    t.node.op->forward(&t.node, &t.bind);
    assert_memory_equal(logits.data, original, nami_tensor_bytes(&logits));
    assert_true((t.loss[0] + t.loss[1] == loss) == (smoothing == 0));
    finish(&t);
}

static void test_xent(void **state)
{
    (void)state;
    check_xent(0);
    check_xent(0.3);
}

/* The key of a dropout changes with seed, step and node, and nothing else. */
static void test_dropout_key(void **state)
{
    (void)state;
    double first[30], other[30];
    for (int variant = 0; variant < 5; variant++) {
        bench t = start(&nami_op_dropout);
        t.node.real[0] = 0.5;
        add_in(&t, 0, tensor(&t, nami_shape_of(1, 30, 0, 0), 1));
        for (int i = 0; i < 30; i++)
            ((double *)t.bind.in[0].data)[i] = 1;
        add_out(&t, nami_shape_of(1, 30, 0, 0));
        prepare(&t);
        t.node.key += variant == 1;
        t.bind.seed += variant == 2;
        t.bind.step += variant == 3;
        t.bind.first_sample += variant == 4;
        t.node.op->forward(&t.node, &t.bind);
        memcpy(variant ? other : first, t.bind.out.data, sizeof first);
        if (variant)
            assert_memory_not_equal(first, other, sizeof first);
        t.node.key -= variant == 1;
        t.bind.seed -= variant == 2;
        t.bind.step -= variant == 3;
        t.bind.first_sample -= variant == 4;
        t.node.op->forward(&t.node, &t.bind);
        assert_memory_equal(first, t.bind.out.data, sizeof first);
        t.bind.train = false; /* evaluation drops nothing */
        assert_ok(t.node.op->prepare(&t.node, &t.bind));
        t.node.op->forward(&t.node, &t.bind);
        assert_memory_equal(t.bind.in[0].data, t.bind.out.data, sizeof first);
        finish(&t);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    bench t = start(&nami_op_attention);
    t.node.whole[0] = 4;
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 5, 3 * 6, 0), 1));
    add_out(&t, nami_shape_of(2, 5, 6, 0));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EPLAN,
                 "multiple of 4 heads");
    t.node.whole[0] = 3;
    t.node.whole[1] = 2;
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EPLAN,
                 "3 heads are not a multiple of 2 heads of k and v");
    t.node.whole[1] = 3;
    t.node.whole[2] = 1;
    t.bind.slices = 2;
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EPLAN,
                 "2 token slices need a causal model");
    finish(&t);
    t = start(&nami_op_rotary);
    t.node.whole[0] = 2;
    t.node.whole[1] = 3;
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 5, 9, 0), 1));
    add_out(&t, nami_shape_of(2, 5, 9, 0));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EPLAN,
                 "heads are 3 wide, pairs of elements need an even width");
    finish(&t);
    t = start(&nami_op_embed);
    add_in(&t, 0, tokens(&t, nami_shape_of(2, 4, 0, 0), 6, false));
    add_out(&t, nami_shape_of(2, 4, 3, 0));
    add_param(&t, 0, nami_shape_of(6, 3, 0, 0));
    add_param(&t, 1, nami_shape_of(3, 3, 0, 0));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EPLAN,
                 "3 positions are learned");
    finish(&t);
    t = start(&nami_op_embed);
    add_in(&t, 0, tokens(&t, nami_shape_of(2, 7, 0, 0), 2, false));
    add_out(&t, nami_shape_of(2, 4, 3, 0));
    for (int k = 0; k < 3; k++)
        add_param(&t, k, nami_shape_of(6, 3, 0, 0));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EBUG,
                 "4 tokens of samples of 7 words");
    finish(&t);
    t = start(&nami_op_xent);
    t.node.whole[0] = 5;
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 9, 0), 2));
    add_in(&t, 1, tokens(&t, nami_shape_of(2, 7, 0, 0), 2, false));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EBUG,
                 "3 targets of 7 words from 5 on");
    finish(&t);
    t = start(&nami_op_gather);
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 4, 3, 0), 1));
    add_in(&t, 1, tokens(&t, nami_shape_of(2, 1, 0, 0), 2, false));
    add_out(&t, nami_shape_of(2, 2, 3, 0));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EBUG,
                 "2 rows of 1 row numbers");
    finish(&t);
}

int main(void)
{
    seed = nami_test_seed(7);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),       cmocka_unit_test(test_norm),
        cmocka_unit_test(test_elements),     cmocka_unit_test(test_residual),
        cmocka_unit_test(test_attention),    cmocka_unit_test(test_embed),
        cmocka_unit_test(test_xent),         cmocka_unit_test(test_dropout_key),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_wait),
        cmocka_unit_test(test_types),        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_some_targets), cmocka_unit_test(test_rms_norm),
        cmocka_unit_test(test_rotary),       cmocka_unit_test(test_swiglu),
    };
    return cmocka_run_group_tests_name("gradient", tests, open_ref, close_ref);
}
