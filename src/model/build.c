/* SPDX-License-Identifier: MIT */
/* build.c - the pieces that blocks are made of: an operator with its values and parameters. */
#include "model/family.h"

static const double norm_eps = 1e-5; /* PyTorch's LayerNorm */

int nami_build_use(const nami_block_build *b, const char *name, const char *suffix)
{
    char *full = nami_strf("%s%s", name, suffix);
    const int i = nami_model_seek(b->model, full);
    nami_free(full);
    return i < 0 ? -1 : nami_graph_use(b->graph, i, b->model->param[i].shape);
}

/* A value [B,T,width] in the activation type. */
static int activation(const nami_block_build *b, int64_t width)
{
    return nami_graph_value(b->graph, b->act,
                            nami_shape_of(b->batch, b->time, width, 0));
}

static int64_t width_of(const nami_block_build *b)
{
    return b->model->options.width;
}

int nami_build_linear(const nami_block_build *b, int x, const char *name)
{
    int weight = nami_build_use(b, name, ".weight"),
        bias = nami_build_use(b, name, ".bias");
    NAMI_CHECK(weight >= 0);
    int p = nami_graph_use_param(b->graph, weight);
    int out = activation(b, b->model->param[p].shape.dim[0]);
    nami_node *n = nami_graph_node(b->graph, &nami_op_linear);
    n->in[0] = x;
    n->param[0] = weight;
    n->param[1] = bias;
    return n->out = out;
}

int nami_build_norm(const nami_block_build *b, int x, const char *name)
{
    nami_shape rows = nami_shape_of(b->batch, b->time, 0, 0);
    int out = activation(b, width_of(b));
    int mean = nami_graph_value(b->graph, b->wide, rows);
    int rstd = nami_graph_value(b->graph, b->wide, rows);
    int weight = nami_build_use(b, name, ".weight"),
        bias = nami_build_use(b, name, ".bias");
    nami_node *n = nami_graph_node(b->graph, &nami_op_norm);
    n->in[0] = x;
    n->param[0] = weight;
    n->param[1] = bias;
    n->saved[0] = mean;
    n->saved[1] = rstd;
    n->real[0] = b->model->family->norm_eps > 0 ? b->model->family->norm_eps : norm_eps;
    return n->out = out;
}

int nami_build_rms_norm(const nami_block_build *b, int x, const char *name)
{
    int out = activation(b, width_of(b));
    int rstd =
        nami_graph_value(b->graph, b->wide, nami_shape_of(b->batch, b->time, 0, 0));
    int weight = nami_build_use(b, name, ".weight");
    nami_node *n = nami_graph_node(b->graph, &nami_op_norm);
    n->in[0] = x;
    n->param[0] = weight;
    n->saved[1] = rstd;
    n->real[0] = b->model->options.norm_eps;
    n->whole[0] = 1;
    return n->out = out;
}

int nami_build_rotary(const nami_block_build *b, int qkv, int64_t kv_heads)
{
    const nami_model_options *o = &b->model->options;
    int out = nami_graph_value_like(b->graph, qkv);
    nami_node *n = nami_graph_node(b->graph, &nami_op_rotary);
    n->in[0] = qkv;
    n->real[0] = o->rope_theta;
    n->whole[0] = o->heads + kv_heads;
    n->whole[1] = o->width / o->heads;
    return n->out = out;
}

int nami_build_swiglu(const nami_block_build *b, int x, int64_t width)
{
    int out = activation(b, width);
    nami_node *n = nami_graph_node(b->graph, &nami_op_swiglu);
    n->in[0] = x;
    return n->out = out;
}

int nami_build_gelu(const nami_block_build *b, int x)
{
    int out = nami_graph_value_like(b->graph, x);
    nami_node *n = nami_graph_node(b->graph, &nami_op_gelu);
    n->in[0] = x;
    return n->out = out;
}

int nami_build_unary(const nami_block_build *b, int x, nami_unary function)
{
    int out = nami_graph_value_like(b->graph, x);
    nami_node *n = nami_graph_node(b->graph, &nami_op_unary);
    n->in[0] = x;
    n->whole[0] = function;
    return n->out = out;
}

int nami_build_attention(const nami_block_build *b, int qkv,
                         const nami_attention_kind *kind, const char *name)
{
    int64_t heads = b->model->options.heads;
    int64_t groups = kind->kv_heads > 0 ? kind->kv_heads : heads;
    int64_t kv = 2 * groups * (width_of(b) / heads);
    int out = activation(b, width_of(b));
    int lse =
        nami_graph_value(b->graph, b->wide, nami_shape_of(b->batch, heads, b->time, 0));
    bool sliced = nami_graph_slices(b->graph) > 1;
    int dkv = sliced ? nami_graph_value(b->graph, b->wide,
                                        nami_shape_of(b->batch, b->time, kv, 0))
                     : -1;
    nami_node *n = nami_graph_node(b->graph, &nami_op_attention);
    n->in[0] = qkv;
    n->in[1] = kind->length;
    n->saved[0] = lse;
    n->saved[1] = dkv;
    n->real[0] = b->model->dropout;
    n->whole[0] = heads;
    n->whole[1] = groups;
    n->whole[2] = kind->whole;
    n->key = nami_hash_name(name);
    return n->out = out;
}

int nami_build_dropout(const nami_block_build *b, int x, const char *name)
{
    if (b->model->dropout == 0)
        return x;
    int out = nami_graph_value_like(b->graph, x);
    nami_node *n = nami_graph_node(b->graph, &nami_op_dropout);
    n->in[0] = x;
    n->real[0] = b->model->dropout;
    n->key = nami_hash_name(name);
    return n->out = out;
}

int nami_build_residual(const nami_block_build *b, int x, int branch, const char *name)
{
    int out = nami_graph_value_like(b->graph, x);
    nami_node *n = nami_graph_node(b->graph, &nami_op_residual);
    n->in[0] = x;
    n->in[1] = branch;
    n->real[0] = b->model->dropout;
    n->key = nami_hash_name(name);
    return n->out = out;
}

int nami_build_embed(const nami_block_build *b, int tokens, const char *wte,
                     const char *wpe)
{
    int token = nami_build_use(b, wte, ".weight"),
        position = wpe ? nami_build_use(b, wpe, ".weight") : -1;
    int out = activation(b, width_of(b));
    nami_node *n = nami_graph_node(b->graph, &nami_op_embed);
    n->in[0] = tokens;
    n->param[0] = token;
    n->param[1] = position;
    return n->out = out;
}

int nami_build_loss(const nami_block_build *b, int logits)
{
    if (b->targets < 0)
        return logits;
    nami_node *n = nami_graph_node(b->graph, &nami_op_xent);
    n->in[0] = logits;
    n->in[1] = b->targets;
    n->real[0] = b->model->options.label_smoothing;
    return -1;
}
