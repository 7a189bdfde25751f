/* SPDX-License-Identifier: MIT */
/* sink.h - a data set being written: complete under its name, or not there. */
#ifndef NAMI_DATA_SINK_H
#define NAMI_DATA_SINK_H

#include <stdint.h>

#include "base/status.h"
#include "store/store.h"

typedef struct nami_sink {
    char *path, *temporary; /* owned */
    nami_store *store;      /* NULL when complete */
    int64_t tokens, vocabulary;
    int64_t written; /* tokens so far */
    uint32_t sum;    /* their checksum */
    char *summary;   /* what is told when it is published; owned */
} nami_sink;

/* Refuse a `path` that is no place for a data set: a directory, a file that is not HDF5, in a directory that does not exist.
 * Local. Status: NAMI_EINPUT. */
nami_status nami_sink_allowed(const char *path);

/* Start a set without any array under a temporary name beside `path`. Local. */
nami_status nami_sink_begin(const char *path, nami_sink *s);

/* Bring everything to disk, still under the temporary name; `summary` is told with the name, "5 tokens". Local. */
nami_status nami_sink_end(nami_sink *s, const char *summary);

/* Start a set of `tokens` tokens under a temporary name beside `path`. Local. */
nami_status nami_sink_open(const char *path, int64_t tokens, int64_t vocabulary,
                           nami_sink *s);

/* Append `count` tokens of nami_tokens_width bytes. Local. */
nami_status nami_sink_add(nami_sink *s, const void *token, int64_t count);

/* Write the attributes and bring everything to disk, still under the temporary name. Local. */
nami_status nami_sink_finish(nami_sink *s, const char *kind, const char *source);

/* Give a finished set its name. Local. */
nami_status nami_sink_publish(nami_sink *s);

/* Free; remove what was not published. Local. */
void nami_sink_close(nami_sink *s);

#endif
