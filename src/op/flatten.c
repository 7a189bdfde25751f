/* SPDX-License-Identifier: MIT */
/* flatten.c - images as rows of numbers, channels slowest, so that the weights behind are PyTorch's.
 *
 * in0 x [B,H,W,C] act; out y [B,1,C H W].
 */
#include "op/common.h"

/* Positions become columns. */
static nami_arg_turn flatten_args(const nami_bind *b)
{
    const int64_t batch = b->in[0].shape.dim[0], channels = nami_op_last(&b->in[0]);
    return (nami_arg_turn){.act = b->in[0].dtype,
                           .batch = batch,
                           .rows = nami_op_count(&b->in[0]) / (batch * channels),
                           .columns = channels,
                           .x = b->in[0].data,
                           .y = b->out.data};
}

/* And back. */
static nami_arg_turn unflatten_args(const nami_bind *b)
{
    nami_arg_turn a = flatten_args(b);
    const int64_t rows = a.rows;
    a.rows = a.columns;
    a.columns = rows;
    a.x = b->dout.data;
    a.y = b->din[0].data;
    return a;
}

static nami_status flatten_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_turn a = flatten_args(shapes), back = unflatten_args(shapes);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_TURN, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_TURN, &back);
}

static void flatten_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_turn a = flatten_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void flatten_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_turn a = unflatten_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_flatten = {
    .name = "flatten",
    .bi_reads = NAMI_READ_DOUT,
    .prepare = flatten_prepare,
    .forward = flatten_forward,
    .backward_input = flatten_backward_input,
};
