/* SPDX-License-Identifier: MIT */
/* request.h - what a prepare call asks for, as a value; the list of prepared kernels of a backend. */
#ifndef NAMI_BACKEND_REQUEST_H
#define NAMI_BACKEND_REQUEST_H

#include "backend/backend.h"

/* Everything a choice may depend on; equal requests share one nami_prepared. */
typedef struct nami_request {
    int64_t kernel, type; /* type: act or wide */
    int64_t dim[6];       /* extents of the argument struct, in its order */
    int64_t flags;        /* which optional pointers are set, gradient ... */
    double real;          /* dropout p */
} nami_request;

/* The request of kernel `k` with arguments `args`. Local. */
nami_request nami_request_of(nami_kernel k, const void *args);

/* Fill flops and bytes of one launch. Local. */
void nami_request_cost(const nami_request *r, nami_prepared *out);

/* Status: NAMI_EINPUT when p of a dropout is not in [0, 0.9999]. Local. */
nami_status nami_request_check(const nami_request *r);

/* One prepared kernel of a backend. */
typedef struct nami_known {
    struct nami_known *next;
    nami_request request;
    nami_prepared prepared;
} nami_known;

/* The entry of `*list` equal to `r`, else a new one put in front with its costs set and *fresh true. Local. */
nami_known *nami_known_find(nami_known **list, const nami_request *r, bool *fresh);

/* Free all entries; `data` of each must have been freed. Local. */
void nami_known_free(nami_known **list);

#endif
