/* SPDX-License-Identifier: MIT */
/* gelu.c - GELU, tanh form.
 *
 * in0 x [...] act; out y, the same shape.
 */
#include "op/common.h"

static nami_arg_gelu gelu_args(const nami_bind *b)
{
    return (nami_arg_gelu){.act = b->in[0].dtype,
                           .count = nami_op_count(&b->in[0]),
                           .x = b->in[0].data,
                           .y = b->out.data,
                           .dy = b->dout.data,
                           .dx = b->din[0].data};
}

static nami_status gelu_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_gelu a = gelu_args(shapes);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_GELU_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_GELU_BI, &a);
}

static void gelu_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_gelu a = gelu_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void gelu_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_gelu a = gelu_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_gelu = {
    .name = "gelu",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .prepare = gelu_prepare,
    .forward = gelu_forward,
    .backward_input = gelu_backward_input,
};
