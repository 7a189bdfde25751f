/* SPDX-License-Identifier: MIT */
/* attention.c - multi-head self-attention, causal or whole.
 *
 * in0 qkv [B,T,(H+2G)D] act, in1 lengths [B] i32 or none; out y [B,T,C] act, C = H D; saved lse [B,H,T] wide and, with
 * token slices, dkv [B,T,2GD] wide; real[0] dropout p; whole[0] heads H, whole[1] heads G of k and v (0: H), whole[2]
 * every position sees all, with in1 the first in1[b] positions.
 */
#include "op/common.h"

static nami_arg_attention attention_args(const nami_node *n, const nami_bind *b)
{
    return (nami_arg_attention){.act = b->in[0].dtype,
                                .batch = b->in[0].shape.dim[0],
                                .time = b->in[0].shape.dim[1],
                                .heads = n->whole[0],
                                .kv_heads = n->whole[1],
                                .whole = n->whole[2] != 0,
                                .length = b->in[1].data,
                                .slices = b->slices,
                                .slice = b->slice,
                                .stride = b->stride,
                                .head_width = nami_op_last(&b->out) / n->whole[0],
                                .dropout = b->train ? n->real[0] : 0,
                                .key = nami_op_key(n, b),
                                .first_sample = b->first_sample,
                                .qkv = b->in[0].data,
                                .y = b->out.data,
                                .lse = b->saved[0].data,
                                .dy = b->dout.data,
                                .dqkv = b->din[0].data,
                                .dkv = b->saved[1].data,
                                .scratch = b->scratch};
}

static nami_status attention_prepare(nami_node *n, const nami_bind *shapes)
{
    const int64_t width = nami_op_last(&shapes->out);
    if (n->whole[0] < 1 || width % n->whole[0] != 0)
        return nami_fail(NAMI_EPLAN,
                         "attention: width %lld is not a multiple of %lld heads",
                         (long long)width, (long long)n->whole[0]);
    const nami_arg_attention a = attention_args(n, shapes);
    if (a.kv_heads < 0 || a.heads % nami_attention_groups(&a) != 0)
        return nami_fail(
            NAMI_EPLAN,
            "attention: %lld heads are not a multiple of %lld heads of k and v",
            (long long)a.heads, (long long)a.kv_heads);
    if (nami_op_last(&shapes->in[0]) != nami_attention_row(&a))
        return nami_fail(NAMI_EBUG, "attention: q, k, v are %lld wide, expected %lld",
                         (long long)nami_op_last(&shapes->in[0]),
                         (long long)nami_attention_row(&a));
    if (a.whole && a.slices > 1)
        return nami_fail(NAMI_EPLAN, "attention: %lld token slices need a causal model",
                         (long long)a.slices);
    if (!a.whole && n->in[1] >= 0)
        return nami_fail(NAMI_EBUG,
                         "attention: lengths are for attention that is not causal");
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_ATTENTION_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_ATTENTION_BI, &a);
}

static void attention_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_attention a = attention_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void attention_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_attention a = attention_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

const nami_op nami_op_attention = {
    .name = "attention",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_IN1 | NAMI_READ_OUT | NAMI_READ_SAVED |
                NAMI_READ_DOUT,
    .mixes_slices = true,
    .prepare = attention_prepare,
    .forward = attention_forward,
    .backward_input = attention_backward_input,
};
