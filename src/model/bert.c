/* SPDX-License-Identifier: MIT */
/* bert.c - BERT for pre-training (Devlin et al. 2019): masked tokens and next sentences, with Hugging Face's names.
 *
 * Blocks: 0 embedding; 2l+1 attention and 2l+2 MLP half-layer of layer l; 2L+1 both heads and the losses. The norm
 * follows each residual sum. query, key and value are one matrix, self.qkv, in this order.
 * Loss: mean over masked tokens of the step + mean over its next-sentence questions. Without targets the model ends in the
 * logits of every token.
 */
#include <stdio.h>

#include "model/family.h"

static const double deviation = 0.02;
static const char word_embeddings[] = "bert.embeddings.word_embeddings";
static const char decoder[] = "cls.predictions.decoder";

static int64_t mlp_width(const nami_model_options *o)
{
    return o->mlp_width > 0 ? o->mlp_width : 4 * o->width;
}

static nami_status check(const nami_model_options *o)
{
    NAMI_TRY(nami_transformer_check(o));
    if (o->type_vocabulary < 2)
        return nami_fail(
            NAMI_EINPUT,
            "model.type_vocabulary is %lld; samples have the types 0 and 1",
            (long long)o->type_vocabulary);
    if (o->predictions > o->context)
        return nami_fail(NAMI_EINPUT,
                         "model.predictions = %lld is more than model.context = %lld",
                         (long long)o->predictions, (long long)o->context);
    return nami_transformer_check_inner(mlp_width(o));
}

static void matrix(nami_model *m, int block, const char *name, int64_t out, int64_t in)
{
    char full[112];
    (void)snprintf(full, sizeof full, "%s.weight", name);
    nami_model_param(m, block, full, nami_shape_of(out, in, 0, 0), NAMI_INIT_NORMAL,
                     deviation);
}

/* NAME.weight [out,in] and NAME.bias [out]. */
static void linear(nami_model *m, int block, const char *name, int64_t out, int64_t in)
{
    char full[112];
    matrix(m, block, name, out, in);
    (void)snprintf(full, sizeof full, "%s.bias", name);
    nami_model_param(m, block, full, nami_shape_of(out, 0, 0, 0), NAMI_INIT_ZERO, 0);
}

static void norm(nami_model *m, int block, const char *name)
{
    char full[112];
    nami_shape c = nami_shape_of(m->options.width, 0, 0, 0);
    (void)snprintf(full, sizeof full, "%s.weight", name);
    nami_model_param(m, block, full, c, NAMI_INIT_ONE, 0);
    (void)snprintf(full, sizeof full, "%s.bias", name);
    nami_model_param(m, block, full, c, NAMI_INIT_ZERO, 0);
}

/* "bert.encoder.layer.3.output.dense" into buf; returns it. */
static const char *module(char buf[80], int64_t layer, const char *name)
{
    (void)snprintf(buf, 80, "bert.encoder.layer.%lld.%s", (long long)layer, name);
    return buf;
}

static void layer_parameters(nami_model *m, int64_t l)
{
    char name[80];
    int64_t c = m->options.width, inner = mlp_width(&m->options);
    int attention = 2 * (int)l + 1, mlp = attention + 1;
    linear(m, attention, module(name, l, "attention.self.qkv"), 3 * c, c);
    linear(m, attention, module(name, l, "attention.output.dense"), c, c);
    norm(m, attention, module(name, l, "attention.output.LayerNorm"));
    linear(m, mlp, module(name, l, "intermediate.dense"), inner, c);
    linear(m, mlp, module(name, l, "output.dense"), c, inner);
    norm(m, mlp, module(name, l, "output.LayerNorm"));
}

static void parameters(nami_model *m)
{
    const nami_model_options *o = &m->options;
    int head = m->blocks - 1;
    int64_t c = o->width;
    matrix(m, 0, word_embeddings, o->vocabulary, c);
    m->param[m->params - 1].uses = o->tied ? 2 : 1;
    matrix(m, 0, "bert.embeddings.position_embeddings", o->context, c);
    matrix(m, 0, "bert.embeddings.token_type_embeddings", o->type_vocabulary, c);
    norm(m, 0, "bert.embeddings.LayerNorm");
    for (int64_t l = 0; l < o->layers; l++)
        layer_parameters(m, l);
    linear(m, head, "bert.pooler.dense", c, c);
    nami_model_param(m, head, "cls.predictions.bias",
                     nami_shape_of(o->vocabulary, 0, 0, 0), NAMI_INIT_ZERO, 0);
    if (!o->tied)
        matrix(m, head, decoder, o->vocabulary, c);
    linear(m, head, "cls.predictions.transform.dense", c, c);
    norm(m, head, "cls.predictions.transform.LayerNorm");
    linear(m, head, "cls.seq_relationship", 2, c);
}

static void block_name(const nami_model *m, int block, char buf[32])
{
    if (block == m->blocks - 1)
        (void)snprintf(buf, 32, "heads");
    else
        nami_transformer_block_name(m, block, buf);
}

static int build_embedding(const nami_block_build *b, int words)
{
    static const char *const table[] = {word_embeddings,
                                        "bert.embeddings.position_embeddings",
                                        "bert.embeddings.token_type_embeddings"};
    int use[3];
    for (int k = 0; k < 3; k++)
        use[k] = nami_build_use(b, table[k], ".weight");
    int out = nami_graph_value(
        b->graph, b->act, nami_shape_of(b->batch, b->time, b->model->options.width, 0));
    nami_node *n = nami_graph_node(b->graph, &nami_op_embed);
    n->in[0] = words;
    for (int k = 0; k < 3; k++)
        n->param[k] = use[k];
    n->out = out;
    int v = nami_build_norm(b, out, "bert.embeddings.LayerNorm");
    return nami_build_dropout(b, v, "bert.embeddings.dropout");
}

static int build_attention(const nami_block_build *b, int64_t l, int x)
{
    char name[80];
    const nami_attention_kind kind = {.whole = true, .length = b->side};
    int v = nami_build_linear(b, x, module(name, l, "attention.self.qkv"));
    v = nami_build_attention(b, v, &kind, module(name, l, "attention.self"));
    v = nami_build_linear(b, v, module(name, l, "attention.output.dense"));
    v = nami_build_residual(b, x, v, module(name, l, "attention.output.dropout"));
    return nami_build_norm(b, v, module(name, l, "attention.output.LayerNorm"));
}

static int build_mlp(const nami_block_build *b, int64_t l, int x)
{
    char name[80];
    int v = nami_build_linear(b, x, module(name, l, "intermediate.dense"));
    v = nami_build_unary(b, v, NAMI_GELU_ERF);
    v = nami_build_linear(b, v, module(name, l, "output.dense"));
    v = nami_build_residual(b, x, v, module(name, l, "output.dropout"));
    return nami_build_norm(b, v, module(name, l, "output.LayerNorm"));
}

/* The rows of x that the first words of the targets number; without targets the first one. x [B,T,C], out [B,rows,C]. */
static int rows_of(const nami_block_build *b, int x, int targets, int64_t rows)
{
    int out = nami_graph_value(
        b->graph, b->act, nami_shape_of(b->batch, rows, b->model->options.width, 0));
    nami_node *n = nami_graph_node(b->graph, &nami_op_gather);
    n->in[0] = x;
    n->in[1] = targets;
    return n->out = out;
}

/* Logits of the tokens at b->time rows of each sample, by the word embeddings or a matrix like them. */
static int build_decoder(const nami_block_build *b, int x)
{
    int v = nami_build_linear(b, x, "cls.predictions.transform.dense");
    v = nami_build_unary(b, v, NAMI_GELU_ERF);
    v = nami_build_norm(b, v, "cls.predictions.transform.LayerNorm");
    int weight = nami_build_use(b, b->model->options.tied ? word_embeddings : decoder,
                                ".weight"),
        bias = nami_build_use(b, "cls.predictions", ".bias");
    int logits = nami_graph_value(
        b->graph, b->act,
        nami_shape_of(b->batch, b->time, b->model->options.vocabulary, 0));
    nami_node *n = nami_graph_node(b->graph, &nami_op_linear);
    n->in[0] = v;
    n->param[0] = weight;
    n->param[1] = bias;
    return n->out = logits;
}

/* A loss of `logits` against the targets from word `from` on. */
static void build_loss(const nami_block_build *b, int logits, int64_t from, int second)
{
    nami_node *n = nami_graph_node(b->graph, &nami_op_xent);
    n->in[0] = logits;
    n->in[1] = b->targets;
    n->whole[0] = from;
    n->second = second;
    n->real[0] = second ? 0 : b->model->options.label_smoothing;
}

static int build_heads(const nami_block_build *b, int x)
{
    const int64_t masked = b->model->options.predictions;
    nami_block_build rows = *b; /* the same with other rows */
    if (b->targets < 0)
        return build_decoder(b, x);
    rows.time = masked;
    build_loss(b, build_decoder(&rows, rows_of(b, x, b->targets, masked)), masked, 0);
    rows.time = 1;
    int v = nami_build_linear(&rows, rows_of(b, x, -1, 1), "bert.pooler.dense");
    v = nami_build_unary(&rows, v, NAMI_TANH);
    build_loss(b, nami_build_linear(&rows, v, "cls.seq_relationship"), 2 * masked, 1);
    return -1;
}

static int build(const nami_block_build *b, int x)
{
    int64_t layer = (b->block - 1) / 2;
    if (b->block == 0)
        return build_embedding(b, x);
    if (b->block == b->model->blocks - 1)
        return build_heads(b, x);
    return b->block % 2 ? build_attention(b, layer, x) : build_mlp(b, layer, x);
}

/* Counted as gpt.c does; the decoder works on the masked rows alone. */
static double flops(const nami_model *m, int block, int64_t time)
{
    double t = (double)time, c = (double)m->options.width;
    double rows = (double)m->options.predictions;
    double inner = (double)mlp_width(&m->options);
    if (block == 0)
        return 2 * t * c;
    if (block == m->blocks - 1)
        return rows * (2 * c * c + 2 * c * (double)m->options.vocabulary) + 2 * c * c +
               4 * c;
    return block % 2 ? 8 * t * c * c + 4 * t * t * c : 4 * t * c * inner;
}

const nami_family nami_family_bert = {.name = "bert",
                                      .masked = true,
                                      .unread = "bias",
                                      .norm_eps = 1e-12,
                                      .check = check,
                                      .blocks = nami_transformer_blocks,
                                      .parameters = parameters,
                                      .block_name = block_name,
                                      .build = build,
                                      .flops = flops};
