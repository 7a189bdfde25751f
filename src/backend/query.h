/* SPDX-License-Identifier: MIT */
/* query.h - what a prepare call asks for, as a value; the list of prepared kernels of a backend. */
#ifndef NAMI_BACKEND_QUERY_H
#define NAMI_BACKEND_QUERY_H

#include "backend/backend.h"

enum {
    NAMI_QUERY_DIMS = 14,
    NAMI_QUERY_WHOLE =
        -1 /* flags of attention: not token slices, but that every row sees all */
};

/* Everything a choice may depend on; equal requests share one nami_prepared. */
typedef struct nami_query {
    int64_t kernel, type;         /* type: act or wide */
    int64_t dim[NAMI_QUERY_DIMS]; /* extents of the argument struct, in its order */
    int64_t flags; /* which optional pointers are set, gradient, token slices ... */
    double real;   /* dropout p */
} nami_query;

/* The request of kernel `k` with arguments `args`. Local. */
nami_query nami_query_of(nami_kernel k, const void *args);

/* Fill flops and bytes of one launch. Local. */
void nami_query_cost(const nami_query *r, nami_prepared *out);

/* Status: NAMI_EINPUT when p of a dropout is not in [0, 0.9999]. Local. */
nami_status nami_query_check(const nami_query *r);

/* One prepared kernel of a backend. */
typedef struct nami_known {
    struct nami_known *next;
    nami_query query;
    nami_prepared prepared;
} nami_known;

/* The entry of `*list` equal to `r`, else a new one put in front with its costs set and *fresh true. Local. */
nami_known *nami_known_find(nami_known **list, const nami_query *r, bool *fresh);

/* Free all entries; `data` of each must have been freed. Local. */
void nami_known_free(nami_known **list);

#endif
