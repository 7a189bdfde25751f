/* SPDX-License-Identifier: MIT */
/* bert_inner.h - an opened data set for BERT, for the files that open and read it. */
#ifndef NAMI_DATA_BERT_INNER_H
#define NAMI_DATA_BERT_INNER_H

#include <string.h>

#include "data/bert.h"
#include "data/bert_pair.h"
#include "data/bert_set.h"
#include "data/flat.h"

struct nami_bert {
    nami_store *store;
    char *path, *kind, *sum, *offset_sum[2], *wordpiece, *identity;
    nami_bert_tokens tokens; /* T, M, the bound of every token, special tokens */
    int64_t vocabulary;      /* as stored */
    int64_t elements;        /* of text: its tokens; of ready samples: N */
    int64_t stored_masked;   /* of ready samples: slots in the file */
    int64_t used;            /* of ready samples: slots that one uses at most */
    nami_offsets sentence, document;
    nami_flat flat; /* tokens, or the rows of ready samples */
    void *part[2];  /* [T-3] of a set that is not whole; of ready samples one row */
};

static inline bool nami_bert_is_text(const nami_bert *d)
{
    return !strcmp(d->kind, NAMI_BERT_TEXT_KIND);
}

/* Tokens of a row of ready samples, 1 of text. */
static inline int64_t nami_bert_row_of(const nami_bert *d)
{
    return nami_bert_is_text(d) ? 1 : nami_bert_row(d->tokens.time, d->stored_masked);
}

/* Tokens from `from` on, [count] of 16 bits, are below the bound. Local. Status: NAMI_EINPUT. */
nami_status nami_bert_check_tokens(void *context, int64_t from, int64_t count,
                                   const void *data);

#endif
