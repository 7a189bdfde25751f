/* SPDX-License-Identifier: MIT */
/* ngram.h - an n-gram model of tokens, for a loss to compare with: interpolated, Witten-Bell.
 *
 * Order k predicts a token x from the k tokens h before it. With n(h) training tokens seen after h, t(h) of them different,
 *   p_k(x | h) = (n(h x) + t(h) p_{k-1}(x | h without its first token)) / (n(h) + t(h)),   p_{-1} = 1/vocabulary,
 * and p_k = p_{k-1} where h was never seen (Witten and Bell, IEEE Trans. Inf. Theory 37 (1991), method C, interpolated).
 * One tree of counts serves all orders up to the highest.
 */
#ifndef NAMI_DATA_NGRAM_H
#define NAMI_DATA_NGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/data.h"

#define NAMI_NGRAM_ORDER 16 /* highest order */

typedef struct nami_ngram nami_ngram;

/* An empty model of orders 0..order whose counts may take up to `limit` bytes. Local. 0 <= order <= NAMI_NGRAM_ORDER. */
nami_ngram *nami_ngram_create(int order, int64_t vocabulary, size_t limit);
void nami_ngram_free(nami_ngram *g); /* Local; NULL allowed. */
size_t nami_ngram_bytes(const nami_ngram *g);

/* Count `count` more tokens; they follow those of the last call. Local. Status: NAMI_EPLAN the limit is reached. */
nami_status nami_ngram_train(nami_ngram *g, const uint16_t *token, int64_t count);

/* Forget what came before: the next token starts a text. Local. */
void nami_ngram_begin(nami_ngram *g);

/* Add -ln p_k of each of `count` tokens to sum[k], k = 0..order; they follow those of the last call. Local. */
void nami_ngram_score(nami_ngram *g, const uint16_t *token, int64_t count, double *sum);

/* The same over tokens [from, to) of a data set, starting a text there. Local. Statuses of nami_data_slab too. */
nami_status nami_ngram_train_on(nami_ngram *g, nami_data *d, int64_t from, int64_t to);
nami_status nami_ngram_score_on(nami_ngram *g, nami_data *d, int64_t from, int64_t to,
                                double *sum);

#endif
