/* SPDX-License-Identifier: MIT */
/* dropout.c - out = dropout(in0).
 *
 * in0 x [B,...] act; out, the same shape; real[0] dropout p.
 */
#include "op/common.h"

static nami_arg_dropout dropout_args(const nami_node *n, const nami_bind *b)
{
    const int64_t batch = b->out.shape.dim[0];
    const int64_t count = nami_op_count(&b->out) / batch;
    return (nami_arg_dropout){.act = b->out.dtype,
                              .batch = batch,
                              .count = count,
                              .first = b->slice * count,
                              .dropout = b->train ? n->real[0] : 0,
                              .key = nami_op_key(n, b),
                              .first_sample = b->first_sample,
                              .x = b->in[0].data,
                              .y = b->out.data,
                              .dy = b->dout.data,
                              .dx = b->din[0].data};
}

static nami_status dropout_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_dropout a = dropout_args(n, shapes);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_DROPOUT_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_DROPOUT_BI, &a);
}

static void dropout_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_dropout a = dropout_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void dropout_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_dropout a = dropout_args(n, b);
    if (a.dx)
        nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static bool dropout_passes(const nami_node *n, int input)
{
    return input == 0 && n->real[0] == 0;
}

const nami_op nami_op_dropout = {
    .name = "dropout",
    .bi_reads = NAMI_READ_DOUT,
    .passes = dropout_passes,
    .prepare = dropout_prepare,
    .forward = dropout_forward,
    .backward_input = dropout_backward_input,
};
