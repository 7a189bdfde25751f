/* SPDX-License-Identifier: MIT */
/* prepend.c - a learned token in front of each sample's rows, and a learned position for every row.
 *
 * in0 x [B,...,C] act, T rows a sample; param token [...,C], positions [...,T+1,C]; out y [B,T+1,C] act.
 */
#include "op/common.h"

static nami_arg_prepend prepend_args(const nami_bind *b)
{
    const int64_t batch = b->in[0].shape.dim[0], width = nami_op_last(&b->in[0]);
    return (nami_arg_prepend){.act = b->in[0].dtype,
                              .batch = batch,
                              .time = nami_op_count(&b->in[0]) / (batch * width),
                              .width = width,
                              .x = b->in[0].data,
                              .token = b->param[0].data,
                              .position = b->param[1].data,
                              .y = b->out.data,
                              .dy = b->dout.data,
                              .dx = b->din[0].data,
                              .dtoken = b->dparam[0].data,
                              .dposition = b->dparam[1].data};
}

static nami_status prepend_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_prepend a = prepend_args(shapes);
    if (nami_op_count(&shapes->param[0]) != a.width ||
        nami_op_count(&shapes->param[1]) != (a.time + 1) * a.width)
        return nami_fail(NAMI_EBUG,
                         "prepend: %lld rows of %lld, other ones are learned",
                         (long long)a.time, (long long)a.width);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_PREPEND_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_PREPEND_BI, &a));
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_WEIGHT, NAMI_PREPEND_BW, &a);
}

static void prepend_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_prepend a = prepend_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void prepend_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_prepend a = prepend_args(b);
    if (a.dx)
        nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static void prepend_backward_weight(const nami_node *n, const nami_bind *b)
{
    const nami_arg_prepend a = prepend_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_WEIGHT, &a);
}

const nami_op nami_op_prepend = {
    .name = "prepend",
    .bi_reads = NAMI_READ_DOUT,
    .bw_reads = NAMI_READ_DOUT,
    .prepare = prepend_prepare,
    .forward = prepend_forward,
    .backward_input = prepend_backward_input,
    .backward_weight = prepend_backward_weight,
};
