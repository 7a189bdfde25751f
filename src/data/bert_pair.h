/* SPDX-License-Identifier: MIT */
/* bert_pair.h - which tokens of a text make a pair, and which of them are masked; for the files of data/ alone.
 *
 * J. Devlin et al., arXiv:1810.04805, A.1, A.2 and create_pretraining_data.py of github.com/google-research/bert.
 */
#ifndef NAMI_DATA_BERT_PAIR_H
#define NAMI_DATA_BERT_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "data/wordpiece.h"
#include "store/store.h"

/* Ascending numbers, from 0 to a total: [count+1], where each of `count` parts starts and the last ends. */
typedef struct nami_offsets {
    nami_store *store; /* borrowed */
    const char *name;  /* of the array */
    int64_t count;
    int64_t *whole;     /* [count+1]; NULL: read when asked */
    int64_t *block;     /* [NAMI_OFFSETS_BLOCK] the block last read; NULL at first */
    int64_t block_from; /* its first index */
} nami_offsets;

enum { NAMI_OFFSETS_BLOCK = 1024 };

/* Number i of the list, and the part that `x` is in, 0 <= x < the total. Local. Status: NAMI_EINPUT, NAMI_EENV a failed read. */
nami_status nami_offsets_get(nami_offsets *o, int64_t i, int64_t *out);
nami_status nami_offsets_find(nami_offsets *o, int64_t x, int64_t *out);

/* Two runs of tokens. */
typedef struct nami_bert_pair {
    int64_t from[2], count[2]; /* in the text; both counts >= 1, their sum <= T - 3 */
    bool random;               /* the second does not follow the first */
} nami_bert_pair;

/* The pair that starts near token `place`: its sentences from the one with `place` on until T - 3 tokens (in one of ten samples
 * fewer) or the document's end, cut between two of them at random; half of the time the second part is instead taken from
 * another document (from elsewhere, if there is one document). What is then too long loses tokens of its longer part, at
 * both ends. A document's last sentence is taken with the one in front of it, and inside a sentence longer than that the pair
 * starts at `place`.
 *
 * sentence  offsets of sentences in tokens; document: of documents in sentences; at least two sentences
 * time      T >= 5
 * key       of the sample
 * Local. Status: as nami_offsets_get. */
nami_status nami_bert_choose(nami_offsets *sentence, nami_offsets *document,
                             int64_t place, int64_t time, uint64_t key,
                             nami_bert_pair *out);

/* What masking needs to know. */
typedef struct nami_bert_tokens {
    int64_t time, masked, vocabulary;
    uint16_t special[NAMI_WORDPIECE_SPECIALS];
} nami_bert_tokens;

/* Lay out [CLS] A [SEP] B [SEP] and mask: 15 of 100 positions (at least one, at most M) of A and B; of ten, eight become [MASK],
 * one any token, one stays.
 *
 * a, b    tokens of the two parts
 * input   [2T+1], target [2M+1] as of nami_bert_read
 * Local, pure. */
void nami_bert_mask(const nami_bert_tokens *t, const nami_bert_pair *pair,
                    const uint16_t *a, const uint16_t *b, uint64_t key, int32_t *input,
                    int32_t *target);

#endif
