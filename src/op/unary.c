/* SPDX-License-Identifier: MIT */
/* unary.c - ReLU and its relatives, element by element.
 *
 * in0 x [...] act; out y, the same shape. relu keeps y alone, which the next operator reads anyway; unary, whole[0] a
 * nami_unary, keeps x and may end a block.
 */
#include "op/common.h"

static nami_arg_unary unary_args(const nami_bind *b, nami_unary function)
{
    return (nami_arg_unary){.act = b->in[0].dtype,
                            .function = function,
                            .count = nami_op_count(&b->in[0]),
                            .x = b->in[0].data,
                            .y = b->out.data,
                            .dy = b->dout.data,
                            .dx = b->din[0].data};
}

static nami_unary function_of(const nami_node *n)
{
    return n->op == &nami_op_relu ? NAMI_RELU : (nami_unary)n->whole[0];
}

static nami_status unary_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_unary a = unary_args(shapes, function_of(n));
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_UNARY_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_UNARY_BI, &a);
}

static void unary_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_unary a = unary_args(b, function_of(n));
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void unary_backward_input(const nami_node *n, const nami_bind *b)
{
    nami_arg_unary a = unary_args(b, function_of(n));
    if (n->op == &nami_op_relu)
        a.x = b->out.data;
    a.y = NULL;
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_relu = {
    .name = "relu",
    .bi_reads = NAMI_READ_OUT | NAMI_READ_DOUT,
    .prepare = unary_prepare,
    .forward = unary_forward,
    .backward_input = unary_backward_input,
};

const nami_op nami_op_unary = {
    .name = "unary",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .prepare = unary_prepare,
    .forward = unary_forward,
    .backward_input = unary_backward_input,
};
