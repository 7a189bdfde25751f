/* SPDX-License-Identifier: MIT */
/* vit.c - vision transformers, with torchvision's parameter names.
 *
 * Patches of an image become tokens by a convolution whose stride is its kernel; a class token goes in front, learned
 * positions are added. Layers with norms in front, attention of all tokens to all, GELU by the error function; the class
 * token's row, normed, is the head's input. Dosovitskiy et al., An Image is Worth 16x16 Words (2021), 3.1. train.dropout
 * is torchvision's dropout and attention_dropout at once.
 */
#include <math.h>
#include <stdio.h>

#include "model/family.h"

enum { MOST = 1 << 30 }; /* numbers of one sample behind an operator */

/* Patches of an image, and the tokens they become with the class token. */
static int64_t tokens_of(const nami_model_options *o)
{
    return (o->image_height / o->patch) * (o->image_width / o->patch) + 1;
}

static int64_t inner_of(const nami_model_options *o)
{
    return o->mlp_width > 0 ? o->mlp_width : 4 * o->width;
}

static nami_status check_patch(const nami_model_options *o, const char *key,
                               int64_t extent)
{
    if (o->patch > 0 && extent % o->patch == 0)
        return NAMI_OK;
    return nami_fail(NAMI_EINPUT,
                     "model.%s = %lld is not a multiple of model.patch = %lld", key,
                     (long long)extent, (long long)o->patch);
}

static nami_status check(const nami_model_options *o)
{
    NAMI_TRY(nami_transformer_check(o));
    NAMI_TRY(check_patch(o, "image_height", o->image_height));
    NAMI_TRY(check_patch(o, "image_width", o->image_width));
    NAMI_TRY(nami_transformer_check_inner(inner_of(o)));
    const int64_t widest = inner_of(o) > 3 * o->width ? inner_of(o) : 3 * o->width;
    if (tokens_of(o) * widest > MOST)
        return nami_fail(NAMI_EINPUT,
                         "an image makes %lld tokens, which with %lld numbers each are "
                         "more than %d",
                         (long long)tokens_of(o), (long long)widest, MOST);
    return NAMI_OK;
}

/* --- parameters --- */

/* NAME.weight and NAME.bias, [out]. */
static void norm(nami_model *m, int block, const char *name)
{
    char full[112];
    const nami_shape shape = nami_shape_of(m->options.width, 0, 0, 0);
    (void)snprintf(full, sizeof full, "%s.weight", name);
    nami_model_param(m, block, full, shape, NAMI_INIT_ONE, 0);
    (void)snprintf(full, sizeof full, "%s.bias", name);
    nami_model_param(m, block, full, shape, NAMI_INIT_ZERO, 0);
}

/* NAME.weight of `shape` and NAME.bias [dim[0]]. */
static void layer(nami_model *m, int block, const char *name, nami_shape shape,
                  double deviation)
{
    char full[112];
    (void)snprintf(full, sizeof full, "%s.weight", name);
    nami_model_param(m, block, full, shape, NAMI_INIT_NORMAL, deviation);
    (void)snprintf(full, sizeof full, "%s.bias", name);
    nami_model_param(m, block, full, nami_shape_of(shape.dim[0], 0, 0, 0),
                     NAMI_INIT_ZERO, 0);
}

/* [out,in] with the variance of Glorot and Bengio (2010), eq. 16. */
static void linear(nami_model *m, int block, const char *name, int64_t out, int64_t in)
{
    layer(m, block, name, nami_shape_of(out, in, 0, 0), sqrt(2.0 / (double)(out + in)));
}

/* "encoder.layers.encoder_layer_3.ln_1" into buf; returns it. */
static const char *module(char buf[80], int64_t l, const char *name)
{
    (void)snprintf(buf, 80, "encoder.layers.encoder_layer_%lld.%s", (long long)l, name);
    return buf;
}

static void layer_parameters(nami_model *m, int64_t l)
{
    char name[80];
    const int64_t c = m->options.width, inner = inner_of(&m->options);
    const int attention = 2 * (int)l + 1, mlp = attention + 1;
    norm(m, attention, module(name, l, "ln_1"));
    linear(m, attention, module(name, l, "self_attention.in_proj"), 3 * c, c);
    linear(m, attention, module(name, l, "self_attention.out_proj"), c, c);
    norm(m, mlp, module(name, l, "ln_2"));
    linear(m, mlp, module(name, l, "mlp.0"), inner, c);
    linear(m, mlp, module(name, l, "mlp.3"), c, inner);
}

static void parameters(nami_model *m)
{
    const nami_model_options *o = &m->options;
    const double fan = (double)(o->image_channels * o->patch * o->patch);
    const int head = m->blocks - 1;
    nami_model_param(m, 0, "class_token", nami_shape_of(1, 1, o->width, 0),
                     NAMI_INIT_ZERO, 0);
    layer(m, 0, "conv_proj",
          nami_shape_of(o->width, o->image_channels, o->patch, o->patch),
          sqrt(1 / fan));
    nami_model_param(m, 0, "encoder.pos_embedding",
                     nami_shape_of(1, tokens_of(o), o->width, 0), NAMI_INIT_NORMAL,
                     0.02);
    for (int64_t l = 0; l < o->layers; l++)
        layer_parameters(m, l);
    norm(m, head, "encoder.ln");
    layer(m, head, "heads.head", nami_shape_of(o->classes, o->width, 0, 0), 0.02);
}

/* --- graphs --- */

static int build_cast(const nami_block_build *b, int x)
{
    const nami_model_options *o = &b->model->options;
    if (b->act == NAMI_F32)
        return x;
    const int out = nami_graph_value(
        b->graph, b->act,
        nami_shape_of(b->batch, o->image_height, o->image_width, o->image_channels));
    nami_node *n = nami_graph_node(b->graph, &nami_op_cast);
    n->in[0] = x;
    return n->out = out;
}

static int build_patches(const nami_block_build *b, int x)
{
    const nami_model_options *o = &b->model->options;
    const int64_t p = o->patch, window[] = {p, p, p, 0, 0, 1};
    const int weight = nami_build_use(b, "conv_proj", ".weight"),
              bias = nami_build_use(b, "conv_proj", ".bias");
    const int out = nami_graph_value(
        b->graph, b->act,
        nami_shape_of(b->batch, o->image_height / p, o->image_width / p, o->width));
    nami_node *n = nami_graph_node(b->graph, &nami_op_conv);
    n->in[0] = x;
    n->param[0] = weight;
    n->param[1] = bias;
    for (int i = 0; i < 6; i++)
        n->whole[i] = window[i];
    n->whole[6] = 1;
    return n->out = out;
}

static int build_embedding(const nami_block_build *b, int x)
{
    const int patches = build_patches(b, build_cast(b, x));
    const int token = nami_build_use(b, "class_token", ""),
              positions = nami_build_use(b, "encoder.pos_embedding", "");
    const int out = nami_graph_value(
        b->graph, b->act, nami_shape_of(b->batch, b->time, b->model->options.width, 0));
    nami_node *n = nami_graph_node(b->graph, &nami_op_prepend);
    n->in[0] = patches;
    n->param[0] = token;
    n->param[1] = positions;
    n->out = out;
    return nami_build_dropout(b, out, "encoder.dropout");
}

static int build_attention(const nami_block_build *b, int64_t l, int x)
{
    char name[80];
    const nami_attention_kind whole = {.whole = true, .length = -1};
    int v = nami_build_norm(b, x, module(name, l, "ln_1"));
    v = nami_build_linear(b, v, module(name, l, "self_attention.in_proj"));
    v = nami_build_attention(b, v, &whole, module(name, l, "self_attention"));
    v = nami_build_linear(b, v, module(name, l, "self_attention.out_proj"));
    return nami_build_residual(b, x, v, module(name, l, "dropout"));
}

static int build_mlp(const nami_block_build *b, int64_t l, int x)
{
    char name[80];
    int v = nami_build_norm(b, x, module(name, l, "ln_2"));
    v = nami_build_linear(b, v, module(name, l, "mlp.0"));
    v = nami_build_unary(b, v, NAMI_GELU_ERF);
    v = nami_build_dropout(b, v, module(name, l, "mlp.2"));
    v = nami_build_linear(b, v, module(name, l, "mlp.3"));
    return nami_build_residual(b, x, v, module(name, l, "mlp.4"));
}

/* The norm works row by row, so only the class token's needs it. */
static int build_head(const nami_block_build *b, int x)
{
    const int out = nami_graph_value(
        b->graph, b->act, nami_shape_of(b->batch, 1, b->model->options.width, 0));
    nami_node *n = nami_graph_node(b->graph, &nami_op_gather);
    n->in[0] = x;
    n->out = out;
    const int v = nami_build_norm(b, out, "encoder.ln");
    return nami_build_loss(b, nami_build_linear(b, v, "heads.head"));
}

/* Between the first and the last operator a sample has one row a token. */
static int build(const nami_block_build *b, int x)
{
    const int64_t l = (b->block - 1) / 2;
    nami_block_build rows = *b;
    rows.time = tokens_of(&b->model->options);
    if (b->block == 0)
        return build_embedding(&rows, x);
    if (b->block == b->model->blocks - 1)
        return build_head(b, x);
    return b->block % 2 ? build_attention(&rows, l, x) : build_mlp(&rows, l, x);
}

/* Products as of gpt.c: of patches, of matrices, attention scores twice 2 T T C, of the class token with the head. */
static double flops(const nami_model *m, int block, int64_t time)
{
    const nami_model_options *o = &m->options;
    const double t = (double)tokens_of(o), c = (double)o->width;
    (void)time;
    if (block == 0)
        return 2 * (t - 1) * c * (double)(o->image_channels * o->patch * o->patch);
    if (block == m->blocks - 1)
        return 2 * c * (double)o->classes;
    return block % 2 ? 8 * t * c * c + 4 * t * t * c : 4 * t * c * (double)inner_of(o);
}

static nami_shape shape(const nami_model *m, int block, int64_t batch)
{
    const nami_model_options *o = &m->options;
    if (block == 0)
        return nami_shape_of(batch, o->image_height, o->image_width, o->image_channels);
    return nami_shape_of(batch, tokens_of(o), o->width, 0);
}

const nami_family nami_family_vit = {.name = "vit",
                                     .images = true,
                                     .reads = "layers width heads mlp_width patch",
                                     .unread = "stem",
                                     .norm_eps = 1e-6,
                                     .check = check,
                                     .blocks = nami_transformer_blocks,
                                     .parameters = parameters,
                                     .block_name = nami_transformer_block_name,
                                     .build = build,
                                     .flops = flops,
                                     .shape = shape};
