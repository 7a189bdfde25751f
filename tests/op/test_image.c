/* SPDX-License-Identifier: MIT */
/* test_image.c - the operators of image models against finite differences, and the words they are refused with. */
#include "bench.h"

/* Kernel, stride, padding, dilation into whole[0..5]; the output's shape. */
static nami_shape window(bench *t, nami_shape x, const int64_t w[6], int64_t channels)
{
    for (int i = 0; i < 6; i++)
        t->node.whole[i] = w[i];
    const int64_t h = x.dim[1] + 2 * w[3] - w[5] * (w[0] - 1) - 1;
    const int64_t v = x.dim[2] + 2 * w[4] - w[5] * (w[1] - 1) - 1;
    return nami_shape_of(x.dim[0], h / w[2] + 1, v / w[2] + 1, channels);
}

static void check_conv(nami_shape x, const int64_t w[6], int64_t out, int64_t groups,
                       bool bias)
{
    bench t = start(&nami_op_conv);
    add_in(&t, 0, tensor(&t, x, 1));
    add_out(&t, window(&t, x, w, out));
    t.node.whole[6] = groups;
    add_param(&t, 0, nami_shape_of(out, x.dim[3] / groups, w[0], w[1]));
    if (bias)
        add_param(&t, 1, nami_shape_of(out, 0, 0, 0));
    check(&t, false);
    finish(&t);
}

static void test_conv(void **state)
{
    (void)state;
    const nami_shape x = nami_shape_of(2, 5, 6, 4);
    check_conv(x, (int64_t[]){3, 3, 1, 1, 1, 1}, 3, 1, true);
    check_conv(x, (int64_t[]){3, 3, 2, 1, 1, 1}, 2, 1, false);
    check_conv(x, (int64_t[]){1, 1, 2, 0, 0, 1}, 5, 1, false);
    check_conv(x, (int64_t[]){1, 5, 1, 0, 2, 1}, 2, 2, true);
    check_conv(x, (int64_t[]){3, 3, 1, 1, 1, 1}, 4, 4, false); /* depthwise */
    check_conv(x, (int64_t[]){2, 3, 1, 2, 2, 2}, 6, 2, true);  /* dilated */
    check_conv(x, (int64_t[]){5, 6, 1, 0, 0, 1}, 3, 1, true);  /* the whole image */
}

static void check_pool(const int64_t w[6], bool max, bool count_padding)
{
    bench t = start(&nami_op_pool);
    const nami_shape x = nami_shape_of(2, 5, 7, 3);
    add_in(&t, 0, tensor(&t, x, 1));
    add_out(&t, window(&t, x, w, 3));
    t.node.whole[6] = max;
    t.node.whole[7] = count_padding;
    check(&t, false);
    finish(&t);
}

static void test_pool(void **state)
{
    (void)state;
    for (int max = 0; max < 2; max++) {
        check_pool((int64_t[]){2, 2, 2, 0, 0, 1}, max, false);
        check_pool((int64_t[]){3, 3, 2, 1, 1, 1}, max, false);
        check_pool((int64_t[]){3, 3, 1, 1, 1, 1}, max, true);
        check_pool((int64_t[]){5, 7, 1, 0, 0, 1}, max, false); /* global */
    }
}

/* Of equal numbers the first gets the gradient, as in PyTorch. */
static void test_pool_ties(void **state)
{
    (void)state;
    bench t = start(&nami_op_pool);
    const nami_shape x = nami_shape_of(1, 2, 2, 1);
    add_in(&t, 0, tensor(&t, x, 0));
    add_out(&t, window(&t, x, (int64_t[]){2, 2, 2, 0, 0, 1}, 1));
    t.node.whole[6] = 1;
    prepare(&t);
    loss_of(&t);
    t.node.op->backward_input(&t.node, &t.bind);
    const double *dx = t.bind.din[0].data, *dy = t.bind.dout.data;
    assert_true(dx[0] == dy[0] && dx[1] == 0 && dx[2] == 0 && dx[3] == 0);
    finish(&t);
}

static bench batch_norm(bool relu)
{
    bench t = start(&nami_op_batch_norm);
    const nami_shape x = nami_shape_of(2, 2, 3, 5),
                     channels = nami_shape_of(5, 0, 0, 0);
    t.node.real[0] = 1e-3;
    t.node.whole[0] = relu;
    add_in(&t, 0, tensor(&t, x, 2));
    add_out(&t, x);
    for (int k = 0; k < 4; k++)
        add_param(&t, k, channels);
    for (int k = 0; k < 2; k++)
        add_saved(&t, k, channels);
    return t;
}

static void test_batch_norm(void **state)
{
    (void)state;
    for (int relu = 0; relu < 2; relu++) {
        bench t = batch_norm(relu);
        check(&t, false);
        finish(&t);
    }
}

/* BW adds mean and unbiased variance to the sums of the running ones; evaluation normalises by those. */
static void test_batch_norm_statistics(void **state)
{
    (void)state;
    bench t = batch_norm(false);
    prepare(&t);
    double *before[2] = {copy_of(&t, &t.bind.dparam[2]),
                         copy_of(&t, &t.bind.dparam[3])};
    const double *x = t.bind.in[0].data, *w = t.bind.param[0].data;
    t.node.op->forward(&t.node, &t.bind);
    t.node.op->backward_weight(&t.node, &t.bind);
    for (int c = 0; c < 5; c++) {
        double mean = 0, var = 0;
        for (int n = 0; n < 12; n++)
            mean += x[5 * n + c] / 12;
        for (int n = 0; n < 12; n++)
            var += (x[5 * n + c] - mean) * (x[5 * n + c] - mean) / 11;
        const double *sum[2] = {t.bind.dparam[2].data, t.bind.dparam[3].data};
        assert_true(fabs(sum[0][c] - before[0][c] - mean) < 1e-12);
        assert_true(fabs(sum[1][c] - before[1][c] - var) < 1e-12);
    }
    t.bind.train = false;
    double *mean = t.bind.param[2].data, *var = t.bind.param[3].data;
    for (int c = 0; c < 5; c++)
        var[c] = 0.5 + c;
    assert_ok(t.node.op->prepare(&t.node, &t.bind));
    t.node.op->forward(&t.node, &t.bind);
    const double *y = t.bind.out.data, *b = t.bind.param[1].data;
    for (int i = 0; i < 60; i++) {
        const int c = i % 5;
        const double want = (x[i] - mean[c]) / sqrt(var[c] + 1e-3) * w[c] + b[c];
        assert_true(fabs(y[i] - want) < 1e-12);
    }
    finish(&t);
}

static void check_unary(const nami_op *op, int64_t function)
{
    bench t = start(op);
    t.node.whole[0] = function;
    add_in(&t, 0, tensor(&t, nami_shape_of(3, 2, 5, 0), 8));
    add_out(&t, nami_shape_of(3, 2, 5, 0));
    check(&t, false);
    finish(&t);
}

static void test_unary(void **state)
{
    (void)state;
    check_unary(&nami_op_relu, 0);
    check_unary(&nami_op_unary, NAMI_SIGMOID);
    check_unary(&nami_op_unary, NAMI_RELU);
    check_unary(&nami_op_unary, NAMI_RELU6);
    check_unary(&nami_op_unary, NAMI_SILU);
    check_unary(&nami_op_unary, NAMI_GELU_ERF);
}

static void test_two_inputs(void **state)
{
    (void)state;
    bench t = start(&nami_op_concat);
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 2, 4), 1));
    add_in(&t, 1, tensor(&t, nami_shape_of(2, 3, 2, 3), 1));
    add_out(&t, nami_shape_of(2, 3, 2, 7));
    check(&t, false);
    finish(&t);
    t = start(&nami_op_excite);
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 2, 4), 1));
    add_in(&t, 1, tensor(&t, nami_shape_of(2, 1, 1, 4), 1));
    add_out(&t, nami_shape_of(2, 3, 2, 4));
    check(&t, false);
    finish(&t);
    t = start(&nami_op_depth);
    t.node.real[0] = 0.5;
    for (int k = 0; k < 2; k++)
        add_in(&t, k, tensor(&t, nami_shape_of(8, 2, 3, 0), 1));
    add_out(&t, nami_shape_of(8, 2, 3, 0));
    check(&t, false);
    int kept = 0; /* whole samples, some of them */
    const double *a = t.bind.in[0].data, *b = t.bind.in[1].data, *y = t.bind.out.data;
    t.node.op->forward(&t.node, &t.bind);
    for (int s = 0; s < 8; s++) {
        const bool keeps = y[6 * s] != a[6 * s];
        for (int i = 6 * s; i < 6 * s + 6; i++)
            assert_true(fabs(y[i] - a[i] - (keeps ? 2 * b[i] : 0)) < 1e-12);
        kept += keeps;
    }
    assert_in_range(kept, 1, 7);
    finish(&t);
}

static void test_prepend(void **state)
{
    (void)state;
    bench t = start(&nami_op_prepend);
    add_in(&t, 0, tensor(&t, nami_shape_of(3, 2, 2, 5), 1));
    add_param(&t, 0, nami_shape_of(1, 1, 5, 0));
    add_param(&t, 1, nami_shape_of(1, 5, 5, 0));
    add_out(&t, nami_shape_of(3, 5, 5, 0));
    check(&t, false);
    loss_of(&t);
    const double *x = t.bind.in[0].data, *y = t.bind.out.data,
                 *token = t.bind.param[0].data, *position = t.bind.param[1].data;
    assert_true(y[25 + 2] == token[2] + position[2]);
    assert_true(y[50 + 5 + 3] == x[40 + 3] + position[5 + 3]);
    finish(&t);
}

static void test_flatten(void **state)
{
    (void)state;
    bench t = start(&nami_op_flatten);
    add_in(&t, 0, tensor(&t, nami_shape_of(2, 3, 2, 4), 1));
    add_out(&t, nami_shape_of(2, 1, 24, 0));
    check(&t, false);
    loss_of(&t);
    const double *x = t.bind.in[0].data, *y = t.bind.out.data;
    assert_true(y[24 + 3 * 6 + 5] == x[24 + 5 * 4 + 3]); /* channel 3, position 5 */
    finish(&t);
}

static void test_refusals(void **state)
{
    (void)state;
    bench t = start(&nami_op_conv);
    const nami_shape x = nami_shape_of(1, 3, 3, 4);
    add_in(&t, 0, tensor(&t, x, 1));
    add_out(&t, window(&t, x, (int64_t[]){1, 1, 1, 0, 0, 1}, 6));
    add_param(&t, 0, nami_shape_of(6, 4, 1, 1));
    t.node.whole[6] = 3;
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EBUG, "in 3 groups");
    t.node.whole[6] = 2;
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EBUG, "weights expect 4");
    finish(&t);
    t = start(&nami_op_prepend);
    add_in(&t, 0, tensor(&t, nami_shape_of(3, 2, 2, 5), 1));
    add_param(&t, 0, nami_shape_of(1, 1, 5, 0));
    add_param(&t, 1, nami_shape_of(1, 4, 5, 0));
    add_out(&t, nami_shape_of(3, 5, 5, 0));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EBUG, "4 rows of 5");
    finish(&t);
}

int main(void)
{
    seed = nami_test_seed(9);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),       cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_ties),  cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_unary),      cmocka_unit_test(test_batch_norm_statistics),
        cmocka_unit_test(test_two_inputs), cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_prepend),    cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("image", tests, open_ref, close_ref);
}
