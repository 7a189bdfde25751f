/* SPDX-License-Identifier: MIT */
/* embed.c - token embedding, plus learned position and the embedding of token types where there are any.
 *
 * in0 words [B,W] i32: T tokens, then with types T token types; param wte [V,C], wpe [>=T,C] or none, wtt [types,C] or
 * none; out y [B,T,C] act. Words have no gradient.
 */
#include "op/common.h"

/* The row of a token slice's first position in `table` [., C]; NULL while there is none. */
static void *row_of(const nami_bind *b, const nami_tensor *table)
{
    const int64_t rows = b->slice * b->out.shape.dim[1];
    const size_t bytes = (size_t)nami_op_last(table) * nami_dtype_size(table->dtype);
    return table->data ? (char *)table->data + (size_t)rows * bytes : NULL;
}

static nami_arg_embed embed_args(const nami_node *n, const nami_bind *b)
{
    static const int32_t there = 0; /* any address: there are types */
    const int32_t *token = b->in[0].data;
    const int32_t *type = token ? token + b->out.shape.dim[1] : &there;
    return (nami_arg_embed){.act = b->out.dtype,
                            .batch = b->in[0].shape.dim[0],
                            .time = b->out.shape.dim[1],
                            .width = nami_op_last(&b->out),
                            .vocabulary = b->param[0].shape.dim[0],
                            .stride = nami_op_last(&b->in[0]),
                            .token = token,
                            .type = n->param[2] >= 0 ? type : NULL,
                            .wte = b->param[0].data,
                            .wpe = row_of(b, &b->param[1]),
                            .wtt = b->param[2].data,
                            .y = b->out.data,
                            .dy = b->dout.data,
                            .dwte = b->dparam[0].data,
                            .dwpe = row_of(b, &b->dparam[1]),
                            .dwtt = b->dparam[2].data};
}

static nami_status embed_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_embed a = embed_args(n, shapes);
    const int64_t positions = a.time * (shapes->slices > 1 ? shapes->slices : 1);
    if (n->param[1] >= 0 && shapes->param[1].shape.dim[0] < positions)
        return nami_fail(
            NAMI_EPLAN, "embed: %lld positions are learned, a sample has %lld",
            (long long)shapes->param[1].shape.dim[0], (long long)positions);
    if (a.stride < (n->param[2] >= 0 ? 2 : 1) * a.time)
        return nami_fail(NAMI_EBUG, "embed: %lld tokens of samples of %lld words",
                         (long long)a.time, (long long)a.stride);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_EMBED_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_WEIGHT, NAMI_EMBED_BW, &a);
}

static void embed_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_embed a = embed_args(n, b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

static void embed_backward_weight(const nami_node *n, const nami_bind *b)
{
    const nami_arg_embed a = embed_args(n, b);
    nami_op_launch(n, b, NAMI_BACKWARD_WEIGHT, &a);
}

const nami_op nami_op_embed = {
    .name = "embed",
    .bw_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .prepare = embed_prepare,
    .forward = embed_forward,
    .backward_weight = embed_backward_weight,
};
