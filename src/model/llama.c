/* SPDX-License-Identifier: MIT */
/* llama.c - Llama as a chain of blocks, with Hugging Face's parameter names.
 *
 * RMS norm in front of each half-layer, rotary positions, attention whose k and v may have fewer heads than q, a gated
 * MLP, no biases. Two matrices are packed: self_attn.qkv_proj is q_proj, k_proj and v_proj below each other, and
 * mlp.gate_up_proj gate_proj and up_proj. Touvron et al., LLaMA (2023), section 2.2; Llama 2 (2023), A.2.1.
 */
#include <math.h>
#include <stdio.h>

#include "model/family.h"

static const double deviation = 0.02; /* Hugging Face's; branches less, as GPT-2's */

static int64_t groups_of(const nami_model_options *o)
{
    return o->kv_heads > 0 ? o->kv_heads : o->heads;
}

/* Width of q, k and v together. */
static int64_t qkv_of(const nami_model_options *o)
{
    return (o->heads + 2 * groups_of(o)) * (o->width / o->heads);
}

/* Width of the MLP: two thirds of four times the model's, up to a multiple of 256, as Llama's. */
static int64_t inner_of(const nami_model_options *o)
{
    return o->mlp_width > 0 ? o->mlp_width : (8 * o->width / 3 + 255) / 256 * 256;
}

static nami_status check(const nami_model_options *o)
{
    NAMI_TRY(nami_transformer_check(o));
    if (o->width / o->heads % 2 != 0)
        return nami_fail(NAMI_EINPUT,
                         "model.width = %lld over model.heads = %lld is odd; rotary "
                         "positions turn pairs of elements",
                         (long long)o->width, (long long)o->heads);
    if (o->kv_heads < 0 || o->heads % groups_of(o) != 0)
        return nami_fail(NAMI_EINPUT,
                         "model.heads = %lld is not a multiple of model.kv_heads = "
                         "%lld",
                         (long long)o->heads, (long long)o->kv_heads);
    if (!(o->rope_theta > 0))
        return nami_fail(NAMI_EINPUT, "model.rope_theta is %g; it must be above 0",
                         o->rope_theta);
    if (!(o->norm_eps > 0))
        return nami_fail(NAMI_EINPUT, "model.norm_eps is %g; it must be above 0",
                         o->norm_eps);
    return nami_transformer_check_inner(inner_of(o));
}

/* "model.layers.3.self_attn.qkv_proj" into buf; returns it. */
static const char *module(char buf[64], int64_t layer, const char *name)
{
    (void)snprintf(buf, 64, "model.layers.%lld.%s", (long long)layer, name);
    return buf;
}

/* NAME.weight, matrix [out,in] (out only: a norm's). */
static void weight(nami_model *m, int block, const char *name, int64_t out, int64_t in,
                   double dev)
{
    char full[96];
    (void)snprintf(full, sizeof full, "%s.weight", name);
    nami_model_param(m, block, full, nami_shape_of(out, in, 0, 0),
                     in ? NAMI_INIT_NORMAL : NAMI_INIT_ONE, dev);
}

static void layer_parameters(nami_model *m, int64_t l)
{
    char name[64];
    const nami_model_options *o = &m->options;
    int64_t c = o->width, inner = inner_of(o);
    int attention = 2 * (int)l + 1, mlp = attention + 1;
    double branch = deviation / sqrt(2.0 * (double)o->layers);
    weight(m, attention, module(name, l, "input_layernorm"), c, 0, 0);
    weight(m, attention, module(name, l, "self_attn.qkv_proj"), qkv_of(o), c,
           deviation);
    weight(m, attention, module(name, l, "self_attn.o_proj"), c, c, branch);
    weight(m, mlp, module(name, l, "post_attention_layernorm"), c, 0, 0);
    weight(m, mlp, module(name, l, "mlp.gate_up_proj"), 2 * inner, c, deviation);
    weight(m, mlp, module(name, l, "mlp.down_proj"), c, inner, branch);
}

static void parameters(nami_model *m)
{
    const nami_model_options *o = &m->options;
    int head = m->blocks - 1;
    nami_shape table = nami_shape_of(o->vocabulary, o->width, 0, 0);
    nami_model_param(m, 0, "model.embed_tokens.weight", table, NAMI_INIT_NORMAL,
                     deviation)
        ->uses = o->tied ? 2 : 1;
    for (int64_t l = 0; l < o->layers; l++)
        layer_parameters(m, l);
    weight(m, head, "model.norm", o->width, 0, 0);
    if (!o->tied)
        weight(m, head, "lm_head", o->vocabulary, o->width, deviation);
}

static int build_attention(const nami_block_build *b, int64_t l, int x)
{
    char name[64];
    const nami_attention_kind kind = {.kv_heads = groups_of(&b->model->options),
                                      .length = -1};
    int v = nami_build_rms_norm(b, x, module(name, l, "input_layernorm"));
    v = nami_build_linear(b, v, module(name, l, "self_attn.qkv_proj"));
    v = nami_build_rotary(b, v, kind.kv_heads);
    v = nami_build_attention(b, v, &kind, module(name, l, "self_attn"));
    v = nami_build_linear(b, v, module(name, l, "self_attn.o_proj"));
    return nami_build_residual(b, x, v, module(name, l, "self_attn.dropout"));
}

static int build_mlp(const nami_block_build *b, int64_t l, int x)
{
    char name[64];
    int v = nami_build_rms_norm(b, x, module(name, l, "post_attention_layernorm"));
    v = nami_build_linear(b, v, module(name, l, "mlp.gate_up_proj"));
    v = nami_build_swiglu(b, v, inner_of(&b->model->options));
    v = nami_build_linear(b, v, module(name, l, "mlp.down_proj"));
    return nami_build_residual(b, x, v, module(name, l, "mlp.dropout"));
}

static int build(const nami_block_build *b, int x)
{
    int64_t layer = (b->block - 1) / 2;
    if (b->block == 0) {
        int v = nami_build_embed(b, x, "model.embed_tokens", NULL);
        return nami_build_dropout(b, v, "model.dropout");
    }
    if (b->block < b->model->blocks - 1)
        return b->block % 2 ? build_attention(b, layer, x) : build_mlp(b, layer, x);
    int v = nami_build_rms_norm(b, x, "model.norm");
    v = nami_build_linear(b, v,
                          b->model->options.tied ? "model.embed_tokens" : "lm_head");
    return nami_build_loss(b, v);
}

/* Counted as gpt's; rotary positions and the gate count nothing. */
static double flops(const nami_model *m, int block, int64_t time)
{
    const nami_model_options *o = &m->options;
    double t = (double)time, c = (double)o->width;
    if (block == 0)
        return t * c;
    if (block == m->blocks - 1)
        return 2 * t * c * (double)o->vocabulary;
    if (block % 2)
        return 2 * t * c * ((double)qkv_of(o) + c) + 4 * t * t * c;
    return 6 * t * c * (double)inner_of(o);
}

const nami_family nami_family_llama = {.name = "llama",
                                       .causal = true,
                                       .bare = true,
                                       .check = check,
                                       .blocks = nami_transformer_blocks,
                                       .parameters = parameters,
                                       .block_name = nami_transformer_block_name,
                                       .build = build,
                                       .flops = flops};
