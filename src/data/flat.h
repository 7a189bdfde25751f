/* SPDX-License-Identifier: MIT */
/* flat.h - elements of an array of a data set by their number; a small array is kept whole once it is read. */
#ifndef NAMI_DATA_FLAT_H
#define NAMI_DATA_FLAT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

typedef struct nami_flat {
    nami_store *store;
    const char *array; /* its name */
    int64_t count;     /* elements of all of it */
    int width;         /* bytes of an element */
    /* [count] of a small array once read, owned; NULL: not read yet, or too large */
    void *whole;
} nami_flat;

/* Whether it is small enough to be kept. Local. */
bool nami_flat_is_small(const nami_flat *f);

/* Elements [from, from + count), count <= room, valid until the next call with this `part`: a buffer of `room` elements that is
 * made when it is NULL and needed, and is the caller's to free. Local. Status: NAMI_EENV a failed read. */
nami_status nami_flat_get(nami_flat *f, int64_t from, int64_t count, int64_t room,
                          void **part, const void **out);

#endif
