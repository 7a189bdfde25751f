/* SPDX-License-Identifier: MIT */
/* bpe_text.c - a whole text through a byte-pair encoding, and back. */
#include "data/bpe.h"

#include <string.h>

#include "base/memory.h"

int64_t nami_bpe_text(const nami_bpe *b, const char *text, int32_t *out)
{
    const unsigned char *p = (const unsigned char *)text;
    int64_t bytes = (int64_t)strlen(text), count = 0;
    uint16_t *token = nami_alloc(NAMI_MEM_OTHER, ((size_t)bytes + 1) * sizeof *token);
    for (int64_t at = 0; at < bytes;) {
        int64_t piece = nami_bpe_piece(p + at, bytes - at, true);
        int64_t tokens = nami_bpe_encode(b, p + at, piece, token);
        for (int64_t i = 0; i < tokens; i++)
            out[count++] = token[i];
        at += piece;
    }
    nami_free(token);
    return count;
}
