/* SPDX-License-Identifier: MIT */
/* wait.c - an operator that takes set times and does almost no work: y = x + w.
 *
 * in0 x [B,...] act; param w [1]; saved [n] wide, room that nothing touches, or none; out y, like x.
 * whole[0..2] nanoseconds of a forward, backward-input and backward-weight pass.
 */
#include "op/common.h"

/* The arguments of pass `pass`: only its own result is given. */
static nami_arg_wait wait_args(const nami_node *n, const nami_bind *b, nami_pass pass)
{
    nami_arg_wait a = {.act = b->in[0].dtype,
                       .count = nami_op_count(&b->in[0]),
                       .seconds = 1e-9 * (double)n->whole[pass]};
    if (pass == NAMI_FORWARD) {
        a.x = b->in[0].data;
        a.w = b->param[0].data;
        a.y = b->out.data;
    } else {
        a.dy = b->dout.data;
    }
    if (pass == NAMI_BACKWARD_INPUT)
        a.dx = b->din[0].data;
    if (pass == NAMI_BACKWARD_WEIGHT)
        a.dw = b->dparam[0].data;
    return a;
}

static nami_status wait_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_wait a = wait_args(n, shapes, NAMI_FORWARD);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_WAIT, &a));
    if (!shapes->train)
        return NAMI_OK;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_WAIT, &a));
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_WEIGHT, NAMI_WAIT, &a);
}

static void wait_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_wait a = wait_args(n, b, NAMI_FORWARD);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void wait_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_wait a = wait_args(n, b, NAMI_BACKWARD_INPUT);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static void wait_backward_weight(const nami_node *n, const nami_bind *b)
{
    const nami_arg_wait a = wait_args(n, b, NAMI_BACKWARD_WEIGHT);
    nami_op_launch(n, b, NAMI_BACKWARD_WEIGHT, &a);
}

const nami_op nami_op_wait = {
    .name = "wait",
    .bi_reads = NAMI_READ_DOUT | NAMI_READ_SAVED,
    .bw_reads = NAMI_READ_DOUT | NAMI_READ_SAVED,
    .prepare = wait_prepare,
    .forward = wait_forward,
    .backward_input = wait_backward_input,
    .backward_weight = wait_backward_weight,
};
