/* SPDX-License-Identifier: MIT */
/* residual.c - out = in0 + dropout(in1); the gradient of in0 is that of out.
 *
 * in0, in1 [B,...] act; out, the same shape; real[0] dropout p. depth drops in1 of whole samples: stochastic depth.
 */
#include "op/common.h"

static nami_arg_dropout residual_args(const nami_node *n, const nami_bind *b)
{
    const int64_t batch = b->out.shape.dim[0];
    const int64_t count = nami_op_count(&b->out) / batch;
    return (nami_arg_dropout){.act = b->out.dtype,
                              .batch = batch,
                              .count = count,
                              .first = b->slice * count,
                              .dropout = b->train ? n->real[0] : 0,
                              .whole = n->op == &nami_op_depth,
                              .key = nami_op_key(n, b),
                              .first_sample = b->first_sample,
                              .x = b->in[1].data,
                              .add = b->in[0].data,
                              .y = b->out.data,
                              .dy = b->dout.data,
                              .dx = b->din[1].data};
}

static nami_status residual_prepare(nami_node *n, const nami_bind *shapes)
{
    static const char there = 0; /* any address: add is set */
    nami_arg_dropout a = residual_args(n, shapes);
    a.add = &there;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_DROPOUT_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_DROPOUT_BI, &a);
}

static void residual_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_dropout a = residual_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void residual_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_dropout a = residual_args(n, b);
    if (a.dx)
        nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static bool residual_passes(const nami_node *n, int input)
{
    return input == 0 || n->real[0] == 0;
}

const nami_op nami_op_residual = {
    .name = "residual",
    .bi_reads = NAMI_READ_DOUT,
    .passes = residual_passes,
    .prepare = residual_prepare,
    .forward = residual_forward,
    .backward_input = residual_backward_input,
};

const nami_op nami_op_depth = {
    .name = "depth",
    .bi_reads = NAMI_READ_DOUT,
    .passes = residual_passes,
    .prepare = residual_prepare,
    .forward = residual_forward,
    .backward_input = residual_backward_input,
};
