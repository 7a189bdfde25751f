/* SPDX-License-Identifier: MIT */
/* reduce.h - what the transports of a reducer share; for the files of comm/ alone.
 *
 * A started sum is a job; jobs are cut into chunks of at most `bucket` bytes, and chunks are numbered through
 * all jobs. Member m owns slice m of each chunk: it adds that slice of all members in the fixed tree.
 */
#ifndef NAMI_COMM_REDUCE_H
#define NAMI_COMM_REDUCE_H

#include "comm/inner.h"

typedef struct nami_reduce_job {
    char *data;
    int64_t count; /* elements, > 0 */
    int wide;      /* bytes of an element */
} nami_reduce_job;

/* A place in the sequence of chunks. */
typedef struct nami_cursor {
    int64_t chunk; /* number of the next chunk */
    int64_t job;   /* number of the job it belongs to */
    int64_t from;  /* its first element */
} nami_cursor;

typedef struct nami_chunk {
    char *data;
    int64_t count; /* elements */
    int wide;
} nami_chunk;

struct nami_reducer {
    nami_comm *comm;
    MPI_Comm group;
    int members, me;
    size_t bucket;        /* bytes of the largest chunk, a multiple of 64 */
    size_t bytes;         /* memory held */
    nami_reduce_job *job; /* [jobs], a ring indexed by job number */
    int64_t jobs;         /* a power of two */
    int64_t first;        /* oldest job that is not complete */
    int64_t last;         /* number the next job gets */
    bool (*advance)(
        struct nami_reducer *r); /* do one piece of work; false when there was none */
    void (*close)(struct nami_reducer *r);
    void *own; /* the transport's */
};

/* The chunk at the cursor; false when no started job is left. Local. */
bool nami_reduce_chunk(const nami_reducer *r, const nami_cursor *at, nami_chunk *out);

/* Step over that chunk; returns whether it was the last of its job. Local. */
bool nami_reduce_next(const nami_reducer *r, nami_cursor *at);

/* Slice of member m: elements [*from, *from + returned) of the chunk. Local. */
int64_t nami_reduce_slice(const nami_reducer *r, const nami_chunk *chunk, int m,
                          int64_t *from);

/* Make r a reducer through shared memory (false on all members when the system refuses), or by messages.
 * Collective on the group. */
bool nami_reduce_by_memory(nami_reducer *r);
void nami_reduce_by_messages(nami_reducer *r);

#endif
