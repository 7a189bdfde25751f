/* SPDX-License-Identifier: MIT */
/* data.h - token data sets in HDF5, and which samples make a step.
 *
 * A data set file: array /tokens (u8 or u16), attributes vocabulary, tokens, checksum, source, kind ("bytes", "gpt2", ...).
 */
#ifndef NAMI_DATA_DATA_H
#define NAMI_DATA_DATA_H

#include "base/option.h"
#include "store/store.h"

/* [data] of the deck. */
typedef struct nami_data_options {
    char *train, *valid; /* paths; valid may be "" */
    int last_batch;      /* drop, pad, short: what becomes of an epoch's last incomplete step of an evaluation */
} nami_data_options;
extern const nami_option_table nami_data_option_table;

typedef struct nami_data nami_data;

/* Open for samples of `time` tokens (+1 for targets). Collective on c.
 * Status: NAMI_EINPUT missing, truncated, wrong kind, too short, token >= vocabulary of the model (checked on read). */
nami_status nami_data_open(nami_comm *c, const char *path, int64_t time, int64_t vocabulary, nami_data **out);
void nami_data_close(nami_data *d); /* Collective. */
int64_t nami_data_samples(const nami_data *d);      /* non-overlapping windows: (tokens-1)/time */
const char *nami_data_identity(const nami_data *d); /* checksum and size, for the checkpoint */

/* Start token of the window that global training sample `counter` uses: windows of an epoch are visited in the order of a
 * keyed permutation, and each epoch shifts the window grid by a keyed amount in [0, time). Pure. */
int64_t nami_data_window(const nami_data *d, uint64_t key, int64_t counter);

/* Tokens [from, from+time] of `count` windows into token [count,time] and target [count,time] (next tokens). Reads ahead:
 * see nami_data_expect. Local (independent reads). */
nami_status nami_data_read(nami_data *d, const int64_t *from, int64_t count, int32_t *token, int32_t *target);

/* Announce windows that will be read soon, so that they are prefetched by a helper thread or in chunks. Local. */
void nami_data_expect(nami_data *d, const int64_t *from, int64_t count);

#endif
