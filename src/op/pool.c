/* SPDX-License-Identifier: MIT */
/* pool.c - maximum or mean of windows.
 *
 * in0 x [B,H,W,C] act; out y [B,OH,OW,C]; whole[0..5] the window, whole[6] 1: maximum, whole[7] 1: a mean divides by
 * the whole kernel at the border too.
 */
#include "op/window.h"

static nami_arg_pool pool_args(const nami_node *n, const nami_bind *b)
{
    return (nami_arg_pool){.act = b->in[0].dtype,
                           .max = n->whole[6] != 0,
                           .count_padding = n->whole[7] != 0,
                           .batch = b->in[0].shape.dim[0],
                           .channels = nami_op_last(&b->in[0]),
                           .window = nami_op_window(n, b),
                           .x = b->in[0].data,
                           .y = b->out.data,
                           .dy = b->dout.data,
                           .dx = b->din[0].data};
}

static nami_status pool_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_pool a = pool_args(n, shapes);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_POOL_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_POOL_BI, &a);
}

static void pool_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_pool a = pool_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void pool_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_pool a = pool_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_pool = {
    .name = "pool",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .prepare = pool_prepare,
    .forward = pool_forward,
    .backward_input = pool_backward_input,
};
