/* SPDX-License-Identifier: MIT */
/* source.h - inputs of an importer: files, .gz files and pipes, all with a known length and read in order. */
#ifndef NAMI_DATA_SOURCE_H
#define NAMI_DATA_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct nami_source nami_source;

/* Open `path` at its first byte.
 *
 * Local. "-" is standard input. A name that ends in ".gz" must be gzip data; it is unpacked once to learn its length and to
 * check it. What cannot be read twice (standard input, a pipe) is first copied to an unnamed file in directory `spool`.
 * Status: NAMI_EINPUT missing, unreadable, a directory, damaged gzip data; NAMI_EENV no room for the copy.
 */
nami_status nami_source_open(const char *path, const char *spool, nami_source **out);
/* The same, but gzip data is not unpacked in advance: its length is unknown (-1) until nami_source_expect. Local. */
nami_status nami_source_open_declared(const char *path, const char *spool,
                                      nami_source **out);
void nami_source_close(nami_source *s); /* Local; NULL allowed. */

const char *nami_source_name(const nami_source *s); /* the path, or "standard input" */
int64_t nami_source_length(const nami_source *s);   /* bytes, unpacked; -1: unknown */

/* Whether `path` is the file that `s` reads. Local. */
int nami_source_is(const nami_source *s, const char *path);

/* The next `bytes` bytes, all of them. Local. Status: NAMI_EINPUT when the input got shorter meanwhile, NAMI_EENV a failed read. */
nami_status nami_source_read(nami_source *s, void *data, size_t bytes);

/* At most `bytes` bytes, *got of them; fewer only at the end. Local. Status: as nami_source_read. */
nami_status nami_source_some(nami_source *s, void *data, size_t bytes, size_t *got);

/* Whether exactly `bytes` bytes follow, which the file's header announces as `what` ("10 images of 28x28"). Never unpacks
 * more than one byte beyond them, so that a small file cannot ask for unbounded work. Leaves the source where it is.
 * Local. Status: NAMI_EINPUT, another number of bytes; damaged gzip data. */
nami_status nami_source_expect(nami_source *s, int64_t bytes, const char *what);

#endif
