/* SPDX-License-Identifier: MIT */
/* bert.h - data sets for BERT and the samples they give (NAMI_SAMPLE_MASKED of model/model.h).
 *
 * Two kinds. "bert-text": sentences in documents, from which pairs are cut and masked when they are read, each epoch anew.
 * "bert-samples": pairs that were cut and masked by others. docs/formats.md has both byte by byte.
 */
#ifndef NAMI_DATA_BERT_H
#define NAMI_DATA_BERT_H

#include <stdint.h>

#include "comm/comm.h"
#include "data/wordpiece.h"

typedef struct nami_bert nami_bert;

/* What a model wants of a sample. */
typedef struct nami_bert_want {
    int64_t time;       /* T: tokens */
    int64_t masked;     /* M: masked positions, at most */
    int64_t vocabulary; /* the model's; 0: the data set's own */
} nami_bert_want;

/* Masked positions of T tokens when nobody says how many: 15 of 100, rounded up. Local, pure. */
int64_t nami_bert_masked(int64_t time);

enum { NAMI_BERT_SHORTEST = 5 }; /* T: three special tokens and two others */

/* Open. Collective on c; c NULL: this process alone. Status: NAMI_EINPUT missing, truncated, damaged, of another kind; too short
 * for T, or ready samples of another T or with more masked positions than M. */
nami_status nami_bert_open(nami_comm *c, const char *path, const nami_bert_want *want,
                           nami_bert **out);
void nami_bert_close(nami_bert *d); /* Collective; NULL allowed. */

/* Samples of an epoch: windows of T - 3 tokens, or the ready ones. */
int64_t nami_bert_samples(const nami_bert *d);
int64_t nami_bert_vocabulary(const nami_bert *d); /* as stored */
/* Checksums and sizes, for the checkpoint */
const char *nami_bert_identity(const nami_bert *d);

/* Masked positions that a sample of T tokens uses at most: of ready ones what the set says, else nami_bert_masked, but
 * >= 1. */
int64_t nami_bert_used(const nami_bert *d);

/* Checksum of the vocabulary file, "crc32:9f1c02aa"; "" when unknown. */
const char *nami_bert_wordpiece(const nami_bert *d);

/* Global training sample `counter` >= 0: a function of (set, T, M, key, counter) alone.
 * input   [2T+1] tokens, types, length; NULL: not wanted
 * target  [2M+1] positions, ascending, what was there, whether the second part is a random one; NULL: not wanted
 * Local. Status: NAMI_EINPUT a token outside the vocabulary or a damaged sample, NAMI_EENV a failed read. */
nami_status nami_bert_read(nami_bert *d, uint64_t key, int64_t counter, int32_t *input,
                           int32_t *target);

/* Sample `index` < samples for evaluation: the same whatever the key. Local. Status as nami_bert_read. */
nami_status nami_bert_read_fixed(nami_bert *d, int64_t index, int32_t *input,
                                 int32_t *target);

#endif
