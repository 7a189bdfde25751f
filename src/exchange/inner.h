/* SPDX-License-Identifier: MIT */
/* inner.h - what the readers of exchange/ share: open files, arrays being added, JSON, pickles. */
#ifndef NAMI_EXCHANGE_INNER_H
#define NAMI_EXCHANGE_INNER_H

#include "exchange/exchange.h"

enum { NAMI_EXCHANGE_PARTS = 1000 }; /* files of one index */

/* An open file. */
typedef struct nami_exchange_file {
    char *path; /* owned */
    int fd;
    int64_t bytes; /* its length when it was opened */
} nami_exchange_file;

struct nami_exchange {
    nami_exchange_file *part; /* [parts] */
    int parts;
    nami_exchange_array *array; /* [arrays] */
    int arrays, room;
};

/* Read `bytes` bytes at `at`. Local. Status: NAMI_EINPUT they are not there; NAMI_EENV. */
nami_status nami_exchange_get(const nami_exchange_file *p, int64_t at, size_t bytes,
                              void *out);

/* Where the elements of an array may lie, in bytes of its part. */
typedef struct nami_extent {
    int64_t at, bytes;
} nami_extent;

/* Append an array, whose name moves to x; `offset`: elements from the start of `where` to its first.
 * Local. Status: NAMI_EINPUT when an element lies outside of `where`. */
nami_status nami_exchange_add(nami_exchange *x, nami_exchange_array *a,
                              nami_extent where, int64_t offset);

/* Row-major strides, and the number of elements. Local. Status: NAMI_EINPUT when that overflows. */
nami_status nami_exchange_dense(const nami_exchange_file *p, nami_exchange_array *a,
                                int64_t *count);

/* Add the arrays of part x->parts - 1. Local. Status: NAMI_EINPUT. */
nami_status nami_safetensors_open(nami_exchange *x);
nami_status nami_torch_open_zip(nami_exchange *x);
nami_status nami_torch_open_legacy(nami_exchange *x);

/* Open a file as one more part, without a look inside. Local. Status: NAMI_EINPUT. */
nami_status nami_exchange_raw(nami_exchange *x, const char *path);
void nami_exchange_release(nami_exchange *x); /* all that x owns */

/* Open a file and add its arrays. Local. Status: NAMI_EINPUT. */
nami_status nami_exchange_part(nami_exchange *x, const char *path);

/* Open the files that an index names. Local. Status: NAMI_EINPUT. */
nami_status nami_index_open(nami_exchange *x, const char *path);

/* Elements of `kind` at `in` as f32. Local. */
void nami_exchange_widen(nami_exchange_kind kind, int64_t count, const void *in,
                         float *out);

/* The value of a projection in place of zeros [its shape]. Local. */
void nami_exchange_pad(const nami_param *param, float *data);

/* --- JSON --- */

/* A position in a text; the first mistake is kept, and later calls do nothing. */
typedef struct nami_json {
    const char *at, *end, *from;
    const char *path; /* for sentences */
    nami_status status;
} nami_json;

/* Local. Each takes one piece behind blanks; the last two say whether it is there. Strings are freed with nami_free. */
nami_status nami_json_fail(nami_json *j, const char *expected);
void nami_json_take(nami_json *j, char c);
bool nami_json_try(nami_json *j, char c);
char *nami_json_string(nami_json *j);  /* no NUL or control character in it */
int64_t nami_json_whole(nami_json *j); /* >= 0 */
void nami_json_skip(nami_json *j);     /* any value */

/* Go to the next member of an object whose brace was taken; its name, NULL behind the last. `first` starts true. */
char *nami_json_member(nami_json *j, bool *first);

#endif
