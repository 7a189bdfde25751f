/* SPDX-License-Identifier: MIT */
/* test_gradient.c - every operator against finite differences, in double on the reference backend.
 *
 * The scalar is L = sum(out r) with random r (for the loss: scale times its sum), so that dL/dout = r.
 */
#include "nami_test.h"

#include <math.h>

#include "base/clock.h"
#include "op/op.h"

/* One operator with everything its passes read and write. */
typedef struct bench {
    nami_node node;
    nami_bind bind;
    void *block[32]; /* all memory; freed at the end */
    int blocks;
    double loss[4];
} bench;

static uint64_t seed;
static nami_backend *ref;

static double *fresh(bench *t, int64_t count, double scale)
{
    double *x = nami_calloc(NAMI_MEM_OTHER, (size_t)count + 1, sizeof *x);
    const uint64_t key = nami_mix(seed, (uint64_t)t->blocks);
    for (int64_t i = 0; i < count; i++)
        x[i] = scale * (2 * nami_uniform(key, (uint64_t)i) - 1);
    t->block[t->blocks++] = x;
    return x;
}

static nami_tensor tensor(bench *t, nami_shape shape, double scale)
{
    return (nami_tensor){.data = fresh(t, nami_shape_count(&shape), scale),
                         .dtype = NAMI_F64,
                         .shape = shape};
}

static nami_tensor tokens(bench *t, nami_shape shape, int32_t bound, bool holes)
{
    const int64_t n = nami_shape_count(&shape);
    int32_t *token = nami_calloc(NAMI_MEM_OTHER, (size_t)n, sizeof *token);
    for (int64_t i = 0; i < n; i++)
        token[i] = holes && i % 5 == 2 ? -1 : (int32_t)((i * 7 + 3) % bound);
    t->block[t->blocks++] = token;
    return (nami_tensor){.data = token, .dtype = NAMI_I32, .shape = shape};
}

static bench start(const nami_op *op)
{
    return (bench){.node = {.op = op,
                            .in = {-1, -1},
                            .out = -1,
                            .param = {-1, -1},
                            .saved = {-1, -1},
                            .key = 99},
                   .bind = {.backend = ref,
                            .train = true,
                            .seed = seed,
                            .step = 3,
                            .first_sample = 6,
                            .scale = 0.25}};
}

static void add_in(bench *t, int k, nami_tensor x)
{
    t->node.in[k] = k;
    t->bind.in[k] = x;
    if (x.dtype == NAMI_F64)
        t->bind.din[k] = tensor(t, x.shape, 1);
}

static void add_out(bench *t, nami_shape shape)
{
    t->node.out = 2;
    t->bind.out = tensor(t, shape, 0);
    t->bind.dout = tensor(t, shape, 1);
}

static void add_param(bench *t, int k, nami_shape shape)
{
    t->node.param[k] = k;
    t->bind.param[k] = tensor(t, shape, 1);
    t->bind.dparam[k] = tensor(t, shape, 1);
}

static void add_saved(bench *t, int k, nami_shape shape)
{
    t->node.saved[k] = 3 + k;
    t->bind.saved[k] = tensor(t, shape, 0);
}

/* Prepare with unset data pointers, as the graph does. */
static void prepare(bench *t)
{
    nami_bind shapes = t->bind;
    for (int k = 0; k < 2; k++)
        shapes.in[k].data = shapes.saved[k].data = shapes.param[k].data =
            shapes.dparam[k].data = shapes.din[k].data = NULL;
    shapes.out.data = shapes.dout.data = NULL;
    assert_ok(t->node.op->prepare(&t->node, &shapes));
    size_t scratch = 0;
    for (int p = 0; p < NAMI_PASSES; p++)
        if (t->node.prepared[p] && t->node.prepared[p]->scratch > scratch)
            scratch = t->node.prepared[p]->scratch;
    t->bind.scratch = fresh(t, (int64_t)(scratch / 8 + 1), 1);
    if (!t->node.op->in_place_gradient)
        return;
    t->bind.loss = t->loss;
}

/* L with the inputs as they are. */
static double loss_of(bench *t)
{
    const nami_node *n = &t->node;
    double sum = 0;
    if (n->op->in_place_gradient) {
        nami_bind eval = t->bind;
        eval.train = false; /* the logits stay */
        nami_node plain = *n;
        assert_ok(n->op->prepare(&plain, &eval));
        n->op->forward(&plain, &eval);
        for (int64_t s = 0; s < t->bind.in[0].shape.dim[0]; s++)
            sum += t->bind.scale * t->loss[s];
        return sum;
    }
    n->op->forward(n, &t->bind);
    const double *out = t->bind.out.data, *r = t->bind.dout.data;
    for (int64_t i = 0; i < nami_shape_count(&t->bind.out.shape); i++)
        sum += out[i] * r[i];
    return sum;
}

/* `got`[i] - `before`[i] must be dL/dx[i] for every element. */
static void check_tensor(bench *t, const char *what, const nami_tensor *x,
                         const double *got, const double *before)
{
    double *v = x->data;
    const double h = 1e-5;
    for (int64_t i = 0; i < nami_shape_count(&x->shape); i++) {
        const double old = v[i];
        v[i] = old + h;
        const double up = loss_of(t);
        v[i] = old - h;
        const double down = loss_of(t);
        v[i] = old;
        const double want = (up - down) / (2 * h),
                     have = got[i] - (before ? before[i] : 0);
        if (!(fabs(want - have) <= 1e-7 * fmax(1, fabs(want))))
            fail_msg("%s d%s[%lld]: %.12g, finite difference %.12g", t->node.op->name,
                     what, (long long)i, have, want);
    }
}

static double *copy_of(bench *t, const nami_tensor *x)
{
    double *c = fresh(t, nami_shape_count(&x->shape), 0);
    if (x->data)
        memcpy(c, x->data, nami_tensor_bytes(x));
    return c;
}

/* Backward passes with unneeded values overwritten by NaN: a pass reads only what its bits say. */
static void poison(bench *t, unsigned reads)
{
    struct {
        unsigned bit;
        nami_tensor *x;
    } all[] = {
        {NAMI_READ_IN0, &t->bind.in[0]},      {NAMI_READ_IN1, &t->bind.in[1]},
        {NAMI_READ_OUT, &t->bind.out},        {NAMI_READ_SAVED, &t->bind.saved[0]},
        {NAMI_READ_SAVED, &t->bind.saved[1]}, {NAMI_READ_DOUT, &t->bind.dout}};
    for (int k = 0; k < 6; k++)
        if (!(reads & all[k].bit) && all[k].x->data && all[k].x->dtype == NAMI_F64)
            memset(all[k].x->data, 0xff, nami_tensor_bytes(all[k].x));
}

static const nami_tensor *touched(const bench *t, int k)
{
    const nami_tensor *all[] = {&t->bind.in[0],    &t->bind.in[1],    &t->bind.out,
                                &t->bind.saved[0], &t->bind.saved[1], &t->bind.dout};
    return all[k];
}

/* Run pass `go` with everything it does not declare poisoned, then restore. */
static void run_pass(bench *t, void (*go)(const nami_node *, const nami_bind *),
                     unsigned reads)
{
    double *keep[6];
    for (int k = 0; k < 6; k++)
        keep[k] = touched(t, k)->dtype == NAMI_F64 ? copy_of(t, touched(t, k)) : NULL;
    poison(t, reads);
    go(&t->node, &t->bind);
    for (int k = 0; k < 6; k++)
        if (keep[k] && touched(t, k)->data)
            memcpy(touched(t, k)->data, keep[k], nami_tensor_bytes(touched(t, k)));
    for (int k = 5; k >= 0; k--)
        if (keep[k])
            nami_free(t->block[--t->blocks]);
}

static void check_inputs(bench *t, const double *const add[2])
{
    for (int k = 0; k < 2; k++) {
        const nami_op *op = t->node.op;
        if (t->node.in[k] < 0 || t->bind.in[k].dtype != NAMI_F64)
            continue;
        if (op->passes && op->passes(&t->node, k))
            check_tensor(t, "in (passes)", &t->bind.in[k], t->bind.dout.data, NULL);
        else if (op->backward_input)
            check_tensor(t, k ? "in1" : "in0", &t->bind.in[k], t->bind.din[k].data,
                         add[k]);
    }
}

/* All gradients of the operator against finite differences. */
static void check(bench *t, bool with_add)
{
    const nami_op *op = t->node.op;
    const double *add[2] = {NULL, NULL};
    if (with_add && op->adds) {
        add[0] = tensor(t, t->bind.in[0].shape, 1).data;
        t->bind.add[0] = add[0];
    }
    for (int k = 0; k < 2; k++) {
        if (op->passes && op->passes(&t->node, k))
            t->bind.din[k].data = NULL;
    }
    prepare(t);
    double *before[2];
    for (int k = 0; k < 2; k++)
        before[k] = copy_of(t, &t->bind.dparam[k]);
    loss_of(t);
    if (op->backward_input && (t->bind.din[0].data || t->bind.din[1].data))
        run_pass(t, op->backward_input, op->bi_reads);
    if (op->backward_weight)
        run_pass(t, op->backward_weight, op->bw_reads);
    check_inputs(t, add);
    for (int k = 0; k < 2; k++)
        if (op->backward_weight && t->node.param[k] >= 0)
            check_tensor(t, k ? "param1" : "param0", &t->bind.param[k],
                         t->bind.dparam[k].data, before[k]);
}

static void finish(bench *t)
{
    while (t->blocks > 0)
        nami_free(t->block[--t->blocks]);
}

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

static void test_attention(void **state)
{
    (void)state;
    for (int drop = 0; drop < 2; drop++) {
        bench t = start(&nami_op_attention);
        t.node.real[0] = drop ? 0.3 : 0;
        t.node.whole[0] = 2;
        add_in(&t, 0, tensor(&t, nami_shape_of(2, 5, 3 * 6, 0), 1));
        add_out(&t, nami_shape_of(2, 5, 6, 0));
        add_saved(&t, 0, nami_shape_of(2, 2, 5, 0));
        check(&t, false);
        finish(&t);
    }
}

static void test_embed(void **state)
{
    (void)state;
    bench t = start(&nami_op_embed);
    add_in(&t, 0, tokens(&t, nami_shape_of(2, 4, 0, 0), 6, false));
    add_out(&t, nami_shape_of(2, 4, 3, 0));
    add_param(&t, 0, nami_shape_of(6, 3, 0, 0));
    add_param(&t, 1, nami_shape_of(5, 3, 0, 0));
    check(&t, false);
    finish(&t);
}

/* The loss leaves its gradient in the logits. */
static void test_xent(void **state)
{
    (void)state;
    bench t = start(&nami_op_xent);
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
    finish(&t);
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
    finish(&t);
    t = start(&nami_op_embed);
    add_in(&t, 0, tokens(&t, nami_shape_of(2, 4, 0, 0), 6, false));
    add_out(&t, nami_shape_of(2, 4, 3, 0));
    add_param(&t, 0, nami_shape_of(6, 3, 0, 0));
    add_param(&t, 1, nami_shape_of(3, 3, 0, 0));
    assert_fails(t.node.op->prepare(&t.node, &t.bind), NAMI_EPLAN,
                 "3 positions are learned");
    finish(&t);
}

static int open_ref(void **state)
{
    (void)state;
    return nami_backend_open("ref", 1, NAMI_F64, &ref) != NAMI_OK;
}

static int close_ref(void **state)
{
    nami_backend_close(ref);
    return nami_test_balance(state);
}

int main(void)
{
    seed = nami_test_seed(7);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),    cmocka_unit_test(test_norm),
        cmocka_unit_test(test_elements),  cmocka_unit_test(test_residual),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_embed),
        cmocka_unit_test(test_xent),      cmocka_unit_test(test_dropout_key),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_wait),
    };
    return cmocka_run_group_tests_name("gradient", tests, open_ref, close_ref);
}
