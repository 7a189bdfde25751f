/* SPDX-License-Identifier: MIT */
/* data.h - token data sets in HDF5, and which samples make a step.
 *
 * A data set file: array /tokens (u8 or u16), attributes vocabulary, tokens, checksum ("crc32:9f1c02aa", of the tokens as
 * little-endian bytes), source, kind ("bytes", "gpt2", "tokens").
 *
 * A set of at most NAMI_DATA_WHOLE bytes is verified at open (each rank a part) and kept whole in memory by the ranks that
 * read it; of a larger one, windows are read as they are asked for. HDF5 is not thread safe here, so nothing reads it from a
 * second thread: an announced window is instead named to the kernel, which reads it into its page cache meanwhile.
 */
#ifndef NAMI_DATA_DATA_H
#define NAMI_DATA_DATA_H

#include "base/option.h"
#include "store/store.h"

#define NAMI_DATA_WHOLE ((int64_t)64 << 20)

/* Index of [data] last_batch. */
typedef enum nami_last_batch {
    NAMI_LAST_DROP,
    NAMI_LAST_PAD,
    NAMI_LAST_SHORT
} nami_last_batch;

/* [data] of the deck. */
typedef struct nami_data_options {
    char *train, *valid; /* paths; "" when not given */
    int last_batch; /* nami_last_batch: what becomes of an evaluation's last incomplete step */
    /* of images, see nami_view */
    int64_t pad, crop, cutout; /* pixels */
    bool flip;
    double cutout_probability, cutout_growth; /* growth: for each epoch */
    char *mean, *deviation; /* numbers, one a channel; "": the training set's */
} nami_data_options;
extern const nami_option_table nami_data_option_table;

typedef struct nami_data nami_data;

/* Open for samples of `time` tokens (+1 for targets). Collective on c; c NULL: this process alone.
 * vocabulary  the model's; 0: the data set's own
 * Status: NAMI_EINPUT missing, truncated, wrong kind, damaged, too short; a token >= vocabulary here or on read. */
nami_status nami_data_open(nami_comm *c, const char *path, int64_t time,
                           int64_t vocabulary, nami_data **out);
void nami_data_close(nami_data *d); /* Collective; NULL allowed. */
/* Non-overlapping windows: (tokens-1)/time */
int64_t nami_data_samples(const nami_data *d);
int64_t nami_data_tokens(const nami_data *d);
/* As stored: every token is below it */
int64_t nami_data_vocabulary(const nami_data *d);
const char *nami_data_kind(const nami_data *d);
/* Checksum and size, for the checkpoint */
const char *nami_data_identity(const nami_data *d);

/* Start token of the window that global training sample `counter` >= 0 uses: windows of an epoch (`samples` of them) are
 * visited in the order of a keyed permutation, and each epoch shifts the window grid by a keyed amount in [0, time); a last
 * window that would then end outside moves back to the end. Pure. */
int64_t nami_data_window(const nami_data *d, uint64_t key, int64_t counter);

/* The same as a function of sizes alone: 1 <= time < tokens. Local, pure. */
int64_t nami_window(int64_t tokens, int64_t time, uint64_t key, int64_t counter);

/* Tokens [from, from+time) of `count` windows into token [count,time], their next ones into target [count,time].
 * Local (independent reads). Status: NAMI_EINPUT a token >= vocabulary, NAMI_EENV a failed read. */
nami_status nami_data_read(nami_data *d, const int64_t *from, int64_t count,
                           int32_t *token, int32_t *target);

/* Tokens [from, from+count) of the set into out [count], for tools that walk through it. Local. Statuses as above. */
nami_status nami_data_slab(nami_data *d, int64_t from, int64_t count, uint16_t *out);

/* Announce windows that will be read soon, so that the kernel reads them ahead. A hint: changes no result. Local. */
void nami_data_expect(nami_data *d, const int64_t *from, int64_t count);

#endif
