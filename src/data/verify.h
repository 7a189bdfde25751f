/* SPDX-License-Identifier: MIT */
/* verify.h - arrays of a data set against their checksums, read once by all ranks together. */
#ifndef NAMI_DATA_VERIFY_H
#define NAMI_DATA_VERIFY_H

#include "store/store.h"

/* An array, flattened, and what it must be. */
typedef struct nami_verify {
    nami_store *store;
    const char *path, *array;
    const char *what;     /* "tokens", for messages */
    const char *checksum; /* "crc32:9f1c02aa", of the elements as little-endian bytes */
    int64_t count;        /* elements */
    int width;            /* bytes of one: 1, 2 or 8 */
    /* What else to check of elements [from, from+count); NULL: nothing. Local. */
    nami_status (*check)(void *context, int64_t from, int64_t count, const void *data);
    void *context;
} nami_verify;

/* Collective on c; c NULL: this process alone. Status: NAMI_EINPUT damaged, or of `check`; NAMI_EENV a failed read. */
nami_status nami_verify_array(const nami_verify *v, nami_comm *c);

#endif
