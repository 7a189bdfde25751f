/* SPDX-License-Identifier: MIT */
/* bert_set.h - what the writers and the reader of data sets for BERT share; for the files of data/ alone.
 *
 * A row of ready samples, all 16-bit: T tokens, T types, the length, K positions (0: this slot and those behind it are unused),
 * what was at them, whether the second part is a random one.
 */
#ifndef NAMI_DATA_BERT_SET_H
#define NAMI_DATA_BERT_SET_H

#include <stdint.h>

#include "base/status.h"
#include "data/wordpiece.h"

#define NAMI_BERT_TEXT_KIND "bert-text"
#define NAMI_BERT_SAMPLES_KIND "bert-samples"

/* Attributes of a set of text: the numbers of its special tokens, in the order of nami_wordpiece_special. */
extern const char *const nami_bert_special[NAMI_WORDPIECE_SPECIALS];

enum { NAMI_BERT_TIME = 65535 }; /* the largest T of ready samples */

typedef struct nami_bert_shape {
    int64_t time, slots; /* T, K */
    int64_t vocabulary;  /* every token is below it */
} nami_bert_shape;

static inline int64_t nami_bert_row(int64_t time, int64_t slots)
{
    return 2 * time + 2 * slots + 2;
}

/* Refuse a row that is no sample; *used: its masked positions. Local. Status: NAMI_EINPUT. */
nami_status nami_bert_check_row(const nami_bert_shape *shape, const char *path,
                                int64_t index, const uint16_t *row, int64_t *used);

#endif
