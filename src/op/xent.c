/* SPDX-License-Identifier: MIT */
/* xent.c - cross entropy of logits against target tokens; the loss of a language model.
 *
 * in0 logits [B,T,V] act, turned into their gradient when training; in1 words [B,W] i32, from number whole[0] on the
 * T targets, negative: the position does not count; loss [B]. real[0] = label smoothing, in training alone.
 */
#include "op/common.h"

static nami_arg_xent xent_args(const nami_node *n, const nami_bind *b)
{
    const int32_t *words = b->in[1].data;
    return (nami_arg_xent){.act = b->in[0].dtype,
                           .batch = b->in[0].shape.dim[0],
                           .time = b->in[0].shape.dim[1],
                           .vocabulary = nami_op_last(&b->in[0]),
                           .logits = b->in[0].data,
                           .stride = nami_op_last(&b->in[1]),
                           .target = words ? words + n->whole[0] : NULL,
                           .scale = b->scale,
                           .smoothing = b->train ? n->real[0] : 0,
                           .gradient = b->train,
                           .loss = b->loss,
                           .best = b->best,
                           .five = b->five,
                           .scratch = b->scratch};
}

static nami_status xent_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_xent a = xent_args(n, shapes);
    if (n->whole[0] + a.time > a.stride)
        return nami_fail(NAMI_EBUG, "xent: %lld targets of %lld words from %lld on",
                         (long long)a.time, (long long)a.stride,
                         (long long)n->whole[0]);
    return nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_XENT_F, &a);
}

static void xent_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_xent a = xent_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

const nami_op nami_op_xent = {
    .name = "xent",
    .in_place_gradient = true,
    .prepare = xent_prepare,
    .forward = xent_forward,
};
