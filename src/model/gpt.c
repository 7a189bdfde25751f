/* SPDX-License-Identifier: MIT */
/* gpt.c - GPT-2 as a chain of blocks, with nanoGPT's parameter names. */
#include <math.h>
#include <stdio.h>

#include "model/family.h"

static const double deviation = 0.02; /* GPT-2's */

/* NAME.weight, matrix [out,in] (out only: a norm's), and NAME.bias [out] where the model has biases. */
static void pair(nami_model *m, int block, const char *name, int64_t out, int64_t in,
                 double dev)
{
    char full[96];
    (void)snprintf(full, sizeof full, "%s.weight", name);
    nami_model_param(m, block, full, nami_shape_of(out, in, 0, 0),
                     in ? NAMI_INIT_NORMAL : NAMI_INIT_ONE, dev);
    if (!m->options.bias)
        return;
    (void)snprintf(full, sizeof full, "%s.bias", name);
    nami_model_param(m, block, full, nami_shape_of(out, 0, 0, 0), NAMI_INIT_ZERO, 0);
}

/* "transformer.h.3.attn.c_attn" into buf; returns it. */
static const char *module(char buf[64], int64_t layer, const char *name)
{
    (void)snprintf(buf, 64, "transformer.h.%lld.%s", (long long)layer, name);
    return buf;
}

static void layer_parameters(nami_model *m, int64_t l)
{
    char name[64];
    int64_t c = m->options.width;
    int attention = 2 * (int)l + 1, mlp = attention + 1;
    double branch = deviation / sqrt(2.0 * (double)m->options.layers);
    pair(m, attention, module(name, l, "ln_1"), c, 0, 0);
    pair(m, attention, module(name, l, "attn.c_attn"), 3 * c, c, deviation);
    pair(m, attention, module(name, l, "attn.c_proj"), c, c, branch);
    pair(m, mlp, module(name, l, "ln_2"), c, 0, 0);
    pair(m, mlp, module(name, l, "mlp.c_fc"), 4 * c, c, deviation);
    pair(m, mlp, module(name, l, "mlp.c_proj"), c, 4 * c, branch);
}

static void parameters(nami_model *m)
{
    const nami_model_options *o = &m->options;
    int head = m->blocks - 1;
    nami_shape wte = nami_shape_of(o->vocabulary, o->width, 0, 0);
    nami_model_param(m, 0, "transformer.wte.weight", wte, NAMI_INIT_NORMAL, deviation)
        ->uses = o->tied ? 2 : 1;
    nami_model_param(m, 0, "transformer.wpe.weight",
                     nami_shape_of(o->context, o->width, 0, 0), NAMI_INIT_NORMAL,
                     deviation);
    for (int64_t l = 0; l < o->layers; l++)
        layer_parameters(m, l);
    pair(m, head, "transformer.ln_f", o->width, 0, 0);
    if (!o->tied)
        nami_model_param(m, head, "lm_head.weight", wte, NAMI_INIT_NORMAL, deviation);
}

static int build_attention(const nami_block_build *b, int64_t l, int x)
{
    char name[64];
    int v = nami_build_norm(b, x, module(name, l, "ln_1"));
    v = nami_build_linear(b, v, module(name, l, "attn.c_attn"));
    const nami_attention_kind causal = {.length = -1};
    v = nami_build_attention(b, v, &causal, module(name, l, "attn"));
    v = nami_build_linear(b, v, module(name, l, "attn.c_proj"));
    return nami_build_residual(b, x, v, module(name, l, "attn.resid_dropout"));
}

static int build_mlp(const nami_block_build *b, int64_t l, int x)
{
    char name[64];
    int v = nami_build_norm(b, x, module(name, l, "ln_2"));
    v = nami_build_linear(b, v, module(name, l, "mlp.c_fc"));
    v = nami_build_gelu(b, v);
    v = nami_build_linear(b, v, module(name, l, "mlp.c_proj"));
    return nami_build_residual(b, x, v, module(name, l, "mlp.dropout"));
}

static int build(const nami_block_build *b, int x)
{
    int64_t layer = (b->block - 1) / 2;
    if (b->block == 0) {
        int v = nami_build_embed(b, x, "transformer.wte", "transformer.wpe");
        return nami_build_dropout(b, v, "transformer.drop");
    }
    if (b->block < b->model->blocks - 1)
        return b->block % 2 ? build_attention(b, layer, x) : build_mlp(b, layer, x);
    int v = nami_build_norm(b, x, "transformer.ln_f");
    v = nami_build_linear(b, v, b->model->options.tied ? "transformer.wte" : "lm_head");
    return nami_build_loss(b, v);
}

/* A matrix product of [T,I] with [I,O] counts 2 T I O, whole T x T attention scores (also the masked
 * half) 2 T T C twice, the embedding one addition an element; norms, GELU and residuals count nothing. */
static double flops(const nami_model *m, int block, int64_t time)
{
    double t = (double)time, c = (double)m->options.width;
    if (block == 0)
        return t * c;
    if (block == m->blocks - 1)
        return 2 * t * c * (double)m->options.vocabulary;
    return block % 2 ? 8 * t * c * c + 4 * t * t * c : 16 * t * c * c;
}

const nami_family nami_family_gpt = {.name = "gpt",
                                     .causal = true,
                                     .check = nami_transformer_check,
                                     .blocks = nami_transformer_blocks,
                                     .parameters = parameters,
                                     .block_name = nami_transformer_block_name,
                                     .build = build,
                                     .flops = flops};
