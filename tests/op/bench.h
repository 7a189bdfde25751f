/* SPDX-License-Identifier: MIT */
/* bench.h - one operator on the reference backend, in double, and its gradients by finite differences.
 *
 * The scalar is L = sum(out r) with random r (for the loss: scale times its sum), so that dL/dout = r.
 */
#ifndef NAMI_TESTS_OP_BENCH_H
#define NAMI_TESTS_OP_BENCH_H

#include "nami_test.h"

#include <math.h>

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

static inline double *fresh(bench *t, int64_t count, double scale)
{
    double *x = nami_calloc(NAMI_MEM_OTHER, (size_t)count + 1, sizeof *x);
    const uint64_t key = nami_mix(seed, (uint64_t)t->blocks);
    for (int64_t i = 0; i < count; i++)
        x[i] = scale * (2 * nami_uniform(key, (uint64_t)i) - 1);
    t->block[t->blocks++] = x;
    return x;
}

static inline nami_tensor tensor(bench *t, nami_shape shape, double scale)
{
    return (nami_tensor){.data = fresh(t, nami_shape_count(&shape), scale),
                         .dtype = NAMI_F64,
                         .shape = shape};
}

static inline nami_tensor tokens(bench *t, nami_shape shape, int32_t bound, bool holes)
{
    const int64_t n = nami_shape_count(&shape);
    int32_t *token = nami_calloc(NAMI_MEM_OTHER, (size_t)n, sizeof *token);
    for (int64_t i = 0; i < n; i++)
        token[i] = holes && i % 5 == 2 ? -1 : (int32_t)((i * 7 + 3) % bound);
    t->block[t->blocks++] = token;
    return (nami_tensor){.data = token, .dtype = NAMI_I32, .shape = shape};
}

static inline bench start(const nami_op *op)
{
    return (bench){.node = {.op = op,
                            .in = {-1, -1},
                            .out = -1,
                            .param = {-1, -1, -1, -1},
                            .saved = {-1, -1},
                            .key = 99},
                   .bind = {.backend = ref,
                            .train = true,
                            .seed = seed,
                            .step = 3,
                            .first_sample = 6,
                            .scale = 0.25}};
}

static inline void add_in(bench *t, int k, nami_tensor x)
{
    t->node.in[k] = k;
    t->bind.in[k] = x;
    if (x.dtype == NAMI_F64)
        t->bind.din[k] = tensor(t, x.shape, 1);
}

static inline void add_out(bench *t, nami_shape shape)
{
    t->node.out = 2;
    t->bind.out = tensor(t, shape, 0);
    t->bind.dout = tensor(t, shape, 1);
}

static inline void add_param(bench *t, int k, nami_shape shape)
{
    t->node.param[k] = k;
    t->bind.param[k] = tensor(t, shape, 1);
    t->bind.dparam[k] = tensor(t, shape, 1);
}

static inline void add_saved(bench *t, int k, nami_shape shape)
{
    t->node.saved[k] = 3 + k;
    t->bind.saved[k] = tensor(t, shape, 0);
}

/* Prepare with unset data pointers, as the graph does. */
static inline void prepare(bench *t)
{
    nami_bind shapes = t->bind;
    for (int k = 0; k < 2; k++)
        shapes.in[k].data = shapes.saved[k].data = shapes.din[k].data = NULL;
    for (int k = 0; k < NAMI_OP_PARAM; k++)
        shapes.param[k].data = shapes.dparam[k].data = NULL;
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
static inline double loss_of(bench *t)
{
    const nami_node *n = &t->node;
    double sum = 0;
    if (n->op->in_place_gradient) {
        const nami_tensor *logits = &t->bind.in[0]; /* they stay */
        const size_t bytes = nami_tensor_bytes(logits);
        void *kept = nami_alloc(NAMI_MEM_OTHER, bytes);
        memcpy(kept, logits->data, bytes);
        n->op->forward(n, &t->bind);
        memcpy(logits->data, kept, bytes);
        nami_free(kept);
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
static inline void check_tensor(bench *t, const char *what, const nami_tensor *x,
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

static inline double *copy_of(bench *t, const nami_tensor *x)
{
    double *c = fresh(t, nami_shape_count(&x->shape), 0);
    if (x->data)
        memcpy(c, x->data, nami_tensor_bytes(x));
    return c;
}

/* Backward passes with unneeded values overwritten by NaN: a pass reads only what its bits say. */
static inline void poison(bench *t, unsigned reads)
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

static inline const nami_tensor *touched(const bench *t, int k)
{
    const nami_tensor *all[] = {&t->bind.in[0],    &t->bind.in[1],    &t->bind.out,
                                &t->bind.saved[0], &t->bind.saved[1], &t->bind.dout};
    return all[k];
}

/* Run pass `go` with everything it does not declare poisoned, then restore. */
static inline void run_pass(bench *t, void (*go)(const nami_node *, const nami_bind *),
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

static inline void check_inputs(bench *t, const double *const add[2])
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
static inline void check(bench *t, bool with_add)
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

static inline void finish(bench *t)
{
    while (t->blocks > 0)
        nami_free(t->block[--t->blocks]);
}

static inline int open_ref(void **state)
{
    (void)state;
    return nami_backend_open("ref", 1, NAMI_F64, &ref) != NAMI_OK;
}

static inline int close_ref(void **state)
{
    nami_backend_close(ref);
    return nami_test_balance(state);
}

#endif
