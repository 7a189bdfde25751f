/* SPDX-License-Identifier: MIT */
/* wordpiece.h - BERT's uncased tokens: words of lower-case letters without accents, then the longest pieces of a list.
 *
 * J. Devlin et al., github.com/google-research/bert, tokenization.py. A vocabulary file (vocab.txt) has one token a line; its
 * number is that of the line, from 0. A piece that continues a word starts with "##".
 */
#ifndef NAMI_DATA_WORDPIECE_H
#define NAMI_DATA_WORDPIECE_H

#include <stdint.h>

#include "base/status.h"

/* Characters of a word that is looked up; a longer one is [UNK]. Bytes of a token in the file. */
enum { NAMI_WORDPIECE_WORD = 100, NAMI_WORDPIECE_BYTES = 512 };

typedef enum nami_wordpiece_special {
    NAMI_WORDPIECE_PAD,
    NAMI_WORDPIECE_UNK,
    NAMI_WORDPIECE_CLS,
    NAMI_WORDPIECE_SEP,
    NAMI_WORDPIECE_MASK,
    NAMI_WORDPIECE_SPECIALS
} nami_wordpiece_special;

/* "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]". */
extern const char *const nami_wordpiece_special_names[NAMI_WORDPIECE_SPECIALS];

typedef struct nami_wordpiece nami_wordpiece;

/* Read a vocabulary file. Local. Status: NAMI_EINPUT missing, an empty or too long line, a token twice, a special token that is
 * not there, more than 65536 tokens. */
nami_status nami_wordpiece_open(const char *path, nami_wordpiece **out);
void nami_wordpiece_close(nami_wordpiece *w); /* Local; NULL allowed. */
int64_t nami_wordpiece_tokens(const nami_wordpiece *w);

/* CRC-32 of the file. Local. */
uint32_t nami_wordpiece_checksum(const nami_wordpiece *w);

/* Number of a special token. Local. */
uint16_t nami_wordpiece_special_of(const nami_wordpiece *w, nami_wordpiece_special s);

/* Tokens of UTF-8 text[0..bytes) into out, room for `bytes`; returns how many. What is no UTF-8 is left out. Special tokens
 * are not recognised in text: "[MASK]" is three words. Local. */
int64_t nami_wordpiece_encode(const nami_wordpiece *w, const unsigned char *text,
                              int64_t bytes, uint16_t *out);

#endif
