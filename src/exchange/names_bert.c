/* SPDX-License-Identifier: MIT */
/* names_bert.c - Hugging Face's names of BERT, with or without "bert." in front, and those of old files, which say gamma and
 * beta. Its query, key and value are rows of ours. A tied decoder is the embedding again; numbers of positions are no
 * parameters. Encoders come without heads.
 */
#include "exchange/names.h"

#define ROW(kind, theirs, number)                                                      \
    {                                                                                  \
        .own = "bert.encoder.layer.#.attention.self.qkv." kind,                        \
        .foreign = "bert.encoder.layer.#.attention.self." theirs "." kind,             \
        .split = nami_names_thirds, .part = number                                     \
    }

static const nami_name_row rows[] = {
    ROW("weight", "query", 0),
    ROW("weight", "key", 1),
    ROW("weight", "value", 2),
    ROW("bias", "query", 0),
    ROW("bias", "key", 1),
    ROW("bias", "value", 2),
    {.own = "*.LayerNorm.weight", .foreign = "*.LayerNorm.gamma", .alias = true},
    {.own = "*.LayerNorm.bias", .foreign = "*.LayerNorm.beta", .alias = true},
    {.own = "bert.embeddings.word_embeddings.weight",
     .foreign = "cls.predictions.decoder.weight",
     .twin = true},
    {.own = "cls.predictions.bias",
     .foreign = "cls.predictions.decoder.bias",
     .twin = true},
    {0},
};

static const char *const none[] = {"*embeddings.position_ids", NULL};

static const char *const heads[] = {"bert.pooler.*", "cls.predictions.*",
                                    "cls.seq_relationship.*", NULL};

const nami_names nami_names_bert = {
    .family = {"bert"},
    .dialect = {{.name = "huggingface", .row = rows}},
    .front = {"bert."},
    .none = none,
    .heads = heads,
};
