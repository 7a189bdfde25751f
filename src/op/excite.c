/* SPDX-License-Identifier: MIT */
/* excite.c - channel scale: the last step of squeeze and excitation.
 *
 * in0 x [B,H,W,C], in1 s [B,1,1,C] act; out y[b,p,c] = x[b,p,c] s[b,c].
 */
#include "op/common.h"

static nami_arg_excite excite_args(const nami_bind *b)
{
    const int64_t batch = b->in[0].shape.dim[0], channels = nami_op_last(&b->in[0]);
    return (nami_arg_excite){.act = b->in[0].dtype,
                             .batch = batch,
                             .positions = nami_op_count(&b->in[0]) / (batch * channels),
                             .channels = channels,
                             .x = b->in[0].data,
                             .s = b->in[1].data,
                             .y = b->out.data,
                             .dy = b->dout.data,
                             .dx = b->din[0].data,
                             .ds = b->din[1].data};
}

static nami_status excite_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_excite a = excite_args(shapes);
    if (nami_op_count(&shapes->in[1]) != a.batch * a.channels)
        return nami_fail(NAMI_EBUG, "excite: a scale for each of %lld x %lld channels",
                         (long long)a.batch, (long long)a.channels);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_EXCITE_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_EXCITE_BI, &a);
}

static void excite_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_excite a = excite_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void excite_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_excite a = excite_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_excite = {
    .name = "excite",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_IN1 | NAMI_READ_DOUT,
    .prepare = excite_prepare,
    .forward = excite_forward,
    .backward_input = excite_backward_input,
};
