/* SPDX-License-Identifier: MIT */
/* batch_norm.c - batch norm by channel over a micro-batch, or over several; by the running statistics in evaluation.
 *
 * in0 x [B,H,W,C] act; param w, b, running mean, running var [C]; out y like x; saved mean, var [C] wide;
 * real[0] eps; whole[0] 1: y = max(0, .); whole[1] 1: statistics of all samples that train together, where the graph
 * was told of others: the shared numbers are those of nami_arg_batch_norm.sums. The running ones are statistics of the model: BW, which runs once for
 * every micro-batch whatever is recomputed, adds those of the micro-batch to their sums.
 */
#include "op/common.h"

/* Two for each channel. */
static int64_t batch_norm_shared(const nami_node *n, const nami_bind *shapes)
{
    return n->whole[1] && shapes->train && shapes->together > 0
               ? 2 * nami_op_last(&shapes->in[0])
               : 0;
}

static nami_arg_batch_norm batch_norm_args(const nami_node *n, const nami_bind *b)
{
    const int64_t width = nami_op_last(&b->in[0]);
    const int64_t rows = nami_op_count(&b->in[0]) / width;
    return (nami_arg_batch_norm){.act = b->in[0].dtype,
                                 .n = rows,
                                 .width = width,
                                 .eps = n->real[0],
                                 .relu = n->whole[0] != 0,
                                 .running = !b->train,
                                 .x = b->in[0].data,
                                 .w = b->param[0].data,
                                 .b = b->param[1].data,
                                 .running_mean = b->param[2].data,
                                 .running_var = b->param[3].data,
                                 .y = b->out.data,
                                 .mean = b->saved[0].data,
                                 .var = b->saved[1].data,
                                 .dy = b->dout.data,
                                 .dx = b->din[0].data,
                                 .dw = b->dparam[0].data,
                                 .db = b->dparam[1].data,
                                 .dmean = b->dparam[2].data,
                                 .dvar = b->dparam[3].data,
                                 .sums = b->shared,
                                 .all = batch_norm_shared(n, b) > 0
                                            ? rows / b->in[0].shape.dim[0] * b->together
                                            : rows,
                                 .scratch = b->scratch};
}

static nami_status batch_norm_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_batch_norm a = batch_norm_args(n, shapes);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_BATCH_NORM_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    if (batch_norm_shared(n, shapes) > 0) {
        NAMI_TRY(
            nami_op_prepare(n, shapes, NAMI_FORWARD_OWN, NAMI_BATCH_NORM_F_OWN, &a));
        NAMI_TRY(
            nami_op_prepare(n, shapes, NAMI_BACKWARD_OWN, NAMI_BATCH_NORM_BI_OWN, &a));
    }
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_BATCH_NORM_BI, &a));
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_WEIGHT, NAMI_BATCH_NORM_BW, &a);
}

static void batch_norm_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_batch_norm a = batch_norm_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void batch_norm_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_batch_norm a = batch_norm_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static void batch_norm_forward_own(const nami_node *n, const nami_bind *b)
{
    const nami_arg_batch_norm a = batch_norm_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD_OWN, &a);
}

static void batch_norm_backward_own(const nami_node *n, const nami_bind *b)
{
    const nami_arg_batch_norm a = batch_norm_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_OWN, &a);
}

static void batch_norm_backward_weight(const nami_node *n, const nami_bind *b)
{
    const nami_arg_batch_norm a = batch_norm_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_WEIGHT, &a);
}

const nami_op nami_op_batch_norm = {
    .name = "batch_norm",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_SAVED | NAMI_READ_DOUT,
    .bw_reads = NAMI_READ_IN0 | NAMI_READ_SAVED | NAMI_READ_DOUT,
    .shared = batch_norm_shared,
    .forward_own = batch_norm_forward_own,
    .backward_own = batch_norm_backward_own,
    .prepare = batch_norm_prepare,
    .forward = batch_norm_forward,
    .backward_input = batch_norm_backward_input,
    .backward_weight = batch_norm_backward_weight,
};
