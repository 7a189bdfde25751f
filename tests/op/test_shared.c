/* SPDX-License-Identifier: MIT */
/* test_shared.c - batch norm whose statistics are of several parts: halves of the passes summed by hand between them,
 * against finite differences, and against one call with all rows. */
#include "bench.h"

enum { MOST = 3, CHANNELS = 5, HEIGHT = 2, WIDTH = 3 };

/* Parts of 1, 2, 3 samples with the parameters of the first. */
typedef struct joint {
    bench part[MOST];
    int parts;
} joint;

static bench one_part(int64_t samples, int64_t together, bool relu)
{
    bench t = start(&nami_op_batch_norm);
    const nami_shape x = nami_shape_of(samples, HEIGHT, WIDTH, CHANNELS),
                     channels = nami_shape_of(CHANNELS, 0, 0, 0);
    t.node.real[0] = 1e-3;
    t.node.whole[0] = relu;
    t.node.whole[1] = 1;
    t.bind.together = together;
    add_in(&t, 0, tensor(&t, x, 2));
    add_out(&t, x);
    for (int k = 0; k < 4; k++)
        add_param(&t, k, channels);
    for (int k = 0; k < 2; k++)
        add_saved(&t, k, channels);
    prepare(&t);
    return t;
}

static joint make(int parts, bool relu)
{
    joint j = {.parts = parts};
    const int64_t all = parts * (parts + 1) / 2;
    for (int r = 0; r < parts; r++) {
        seed += 1; /* rows differ */
        bench *t = &j.part[r];
        *t = one_part(r + 1, all, relu);
        const int64_t shared = t->node.op->shared(&t->node, &t->bind);
        assert_int_equal(shared, 2 * CHANNELS);
        t->bind.shared = fresh(t, shared, 1);
        for (int k = 0; k < 4; k++)
            t->bind.param[k] = j.part[0].bind.param[k];
    }
    return j;
}

/* A pass of all parts: first halves, the sum, the pass. */
static void pass(joint *j, void (*own)(const nami_node *, const nami_bind *),
                 void (*go)(const nami_node *, const nami_bind *), unsigned reads)
{
    double sum[2 * CHANNELS] = {0};
    for (int r = 0; r < j->parts; r++) {
        run_pass(&j->part[r], own, reads);
        for (int i = 0; i < 2 * CHANNELS; i++)
            sum[i] += j->part[r].bind.shared[i];
    }
    for (int r = 0; r < j->parts; r++) {
        memcpy(j->part[r].bind.shared, sum, sizeof sum);
        go(&j->part[r].node, &j->part[r].bind);
    }
}

static void forward(joint *j)
{
    pass(j, nami_op_batch_norm.forward_own, nami_op_batch_norm.forward, NAMI_READ_IN0);
}

static double joint_loss(joint *j)
{
    double sum = 0;
    forward(j);
    for (int r = 0; r < j->parts; r++) {
        const double *out = j->part[r].bind.out.data, *dout = j->part[r].bind.dout.data;
        for (int64_t i = 0; i < nami_shape_count(&j->part[r].bind.out.shape); i++)
            sum += out[i] * dout[i];
    }
    return sum;
}

static double difference(joint *j, double *x)
{
    const double h = 1e-5, old = *x;
    *x = old + h;
    const double up = joint_loss(j);
    *x = old - h;
    const double down = joint_loss(j);
    *x = old;
    return (up - down) / (2 * h);
}

static void assert_near(const char *what, int64_t i, double have, double want,
                        double bound)
{
    if (!(fabs(have - want) <= bound * fmax(1, fabs(want))))
        fail_msg("%s[%lld]: %.12g, expected %.12g", what, (long long)i, have, want);
}

/* All backward passes; what BW adds to parameter k, of all parts, into added[k]. */
static void backward(joint *j, double added[4][CHANNELS])
{
    const nami_op *op = &nami_op_batch_norm;
    pass(j, op->backward_own, op->backward_input, op->bi_reads);
    memset(added, 0, 4 * sizeof *added);
    for (int r = 0; r < j->parts; r++) {
        bench *t = &j->part[r];
        double *before[4], *shared = t->bind.shared;
        for (int k = 0; k < 4; k++)
            before[k] = copy_of(t, &t->bind.dparam[k]);
        t->bind.shared = NULL; /* as a walk has it */
        run_pass(t, op->backward_weight, op->bw_reads);
        t->bind.shared = shared;
        for (int k = 0; k < 4; k++)
            for (int c = 0; c < CHANNELS; c++)
                added[k][c] += ((double *)t->bind.dparam[k].data)[c] - before[k][c];
    }
}

static void check_differences(int parts, bool relu)
{
    joint j = make(parts, relu);
    double added[4][CHANNELS];
    forward(&j);
    backward(&j, added);
    for (int r = 0; r < parts; r++) {
        const nami_tensor *x = &j.part[r].bind.in[0];
        for (int64_t i = 0; i < nami_shape_count(&x->shape); i++)
            assert_near("dx", i, ((double *)j.part[r].bind.din[0].data)[i],
                        difference(&j, (double *)x->data + i), 1e-7);
    }
    for (int k = 0; k < 2; k++)
        for (int c = 0; c < CHANNELS; c++)
            assert_near(k ? "db" : "dw", c, added[k][c],
                        difference(&j, (double *)j.part[0].bind.param[k].data + c),
                        1e-7);
    for (int r = 0; r < parts; r++)
        finish(&j.part[r]);
}

static void test_differences(void **state)
{
    (void)state;
    for (int parts = 1; parts <= MOST; parts++)
        for (int relu = 0; relu < 2; relu++)
            check_differences(parts, relu);
}

/* One call with the rows of all parts, in their order. */
static bench whole_of(const joint *j, bool relu)
{
    bench t = one_part(j->parts * (j->parts + 1) / 2, 0, relu);
    int64_t at = 0;
    assert_int_equal(t.node.op->shared(&t.node, &t.bind), 0);
    for (int r = 0; r < j->parts; r++) {
        const bench *p = &j->part[r];
        const int64_t count = nami_shape_count(&p->bind.in[0].shape);
        memcpy((double *)t.bind.in[0].data + at, p->bind.in[0].data,
               (size_t)count * sizeof(double));
        memcpy((double *)t.bind.dout.data + at, p->bind.dout.data,
               (size_t)count * sizeof(double));
        at += count;
    }
    for (int k = 0; k < 4; k++)
        t.bind.param[k] = j->part[0].bind.param[k];
    return t;
}

/* Every number of the parts is that of the whole; what they add to sums adds up to it, and of the running statistics each
 * adds the same. */
static void check_whole(int parts, bool relu)
{
    joint j = make(parts, relu);
    joint one = {.parts = 1, .part = {whole_of(&j, relu)}};
    bench *t = &one.part[0];
    double added[4][CHANNELS], want[4][CHANNELS];
    int64_t at = 0;
    forward(&j);
    backward(&j, added);
    double *before[4];
    for (int k = 0; k < 4; k++)
        before[k] = copy_of(t, &t->bind.dparam[k]);
    nami_op_batch_norm.forward(&t->node, &t->bind);
    nami_op_batch_norm.backward_input(&t->node, &t->bind);
    nami_op_batch_norm.backward_weight(&t->node, &t->bind);
    for (int k = 0; k < 4; k++)
        for (int c = 0; c < CHANNELS; c++) {
            want[k][c] = ((double *)t->bind.dparam[k].data)[c] - before[k][c];
            assert_near("sum", c, added[k][c], want[k][c] * (k < 2 ? 1 : parts), 1e-12);
        }
    for (int r = 0; r < parts; r++) {
        const bench *p = &j.part[r];
        for (int64_t i = 0; i < nami_shape_count(&p->bind.in[0].shape); i++, at++) {
            assert_near("y", i, ((double *)p->bind.out.data)[i],
                        ((double *)t->bind.out.data)[at], 1e-12);
            assert_near("dx", i, ((double *)p->bind.din[0].data)[i],
                        ((double *)t->bind.din[0].data)[at], 1e-12);
        }
    }
    finish(t);
    for (int r = 0; r < parts; r++)
        finish(&j.part[r]);
}

static void test_whole(void **state)
{
    (void)state;
    for (int parts = 1; parts <= MOST; parts++)
        for (int relu = 0; relu < 2; relu++)
            check_whole(parts, relu);
}

int main(void)
{
    seed = nami_test_seed(11);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests_name("shared", tests, open_ref, close_ref);
}
