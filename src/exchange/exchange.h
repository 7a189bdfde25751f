/* SPDX-License-Identifier: MIT */
/* exchange.h - weights of other programs: safetensors (read and written) and PyTorch's files (read).
 *
 * A file is a list of named arrays. Everything in it is checked when it is opened, before anything is read or allocated
 * by its word; docs/formats.md has the layouts. Parameters are told by the names that PyTorch programs give them.
 */
#ifndef NAMI_EXCHANGE_EXCHANGE_H
#define NAMI_EXCHANGE_EXCHANGE_H

#include "comm/comm.h"
#include "model/model.h"

enum { NAMI_EXCHANGE_RANK = 8 };

/* What elements are; all but these four cannot become parameters. */
typedef enum nami_exchange_kind {
    NAMI_EXCHANGE_F32,
    NAMI_EXCHANGE_F64,
    NAMI_EXCHANGE_F16,
    NAMI_EXCHANGE_BF16,
    NAMI_EXCHANGE_OTHER
} nami_exchange_kind;

typedef struct nami_exchange_type {
    const char *name; /* "F32" of safetensors, "FloatStorage" of PyTorch */
    int bits;         /* of an element */
    nami_exchange_kind kind;
} nami_exchange_type;

/* An array in a file. */
typedef struct nami_exchange_array {
    char *name; /* owned */
    const nami_exchange_type *type;
    int rank;
    int64_t dim[NAMI_EXCHANGE_RANK];
    int64_t stride[NAMI_EXCHANGE_RANK]; /* elements, >= 0 */
    int part;                           /* file that holds it */
    int64_t at;                         /* byte of its first element there */
} nami_exchange_array;

typedef struct nami_exchange nami_exchange;

/* Whether `path` is, by its first bytes or its name, a file for nami_exchange_open and no checkpoint. Local. */
bool nami_exchange_is(const char *path);

/* Open a safetensors file, a PyTorch file (zip or legacy) or an index of several (NAME.index.json).
 *
 * Local. Status: NAMI_EINPUT naming what is wrong with it. Closed with nami_exchange_close.
 */
nami_status nami_exchange_open(const char *path, nami_exchange **out);
void nami_exchange_close(nami_exchange *x); /* Local; NULL allowed. */

/* The arrays, sorted by name. Local. */
const nami_exchange_array *nami_exchange_arrays(const nami_exchange *x, int *count);

/* All elements as f32, row-major, into out[product of a->dim]; `a` is an array of x, or one with its axes exchanged.
 *
 * Local. Status: NAMI_EINPUT a type that is not F32, F64, F16 or BF16, or a file that got shorter; NAMI_EENV.
 */
nami_status nami_exchange_read(const nami_exchange *x, const nami_exchange_array *a,
                               float *out);

/* Fill data[i] [shape of parameter i] from a file whose names are PyTorch's; NULL: this rank does without it.
 *
 * Collective on c; c NULL: this process alone. Every parameter and statistic of the model must be there in its shape, and
 * nothing else but what is known to be none (masks, counters, a tied head equal to the embedding). A head of BERT may be
 * missing as a whole: its data stay, and rank 0 says so.
 * Status: NAMI_EINPUT naming the array, agreed.
 */
nami_status nami_exchange_load(nami_comm *c, const char *path, const nami_model *m,
                               float *const *data);

/* --- writing --- */

/* Whether a family can be written in a layout. Local. Status: NAMI_EINPUT naming those that it has. */
nami_status nami_exchange_layout(const char *family, const char *layout);

/* A parameter of a checkpoint: its name and how many rows it has, dim[0]. */
typedef struct nami_param_rows {
    const char *name;
    int64_t rows;
} nami_param_rows;

/* An array that a layout makes of a parameter. */
typedef struct nami_exchange_piece {
    char *name;       /* freed with nami_free */
    int64_t from, to; /* rows of the parameter */
    bool turned;      /* a matrix, written as [in,out] */
} nami_exchange_piece;

/* Array k = 0, 1, ... of a parameter in a layout, NULL: the family's first; false: there are no more. Local. */
bool nami_exchange_piece_of(const nami_model_options *o, const char *layout,
                            const nami_param_rows *p, int k, nami_exchange_piece *out);

typedef struct nami_exchange_writer nami_exchange_writer;

/* Start a safetensors file beside `path`. Arrays are declared in order, then their elements follow in the same order;
 * close puts the file in place, complete and on disk, or removes it. Local. Status: NAMI_EENV.
 */
nami_status nami_exchange_create(const char *path, nami_exchange_kind kind,
                                 nami_exchange_writer **out);
void nami_exchange_declare(nami_exchange_writer *w, const char *name,
                           const nami_shape *shape);
nami_status nami_exchange_write(nami_exchange_writer *w, int64_t count,
                                const float *data);
nami_status nami_exchange_finish(nami_exchange_writer *w, nami_status status);

#endif
