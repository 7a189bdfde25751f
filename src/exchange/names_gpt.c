/* SPDX-License-Identifier: MIT */
/* names_gpt.c - nanoGPT's names, which are ours, and Hugging Face's of GPT-2: the same, with or without "transformer." in
 * front, its four matrices as [in,out] (Conv1D). A tied head is the embedding again; GPT-2's masks are no parameters.
 */
#include "exchange/names.h"

static const nami_name_row rows[] = {
    {.own = "transformer.wte.weight", .foreign = "lm_head.weight", .twin = true},
    {0},
};

static const char *const turned[] = {"*.attn.c_attn.weight", "*.attn.c_proj.weight",
                                     "*.mlp.c_fc.weight", "*.mlp.c_proj.weight", NULL};

static const char *const none[] = {"*.attn.bias", "*.attn.masked_bias", NULL};

const nami_names nami_names_gpt = {
    .family = {"gpt"},
    .dialect = {{.name = "huggingface", .row = rows, .turned = turned},
                {.name = "nanogpt"}},
    .front = {"transformer."},
    .none = none,
};
