/* SPDX-License-Identifier: MIT */
/* net_build.c - what follows from a list of layers: parameters, work, graphs. */
#include <math.h>
#include <stdio.h>

#include "model/net.h"

static const nami_layer *input_of(const nami_net *n, const nami_layer *l)
{
    return &n->layer[l->in[0]];
}

/* NAME.suffix of `shape`. */
static nami_param *parameter(nami_model *m, const nami_layer *l, const char *suffix,
                             nami_shape shape, nami_init init, double deviation)
{
    char full[NAMI_NET_NAME + 32];
    (void)snprintf(full, sizeof full, "%s.%s", l->name, suffix);
    return nami_model_param(m, l->block, full, shape, init, deviation);
}

static void statistic(nami_model *m, const nami_layer *l, const char *suffix,
                      nami_init init)
{
    const nami_shape shape = nami_shape_of(l->shape.dim[3], 0, 0, 0);
    parameter(m, l, suffix, shape, init, 0)->statistic = true;
}

/* Initial values: convolutions by He et al. (2015), eq. 14, over the outputs; linear layers with the variance of
 * PyTorch's. */
static void layer_parameters(nami_model *m, const nami_layer *l)
{
    const nami_shape *x = &input_of(m->net, l)->shape;
    const int64_t out = l->shape.dim[l->shape.rank - 1], in = x->dim[x->rank - 1];
    const nami_stencil *w = &l->window;
    const nami_shape each = nami_shape_of(out, 0, 0, 0);
    if (l->kind == NAMI_LAYER_CONV)
        parameter(
            m, l, "weight",
            nami_shape_of(out, in / l->groups, w->kernel_h, w->kernel_w),
            NAMI_INIT_NORMAL,
            sqrt(2.0 * (double)l->groups / (double)(out * w->kernel_h * w->kernel_w)));
    if (l->kind == NAMI_LAYER_LINEAR)
        parameter(m, l, "weight", nami_shape_of(out, in, 0, 0), NAMI_INIT_NORMAL,
                  1 / sqrt(3.0 * (double)in));
    if (l->kind == NAMI_LAYER_BATCH_NORM)
        parameter(m, l, "weight", each, NAMI_INIT_ONE, 0);
    if (l->bias || l->kind == NAMI_LAYER_BATCH_NORM)
        parameter(m, l, "bias", each, NAMI_INIT_ZERO, 0);
    if (l->kind == NAMI_LAYER_BATCH_NORM) {
        statistic(m, l, "running_mean", NAMI_INIT_ZERO);
        statistic(m, l, "running_var", NAMI_INIT_ONE);
    }
}

void nami_net_parameters(nami_model *m)
{
    for (int i = 1; i < m->net->layers; i++)
        layer_parameters(m, &m->net->layer[i]);
}

void nami_net_block_name(const nami_model *m, int block, char buf[32])
{
    (void)snprintf(buf, 32, "%s", m->net->block_name[block]);
}

/* Products alone count; a block without any counts its elements. */
double nami_net_flops(const nami_model *m, int block, int64_t time)
{
    double products = 0, elements = 0;
    (void)time;
    for (int i = 1; i < m->net->layers; i++) {
        const nami_layer *l = &m->net->layer[i];
        const nami_shape *x = &input_of(m->net, l)->shape;
        const double made = (double)nami_shape_count(&l->shape),
                     in = (double)x->dim[x->rank - 1];
        if (l->block != block)
            continue;
        elements += made;
        if (l->kind == NAMI_LAYER_LINEAR)
            products += 2 * made * in;
        if (l->kind == NAMI_LAYER_CONV)
            products += 2 * made * in / (double)l->groups *
                        (double)(l->window.kernel_h * l->window.kernel_w);
    }
    return products > 0 ? products : elements;
}

nami_shape nami_net_shape(const nami_model *m, int block, int64_t batch)
{
    const nami_net *n = m->net;
    int i = 0; /* the last layer in front of the block */
    while (block > 0 && i + 1 < n->layers && n->layer[i + 1].block < block)
        i++;
    nami_shape s = n->layer[i].shape;
    s.dim[0] = batch;
    return s;
}

/* --- graphs --- */

static nami_node *window_node(const nami_block_build *b, const nami_op *op,
                              const nami_layer *l)
{
    const nami_stencil *w = &l->window;
    nami_node *node = nami_graph_node(b->graph, op);
    const int64_t whole[] = {w->kernel_h, w->kernel_w, w->stride,
                             w->pad_h,    w->pad_w,    w->dilation};
    for (int i = 0; i < 6; i++)
        node->whole[i] = whole[i];
    return node;
}

static int value_of(const nami_block_build *b, const nami_layer *l)
{
    nami_shape s = l->shape;
    s.dim[0] = b->batch;
    return nami_graph_value(b->graph, b->act, s);
}

static int build_conv(const nami_block_build *b, const nami_layer *l, int x)
{
    const int weight = nami_build_use(b, l->name, ".weight"),
              bias = l->bias ? nami_build_use(b, l->name, ".bias") : -1;
    const int out = value_of(b, l);
    nami_node *n = window_node(b, &nami_op_conv, l);
    n->in[0] = x;
    n->param[0] = weight;
    n->param[1] = bias;
    n->whole[6] = l->groups;
    return n->out = out;
}

static int build_batch_norm(const nami_block_build *b, const nami_layer *l, int x)
{
    static const char *const suffix[] = {".weight", ".bias", ".running_mean",
                                         ".running_var"};
    const nami_shape channels = nami_shape_of(l->shape.dim[3], 0, 0, 0);
    int use[4], saved[2];
    for (int k = 0; k < 4; k++)
        use[k] = nami_build_use(b, l->name, suffix[k]);
    for (int k = 0; k < 2; k++)
        saved[k] = nami_graph_value(b->graph, b->wide, channels);
    const int out = value_of(b, l);
    nami_node *n = nami_graph_node(b->graph, &nami_op_batch_norm);
    n->in[0] = x;
    for (int k = 0; k < 4; k++)
        n->param[k] = use[k];
    for (int k = 0; k < 2; k++)
        n->saved[k] = saved[k];
    n->real[0] = l->real;
    n->whole[0] = l->relu;
    n->whole[1] = nami_model_shares(b->model);
    return n->out = out;
}

/* By its result where that is there in the backward pass: inside a block. */
static int build_unary(const nami_block_build *b, const nami_layer *l, int x, bool ends)
{
    const int out = value_of(b, l);
    const nami_op *op =
        l->function == NAMI_RELU && !ends ? &nami_op_relu : &nami_op_unary;
    nami_node *n = nami_graph_node(b->graph, op);
    n->in[0] = x;
    n->whole[0] = l->function;
    return n->out = out;
}

static int build_pool(const nami_block_build *b, const nami_layer *l, int x)
{
    const int out = value_of(b, l);
    nami_node *n = window_node(b, &nami_op_pool, l);
    n->in[0] = x;
    n->whole[6] = l->max;
    n->whole[7] = true; /* PyTorch's count_include_pad */
    return n->out = out;
}

static int build_pair(const nami_block_build *b, const nami_op *op, const nami_layer *l,
                      int x, int other)
{
    const int out = value_of(b, l);
    nami_node *n = nami_graph_node(b->graph, op);
    n->in[0] = x;
    n->in[1] = other;
    n->real[0] = l->kind == NAMI_LAYER_ADD ? l->real * b->model->dropout : 0;
    n->key = nami_hash_name(l->name);
    return n->out = out;
}

static int build_layer(const nami_block_build *b, const nami_layer *l, int x, int other,
                       bool ends)
{
    switch (l->kind) {
    case NAMI_LAYER_CONV:
        return build_conv(b, l, x);
    case NAMI_LAYER_BATCH_NORM:
        return build_batch_norm(b, l, x);
    case NAMI_LAYER_UNARY:
        return build_unary(b, l, x, ends);
    case NAMI_LAYER_POOL:
        return build_pool(b, l, x);
    case NAMI_LAYER_LINEAR:
        return nami_build_linear(b, x, l->name);
    case NAMI_LAYER_DROPOUT:
        return nami_build_dropout(b, x, l->name);
    case NAMI_LAYER_ADD:
        return build_pair(b, &nami_op_depth, l, x, other);
    case NAMI_LAYER_CONCAT:
        return build_pair(b, &nami_op_concat, l, x, other);
    case NAMI_LAYER_EXCITE:
        return build_pair(b, &nami_op_excite, l, x, other);
    default:
        return build_pair(b, &nami_op_flatten, l, x, -1);
    }
}

/* Whether layer i makes what leaves its block: nothing is behind it, or only dropout that drops nothing. */
static bool ends_block(const nami_model *m, int i)
{
    const nami_net *n = m->net;
    const int block = n->layer[i].block;
    int next = i + 1;
    while (next < n->layers && n->layer[next].block == block &&
           n->layer[next].kind == NAMI_LAYER_DROPOUT && m->dropout == 0)
        next++;
    return next == n->layers || n->layer[next].block != block;
}

/* Images of the data set in the type of activations. */
static int build_cast(const nami_block_build *b, const nami_layer *l, int x)
{
    return b->act == NAMI_F32 ? x : build_pair(b, &nami_op_cast, l, x, -1);
}

/* A block of nothing but a dropout that never drops hands its input on; a stage needs an output of its own. */
static int build_copy(const nami_block_build *b, int x)
{
    const int out = nami_graph_value_like(b->graph, x);
    nami_node *n = nami_graph_node(b->graph, &nami_op_dropout);
    n->in[0] = x;
    return n->out = out;
}

int nami_net_build(const nami_block_build *b, int input)
{
    const nami_net *n = b->model->net;
    int *value = nami_calloc(NAMI_MEM_OTHER, (size_t)n->layers, sizeof *value);
    int out = input;
    for (int i = 0; i < n->layers; i++) {
        const nami_layer *l = &n->layer[i];
        if (l->block == b->block)
            out = i == 0 ? build_cast(b, l, input)
                         : build_layer(b, l, value[l->in[0]],
                                       l->in[1] < 0 ? -1 : value[l->in[1]],
                                       ends_block(b->model, i));
        value[i] = out; /* of blocks before: what comes in */
    }
    nami_free(value);
    if (b->block + 1 == n->blocks)
        return nami_build_loss(b, out);
    return out == input ? build_copy(b, out) : out;
}
