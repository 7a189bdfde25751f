/* SPDX-License-Identifier: MIT */
/* concat.c - two values side by side along the last axis.
 *
 * in0 [...,A], in1 [...,B] act; out [...,A+B].
 */
#include "op/common.h"

static nami_arg_concat concat_args(const nami_bind *b)
{
    const int64_t width = nami_op_last(&b->in[0]);
    return (nami_arg_concat){.act = b->in[0].dtype,
                             .n = nami_op_count(&b->in[0]) / width,
                             .width_a = width,
                             .width_b = nami_op_last(&b->in[1]),
                             .a = b->in[0].data,
                             .b = b->in[1].data,
                             .y = b->out.data,
                             .dy = b->dout.data,
                             .da = b->din[0].data,
                             .db = b->din[1].data};
}

static nami_status concat_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_concat a = concat_args(shapes);
    if (nami_op_count(&shapes->in[1]) != a.n * a.width_b)
        return nami_fail(NAMI_EBUG, "concat: the two values have different rows");
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_CONCAT_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_CONCAT_BI, &a);
}

static void concat_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_concat a = concat_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void concat_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_concat a = concat_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_concat = {
    .name = "concat",
    .bi_reads = NAMI_READ_DOUT,
    .prepare = concat_prepare,
    .forward = concat_forward,
    .backward_input = concat_backward_input,
};
