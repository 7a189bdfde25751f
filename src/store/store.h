/* SPDX-License-Identifier: MIT */
/* store.h - parallel HDF5 files: named arrays, slabs, attributes, checksums. The only folder with hdf5.h.
 *
 * All calls are collective on the communicator that opened the file unless they say otherwise; every rank
 * makes every call, with an empty slab where it has nothing. A call that fails on one rank fails on all
 * (agreed inside), so nobody hangs. Transfers are cut below INT_MAX bytes.
 */
#ifndef NAMI_STORE_STORE_H
#define NAMI_STORE_STORE_H

#include "comm/comm.h"

typedef enum nami_store_type {
    NAMI_STORE_F32,
    NAMI_STORE_F64,
    NAMI_STORE_U8,
    NAMI_STORE_U16,
    NAMI_STORE_I64
} nami_store_type;

typedef struct nami_store nami_store;

/* Create `path` (replacing), or open it to read. c NULL: this process alone, no MPI (importers, tools).
 * Status: NAMI_EINPUT missing or not HDF5 or truncated; NAMI_EENV the file system refuses (with its reason). */
nami_status nami_store_create(nami_comm *c, const char *path, nami_store **out);
nami_status nami_store_open(nami_comm *c, const char *path, nami_store **out);
/* Flush, and close; after create also fsync (data is on disk on return). */
nami_status nami_store_close(nami_store *s);

/* Make array `name` ("/parameters/x.weight": groups are made) of `rank` extents; chunk 0 = contiguous, else elements
 * of the first extent per chunk. */
nami_status nami_store_define(nami_store *s, const char *name, nami_store_type type,
                              int rank, const int64_t *extent, int64_t chunk);

/* Shape of an array; *rank = -1 when there is none of that name (not an error). */
nami_status nami_store_shape(nami_store *s, const char *name, nami_store_type *type,
                             int *rank, int64_t extent[4]);

/* Write or read elements [from, from+count) of the array flattened in row-major order; count 0 takes part with nothing.
 * `independent`: only this rank calls (no agreement). */
nami_status nami_store_write(nami_store *s, const char *name, int64_t from,
                             int64_t count, const void *data);
nami_status nami_store_read(nami_store *s, const char *name, int64_t from,
                            int64_t count, void *data);
nami_status nami_store_read_alone(nami_store *s, const char *name, int64_t from,
                                  int64_t count, void *data);

/* Attributes of the root group; equal on all ranks when written. Texts are freed with nami_free. */
nami_status nami_store_set_text(nami_store *s, const char *name, const char *value);
nami_status nami_store_set_int(nami_store *s, const char *name, int64_t value);
nami_status nami_store_get_text(nami_store *s, const char *name, char **value);
nami_status nami_store_get_int(nami_store *s, const char *name, int64_t *value);

/* Names of arrays below `group`, sorted; freed by nami_store_names_free. */
nami_status nami_store_names(nami_store *s, const char *group, char ***names,
                             int *count);
void nami_store_names_free(char **names, int count);

#endif
