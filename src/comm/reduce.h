/* SPDX-License-Identifier: MIT */
/* reduce.h - what the transports of a reducer share; for the files of comm/ alone.
 *
 * What was started is a job; jobs are cut into chunks of at most `bucket` bytes, and chunks are numbered through
 * all jobs. Member m owns slice m of each chunk: it adds that slice of all members in the fixed tree.
 *
 * In a job of spans each member owns what its spans hold, one after the other; a chunk has the next elements of every
 * member, equally many where there are any left: region m of the chunk.
 */
#ifndef NAMI_COMM_REDUCE_H
#define NAMI_COMM_REDUCE_H

#include "comm/inner.h"

typedef enum nami_reduce_kind {
    NAMI_JOB_ALL,     /* sums, to all */
    NAMI_JOB_SCATTER, /* sums, to their owners */
    NAMI_JOB_GATHER   /* values of the owners, to all */
} nami_reduce_kind;

typedef struct nami_reduce_job {
    nami_reduce_kind kind;
    char *data;                    /* of NAMI_JOB_ALL */
    const nami_reducer_span *span; /* [spans] of the others */
    int spans;
    int64_t count; /* elements, > 0; of spans, of the member that has most */
    int wide;      /* bytes of an element */
} nami_reduce_job;

/* A place in the sequence of chunks. */
typedef struct nami_cursor {
    int64_t chunk; /* number of the next chunk */
    int64_t job;   /* number of the job it belongs to */
    int64_t from;  /* its first element; of spans, of every member's */
} nami_cursor;

typedef struct nami_chunk {
    nami_reduce_job job; /* it belongs to */
    char *data;          /* of NAMI_JOB_ALL */
    int64_t from;        /* in the job */
    int64_t count;       /* elements; of spans, of the largest region */
    int wide;
} nami_chunk;

/* A walk over a region: elements that lie together. */
typedef struct nami_reduce_run {
    char *data;
    int64_t at;    /* first element, in the region */
    int64_t count; /* elements */
    int span;      /* of the job; -1 before the first part */
} nami_reduce_run;

struct nami_reducer {
    nami_comm *comm;
    MPI_Comm group;
    int members, me;
    size_t bucket;        /* bytes of the largest chunk, a multiple of 64 */
    size_t region;        /* bytes of the largest region of a chunk, a multiple of 64 */
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

/* Elements of region m of a chunk of spans. Local. */
int64_t nami_reduce_region(const nami_chunk *chunk, int m);

/* The next part of region m, ascending; p->span = -1 before the first; false behind the last. Local. */
bool nami_reduce_part(const nami_chunk *chunk, int m, nami_reduce_run *p);

/* Make r a reducer through shared memory (false on all members when the system refuses), or by messages.
 * Collective on the group. */
bool nami_reduce_by_memory(nami_reducer *r);
void nami_reduce_by_messages(nami_reducer *r);

#endif
