/* SPDX-License-Identifier: MIT */
/* cast.c - numbers of the data set, f32, as activations.
 *
 * in0 x [...] f32; out y, the same shape, act; no gradient.
 */
#include "op/common.h"

static nami_arg_turn cast_args(const nami_bind *b)
{
    return (nami_arg_turn){.act = b->out.dtype,
                           .batch = 1,
                           .rows = nami_op_count(&b->in[0]),
                           .columns = 1,
                           .x = b->in[0].data,
                           .y = b->out.data};
}

static nami_status cast_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_turn a = cast_args(shapes);
    return nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_CAST, &a);
}

static void cast_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_turn a = cast_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

const nami_op nami_op_cast = {
    .name = "cast",
    .prepare = cast_prepare,
    .forward = cast_forward,
};
