/* SPDX-License-Identifier: MIT */
/* conv.c - convolution.
 *
 * in0 x [B,H,W,I] act; param w [O,I/G,KH,KW], b [O] or none; out y [B,OH,OW,O] act; whole[0..5] the window,
 * whole[6] groups G.
 */
#include "op/window.h"

static nami_arg_conv conv_args(const nami_node *n, const nami_bind *b)
{
    return (nami_arg_conv){.act = b->in[0].dtype,
                           .batch = b->in[0].shape.dim[0],
                           .in = nami_op_last(&b->in[0]),
                           .out = b->param[0].shape.dim[0],
                           .groups = n->whole[6],
                           .window = nami_op_window(n, b),
                           .x = b->in[0].data,
                           .w = b->param[0].data,
                           .b = b->param[1].data,
                           .packed_f = b->packed_f,
                           .packed_b = b->packed_b,
                           .y = b->out.data,
                           .dy = b->dout.data,
                           .dx = b->din[0].data,
                           .dw = b->dparam[0].data,
                           .db = b->dparam[1].data,
                           .scratch = b->scratch};
}

static nami_status conv_prepare(nami_node *n, const nami_bind *shapes)
{
    static const char there = 0; /* any address: the bias is set */
    nami_arg_conv a = conv_args(n, shapes);
    const int64_t *w = shapes->param[0].shape.dim;
    if (a.groups < 1 || a.in % a.groups != 0 || a.out % a.groups != 0 ||
        w[1] != a.in / a.groups)
        return nami_fail(NAMI_EBUG,
                         "conv: %lld channels in %lld groups, weights expect %lld",
                         (long long)a.in, (long long)a.groups, (long long)w[1]);
    a.b = n->param[1] >= 0 ? &there : NULL;
    a.db = n->param[1] >= 0 ? (void *)(uintptr_t)&there : NULL;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_CONV_F, &a));
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_PACK, NAMI_CONV_PACK, &a));
    if (!shapes->train)
        return NAMI_OK;
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_CONV_BI, &a));
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_WEIGHT, NAMI_CONV_BW, &a);
}

static void conv_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_conv a = conv_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void conv_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_conv a = conv_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

static void conv_backward_weight(const nami_node *n, const nami_bind *b)
{
    const nami_arg_conv a = conv_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_WEIGHT, &a);
}

static void conv_pack(const nami_node *n, const nami_bind *b)
{
    const nami_arg_conv a = conv_args(n, b);
    nami_op_launch(n, b, NAMI_PACK, &a);
}

const nami_op nami_op_conv = {
    .name = "conv",
    .bi_reads = NAMI_READ_DOUT,
    .bw_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .prepare = conv_prepare,
    .forward = conv_forward,
    .backward_input = conv_backward_input,
    .backward_weight = conv_backward_weight,
    .pack = conv_pack,
};
