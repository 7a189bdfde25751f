/* SPDX-License-Identifier: MIT */
/* rotary.c - rotary positions of q and k, packed with v.
 *
 * in0 qkv [B,T,H D + R] act: H heads of width D that turn, then what does not; out, the same shape; real[0] theta;
 * whole[0] H, whole[1] D.
 */
#include "op/common.h"

static nami_arg_rotary rotary_args(const nami_node *n, const nami_bind *b)
{
    const int64_t time = b->in[0].shape.dim[1];
    return (nami_arg_rotary){.act = b->in[0].dtype,
                             .batch = b->in[0].shape.dim[0],
                             .time = time,
                             .heads = n->whole[0],
                             .width = n->whole[1],
                             .rest =
                                 nami_op_last(&b->in[0]) - n->whole[0] * n->whole[1],
                             .theta = n->real[0],
                             .first = b->slice * time,
                             .x = b->in[0].data,
                             .y = b->out.data,
                             .dy = b->dout.data,
                             .dx = b->din[0].data};
}

static nami_status rotary_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_rotary a = rotary_args(n, shapes);
    if (a.width % 2 != 0)
        return nami_fail(NAMI_EPLAN,
                         "rotary: heads are %lld wide, pairs of elements need an even "
                         "width",
                         (long long)a.width);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_ROTARY_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_ROTARY_BI, &a);
}

static void rotary_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_rotary a = rotary_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void rotary_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_rotary a = rotary_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_rotary = {
    .name = "rotary",
    .bi_reads = NAMI_READ_DOUT,
    .prepare = rotary_prepare,
    .forward = rotary_forward,
    .backward_input = rotary_backward_input,
};
