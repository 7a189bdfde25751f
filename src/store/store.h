/* SPDX-License-Identifier: MIT */
/* store.h - HDF5 files shared by ranks: named arrays, slabs, attributes, checksums. The only folder with hdf5.h.
 *
 * Writing: rank 0 makes the file and its arrays, then every rank writes its slabs straight to where they lie in the
 * file. Reading: every rank opens the file for itself. No library call inside waits for another rank, so a full disk
 * or a broken file on one rank cannot hang the others, and ranks that share cores do not spin on each other
 * (docs/design has the measurements).
 *
 * All calls are collective on the communicator that opened the file unless they say otherwise.
 * While a file is written with a communicator, a failure on one rank is kept, later calls do nothing, and
 * nami_store_flush and nami_store_close report it on all ranks. Reading calls agree inside: they fail on all ranks.
 */
#ifndef NAMI_STORE_STORE_H
#define NAMI_STORE_STORE_H

#include "comm/comm.h"

typedef enum nami_store_type {
    NAMI_STORE_F32,
    NAMI_STORE_F64,
    NAMI_STORE_U8,
    NAMI_STORE_U16,
    NAMI_STORE_I64,
    NAMI_STORE_TYPES
} nami_store_type;

typedef struct nami_store nami_store;

/* One line: name and version of the library. Local. */
const char *nami_store_version(void);

/* Create `path` (replacing), or open it to read. c NULL: this process alone, no MPI (importers, tools).
 * Status: NAMI_EINPUT missing or not HDF5 or truncated; NAMI_EENV the file system refuses (with its reason). */
nami_status nami_store_create(nami_comm *c, const char *path, nami_store **out);
nami_status nami_store_open(nami_comm *c, const char *path, nami_store **out);

/* After create: wait until all ranks' slabs are on disk, and report the worst failure so far. */
nami_status nami_store_flush(nami_store *s);

/* Flush, and close; after create the file and its name in the directory are on disk on return. */
nami_status nami_store_close(nami_store *s);

/* Make array `name` ("/parameters/x.weight": groups are made) of `rank` extents (1..4), contiguous in the file.
 * All arrays are defined before the first nami_store_write. */
nami_status nami_store_define(nami_store *s, const char *name, nami_store_type type,
                              int rank, const int64_t *extent);

/* Shape of an array; *rank = -1 when there is none of that name (not an error). Status: NAMI_EINPUT a type or rank
 * that no nami_store_type has; elements that the file cannot hold (deflate packs at most 1032 bytes into one), that lie in
 * other files, or are packed by another filter. To be asked before an array is read. The second form is local. */
nami_status nami_store_shape(nami_store *s, const char *name, nami_store_type *type,
                             int *rank, int64_t extent[4]);
nami_status nami_store_shape_alone(nami_store *s, const char *name,
                                   nami_store_type *type, int *rank, int64_t extent[4]);

/* Write elements [from, from+count) of the array flattened in row-major order; count 0 takes part with nothing. */
nami_status nami_store_write(nami_store *s, const char *name, int64_t from,
                             int64_t count, const void *data);

/* Read such a slab. The second form is local, and may be called by several threads. */
nami_status nami_store_read(nami_store *s, const char *name, int64_t from,
                            int64_t count, void *data);
nami_status nami_store_read_alone(nami_store *s, const char *name, int64_t from,
                                  int64_t count, void *data);

/* The same of an array of whole numbers of any width, signed or not, which are read as 64-bit ones (what is larger becomes
 * the largest). Local. */
nami_status nami_store_integers_shape(nami_store *s, const char *name, int *rank,
                                      int64_t extent[4]);
nami_status nami_store_integers(nami_store *s, const char *name, int64_t from,
                                int64_t count, int64_t *data);

/* Attributes of the root group; equal on all ranks when written, each once. Texts are freed with nami_free. */
nami_status nami_store_set_text(nami_store *s, const char *name, const char *value);
nami_status nami_store_set_int(nami_store *s, const char *name, int64_t value);
nami_status nami_store_get_text(nami_store *s, const char *name, char **value);
nami_status nami_store_get_int(nami_store *s, const char *name, int64_t *value);

/* Full names of arrays below `group` ("/parameters/x.weight"), sorted; freed by nami_store_names_free. */
nami_status nami_store_names(nami_store *s, const char *group, char ***names,
                             int *count);
void nami_store_names_free(char **names, int count);

/* crc32 of zlib of `bytes` more bytes after those that gave `crc` (0 at first); and of A then B, where `b` is the
 * crc of B and B has b_bytes. Local. */
uint32_t nami_store_crc(uint32_t crc, const void *data, size_t bytes);
uint32_t nami_store_crc_join(uint32_t a, uint32_t b, int64_t b_bytes);

/* Make the directory entries of `path`'s directory durable (after a rename or unlink). Local. */
nami_status nami_store_sync_directory(const char *path);

#endif
