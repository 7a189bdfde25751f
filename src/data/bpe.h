/* SPDX-License-Identifier: MIT */
/* bpe.h - byte-pair encoding by a table of ranks, with GPT-2's way to split text first.
 *
 * A rank file has one token a line: its bytes in base64, a blank, its rank, which is its number (tiktoken's form, as
 * r50k_base.tiktoken). Encoding splits text into pieces and, in each, joins the neighbours whose bytes together have the
 * lowest rank, the first such pair first, until no neighbours make a token.
 */
#ifndef NAMI_DATA_BPE_H
#define NAMI_DATA_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct nami_bpe nami_bpe;

/* Read a rank file. Local. Status: NAMI_EINPUT missing, a line that is none, ranks that are not 0 to n-1, a token twice, a
 * byte without a token, more than 65535 tokens. */
nami_status nami_bpe_open(const char *path, nami_bpe **out);
void nami_bpe_close(nami_bpe *b); /* Local; NULL allowed. */
int64_t nami_bpe_tokens(const nami_bpe *b);

/* Bytes of the first piece of text[0..bytes), as GPT-2's pattern splits; 0: it depends on what follows these bytes, which
 * cannot be when they are `all` there is. Local, pure. */
int64_t nami_bpe_piece(const unsigned char *text, int64_t bytes, bool all);

/* Tokens of one piece into out, room for `bytes`; returns how many. Local. */
int64_t nami_bpe_encode(const nami_bpe *b, const unsigned char *piece, int64_t bytes,
                        uint16_t *out);

/* Tokens of the string `text` into out, room for as many as it has bytes; returns how many. In bpe_text.c. Local. */
int64_t nami_bpe_text(const nami_bpe *b, const char *text, int32_t *out);

/* The *bytes bytes of the token `rank`, 0 to nami_bpe_tokens - 1; they belong to `b`. Local. */
const unsigned char *nami_bpe_token(const nami_bpe *b, int64_t rank, int64_t *bytes);

#endif
