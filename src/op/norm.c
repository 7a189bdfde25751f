/* SPDX-License-Identifier: MIT */
/* norm.c - layer norm over the last axis, or RMS norm.
 *
 * in0 x [B,T,C] act; param w, b [C] or none; out y [B,T,C] act; saved mean, rstd [B,T] wide; real[0] eps; whole[0] RMS
 * norm, which saves rstd alone.
 */
#include "op/common.h"

static nami_arg_norm norm_args(const nami_node *n, const nami_bind *b)
{
    const int64_t width = nami_op_last(&b->in[0]);
    return (nami_arg_norm){.act = b->in[0].dtype,
                           .n = nami_op_count(&b->in[0]) / width,
                           .width = width,
                           .eps = n->real[0],
                           .rms = n->whole[0] != 0,
                           .x = b->in[0].data,
                           .w = b->param[0].data,
                           .b = b->param[1].data,
                           .y = b->out.data,
                           .mean = b->saved[0].data,
                           .rstd = b->saved[1].data,
                           .dy = b->dout.data,
                           .add = b->add[0],
                           .dx = b->din[0].data,
                           .dw = b->dparam[0].data,
                           .db = b->dparam[1].data};
}

static nami_status norm_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_norm a = norm_args(n, shapes);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_NORM_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_NORM_BI, &a));
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_WEIGHT, NAMI_NORM_BW, &a);
}

static void norm_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_norm a = norm_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void norm_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_norm a = norm_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static void norm_backward_weight(const nami_node *n, const nami_bind *b)
{
    const nami_arg_norm a = norm_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_WEIGHT, &a);
}

const nami_op nami_op_norm = {
    .name = "norm",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_SAVED | NAMI_READ_DOUT,
    .bw_reads = NAMI_READ_IN0 | NAMI_READ_SAVED | NAMI_READ_DOUT,
    .adds = true,
    .prepare = norm_prepare,
    .forward = norm_forward,
    .backward_input = norm_backward_input,
    .backward_weight = norm_backward_weight,
};
