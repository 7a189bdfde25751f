/* SPDX-License-Identifier: MIT */
/* names_vit.c - torchvision's names of vision transformers, which are ours but for the packed q, k, v and those of files of
 * before 2022, and Hugging Face's, with or without "vit." in front: query, key and value are rows of ours. A pooler is no
 * parameter: the head takes the class token as it is.
 */
#include "exchange/names.h"

#define OURS "encoder.layers.encoder_layer_#."
#define THEIRS "vit.encoder.layer.#."

static const nami_name_row torchvision[] = {
    {.own = OURS "self_attention.in_proj.weight",
     .foreign = OURS "self_attention.in_proj_weight"},
    {.own = OURS "self_attention.in_proj.bias",
     .foreign = OURS "self_attention.in_proj_bias"},
    {.own = OURS "mlp.0.*", .foreign = OURS "mlp.linear_1.*", .alias = true},
    {.own = OURS "mlp.3.*", .foreign = OURS "mlp.linear_2.*", .alias = true},
    {0},
};

#define PART(kind, name, number)                                                       \
    {                                                                                  \
        .own = OURS "self_attention.in_proj." kind,                                    \
        .foreign = THEIRS "attention.attention." name "." kind,                        \
        .split = nami_names_thirds, .part = number                                     \
    }

static const nami_name_row huggingface[] = {
    {.own = "class_token", .foreign = "vit.embeddings.cls_token"},
    {.own = "encoder.pos_embedding", .foreign = "vit.embeddings.position_embeddings"},
    {.own = "conv_proj.*", .foreign = "vit.embeddings.patch_embeddings.projection.*"},
    PART("weight", "query", 0),
    PART("weight", "key", 1),
    PART("weight", "value", 2),
    PART("bias", "query", 0),
    PART("bias", "key", 1),
    PART("bias", "value", 2),
    {.own = OURS "self_attention.out_proj.*",
     .foreign = THEIRS "attention.output.dense.*"},
    {.own = OURS "ln_1.*", .foreign = THEIRS "layernorm_before.*"},
    {.own = OURS "ln_2.*", .foreign = THEIRS "layernorm_after.*"},
    {.own = OURS "mlp.0.*", .foreign = THEIRS "intermediate.dense.*"},
    {.own = OURS "mlp.3.*", .foreign = THEIRS "output.dense.*"},
    {.own = "encoder.ln.*", .foreign = "vit.layernorm.*"},
    {.own = "heads.head.*", .foreign = "classifier.*"},
    {0},
};

static const char *const none[] = {"pooler.*", "vit.pooler.*", NULL};

const nami_names nami_names_vit = {
    .family = {"vit"},
    .dialect = {{.name = "torchvision", .row = torchvision},
                {.name = "huggingface", .row = huggingface}},
    .front = {"vit."},
    .none = none,
};
