/* SPDX-License-Identifier: MIT */
/* linear.c - y = x w^T + b.
 *
 * in0 x [B,T,I] act; param w [O,I], b [O] or none; out y [B,T,O] act.
 */
#include "op/common.h"

static nami_arg_linear linear_args(const nami_bind *b)
{
    const nami_tensor *w = &b->param[0];
    return (nami_arg_linear){.act = b->in[0].dtype,
                             .n = nami_op_count(&b->in[0]) / w->shape.dim[1],
                             .in = w->shape.dim[1],
                             .out = w->shape.dim[0],
                             .x = b->in[0].data,
                             .w = w->data,
                             .b = b->param[1].data,
                             .packed_f = b->packed_f,
                             .packed_b = b->packed_b,
                             .y = b->out.data,
                             .dy = b->dout.data,
                             .add = b->add[0],
                             .dx = b->din[0].data,
                             .dw = b->dparam[0].data,
                             .db = b->dparam[1].data,
                             .scratch = b->scratch};
}

static nami_status linear_prepare(nami_node *n, const nami_bind *shapes)
{
    static const char there = 0; /* any address: the bias is set */
    nami_arg_linear a = linear_args(shapes);
    if (nami_op_last(&shapes->in[0]) != a.in)
        return nami_fail(NAMI_EBUG, "linear: input is %lld wide, weights expect %lld",
                         (long long)nami_op_last(&shapes->in[0]), (long long)a.in);
    a.b = n->param[1] >= 0 ? &there : NULL;
    a.db = n->param[1] >= 0 ? (void *)(uintptr_t)&there : NULL;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_LINEAR_F, &a));
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_PACK, NAMI_LINEAR_PACK, &a));
    if (!shapes->train)
        return NAMI_OK;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_LINEAR_BI, &a));
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_WEIGHT, NAMI_LINEAR_BW, &a);
}

static void linear_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_linear a = linear_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void linear_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_linear a = linear_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static void linear_backward_weight(const nami_node *n, const nami_bind *b)
{
    const nami_arg_linear a = linear_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_WEIGHT, &a);
}

static void linear_pack(const nami_node *n, const nami_bind *b)
{
    const nami_arg_linear a = linear_args(b);
    nami_op_launch(n, b, NAMI_PACK, &a);
}

const nami_op nami_op_linear = {
    .name = "linear",
    .bi_reads = NAMI_READ_DOUT,
    .bw_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .adds = true,
    .prepare = linear_prepare,
    .forward = linear_forward,
    .backward_input = linear_backward_input,
    .backward_weight = linear_backward_weight,
    .pack = linear_pack,
};
