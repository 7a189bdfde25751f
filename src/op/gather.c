/* SPDX-License-Identifier: MIT */
/* gather.c - chosen rows of each sample: masked positions, or the first.
 *
 * in0 x [B,T,C] act; in1 words i32 [B,W], whose first M are the numbers of the rows, or none: row 0, M = 1; out [B,M,C]
 * act.
 */
#include "op/common.h"

static nami_arg_gather gather_args(const nami_bind *b)
{
    return (nami_arg_gather){.act = b->in[0].dtype,
                             .batch = b->in[0].shape.dim[0],
                             .time = b->in[0].shape.dim[1],
                             .rows = b->out.shape.dim[1],
                             .width = nami_op_last(&b->out),
                             .stride =
                                 b->in[1].shape.rank ? nami_op_last(&b->in[1]) : 1,
                             .row = b->in[1].data,
                             .x = b->in[0].data,
                             .y = b->out.data,
                             .dy = b->dout.data,
                             .add = b->add[0],
                             .dx = b->din[0].data};
}

static nami_status gather_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_gather a = gather_args(shapes);
    if (a.stride < a.rows)
        return nami_fail(NAMI_EBUG, "gather: %lld rows of %lld row numbers",
                         (long long)a.rows, (long long)a.stride);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_GATHER_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_GATHER_BI, &a);
}

static void gather_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_gather a = gather_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void gather_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_gather a = gather_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_gather = {
    .name = "gather",
    .bi_reads = NAMI_READ_IN1 | NAMI_READ_DOUT,
    .adds = true,
    .prepare = gather_prepare,
    .forward = gather_forward,
    .backward_input = gather_backward_input,
};
