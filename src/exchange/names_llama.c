/* SPDX-License-Identifier: MIT */
/* names_llama.c - Hugging Face's names of Llama: ours, but that it has queries, keys, values, and the gate and its
 * companion, as matrices of their own. The order of elements inside heads is the same. A tied head is the embedding
 * again; wavelengths of rotary positions, which old files have, are no parameters.
 */
#include "exchange/names.h"

static int qkv(const nami_model_options *o, int64_t rows,
               int64_t cut[NAMI_NAMES_PARTS + 1])
{
    const int64_t groups = o->kv_heads > 0 ? o->kv_heads : o->heads;
    const int64_t width = rows / (o->heads + 2 * groups);
    cut[0] = 0;
    cut[1] = o->heads * width;
    cut[2] = cut[1] + groups * width;
    cut[3] = rows;
    return 3;
}

static int halves(const nami_model_options *o, int64_t rows,
                  int64_t cut[NAMI_NAMES_PARTS + 1])
{
    (void)o;
    cut[0] = 0;
    cut[1] = rows / 2;
    cut[2] = rows;
    return 2;
}

#define ATTENTION "model.layers.#.self_attn."
#define MLP "model.layers.#.mlp."

static const nami_name_row rows[] = {
    {ATTENTION "qkv_proj.weight", ATTENTION "q_proj.weight", .split = qkv, .part = 0},
    {ATTENTION "qkv_proj.weight", ATTENTION "k_proj.weight", .split = qkv, .part = 1},
    {ATTENTION "qkv_proj.weight", ATTENTION "v_proj.weight", .split = qkv, .part = 2},
    {MLP "gate_up_proj.weight", MLP "gate_proj.weight", .split = halves, .part = 0},
    {MLP "gate_up_proj.weight", MLP "up_proj.weight", .split = halves, .part = 1},
    {.own = "model.embed_tokens.weight", .foreign = "lm_head.weight", .twin = true},
    {0},
};

static const char *const none[] = {"*.rotary_emb.inv_freq", NULL};

const nami_names nami_names_llama = {
    .family = {"llama"},
    .dialect = {{.name = "huggingface", .row = rows}},
    .front = {"model."},
    .none = none,
};
