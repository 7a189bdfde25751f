/* SPDX-License-Identifier: MIT */
/* swiglu.c - the gated unit of Llama's MLP: silu(gate) up.
 *
 * in0 [B,T,2F] act, gate then up; out [B,T,F] act.
 */
#include "op/common.h"

static nami_arg_swiglu swiglu_args(const nami_bind *b)
{
    const int64_t width = nami_op_last(&b->out);
    return (nami_arg_swiglu){.act = b->in[0].dtype,
                             .n = nami_op_count(&b->out) / width,
                             .width = width,
                             .x = b->in[0].data,
                             .y = b->out.data,
                             .dy = b->dout.data,
                             .dx = b->din[0].data};
}

static nami_status swiglu_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_swiglu a = swiglu_args(shapes);
    if (nami_op_last(&shapes->in[0]) != 2 * a.width)
        return nami_fail(NAMI_EBUG, "swiglu: input is %lld wide, expected 2 x %lld",
                         (long long)nami_op_last(&shapes->in[0]), (long long)a.width);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_SWIGLU_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_SWIGLU_BI, &a);
}

static void swiglu_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_swiglu a = swiglu_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void swiglu_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_swiglu a = swiglu_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_swiglu = {
    .name = "swiglu",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .prepare = swiglu_prepare,
    .forward = swiglu_forward,
    .backward_input = swiglu_backward_input,
};
