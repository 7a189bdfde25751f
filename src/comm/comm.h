/* SPDX-License-Identifier: MIT */
/* comm.h - ranks: start, agreement, messages, reductions. The only folder with mpi.h.
 *
 * rank and size mean MPI's; a position is a place in the pipeline, a replica a data-parallel copy;
 * ranks are numbered position by position, replica by replica.
 */
#ifndef NAMI_COMM_COMM_H
#define NAMI_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

typedef struct nami_comm nami_comm;

/* Start MPI, set the abort hook and the log's rank.
 *
 * Collective. Detects N singletons started by another MPI's launcher (PMI_SIZE, OMPI_COMM_WORLD_SIZE,
 * SLURM_NTASKS say more than MPI's size): NAMI_EENV with that explanation. Sets OMPI_MCA_mpi_yield_when_idle to 0
 * unless it is set. */
nami_status nami_comm_open(int *argc, char ***argv, nami_comm **out);
void nami_comm_close(nami_comm *c); /* Collective; NULL allowed. Ends MPI. */

/* A world of this process alone, rank 0 of 1, for work that the other ranks wait for; closed with nami_comm_close before
 * `c` is. Local. */
nami_comm *nami_comm_alone(const nami_comm *c);

int nami_comm_rank(const nami_comm *c);
int nami_comm_size(const nami_comm *c);
int nami_comm_node_size(const nami_comm *c); /* ranks on this node */
int nami_comm_node_rank(const nami_comm *c); /* own number among them */
int nami_comm_node(const nami_comm *c); /* the lowest rank on this node, its name */
/* More runnable threads than cores in the affinity mask union */
bool nami_comm_oversubscribed(const nami_comm *c);
/* One line of the MPI library; works before nami_comm_open */
const char *nami_comm_version(void);

/* Tell how many threads this rank computes with (1 until told), so that waiting is polite when threads outnumber
 * cores. Collective on c. */
void nami_comm_threads(nami_comm *c, int threads);

/* Where a rank runs. */
typedef struct nami_comm_place {
    char host[64];
    char cores[128]; /* affinity mask, "0-3,8"; ends in "..." when it was cut */
    int core_count;  /* cores of the mask */
    int threads;     /* as told by nami_comm_threads */
    int node_cores; /* cores of all masks on its node together, or what a container allows */
    int node_ranks; /* ranks on its node */
} nami_comm_place;

/* [all: size] in rank order, on every rank. Collective on c. */
void nami_comm_places(nami_comm *c, nami_comm_place *all);

/* Append one sentence a line for what will make ranks slow each other: more threads than cores on a node, a rank with
 * more threads than its mask has cores. Nothing when all is well. Local: place is from nami_comm_places. */
void nami_comm_place_warnings(const nami_comm_place *place, int size, nami_text *out);

/* From now on the blocking collectives below give up when they wait longer than `seconds` (0: for ever; 600 until told):
 * the program ends with exit code 7 and one sentence that says who waits for whom in `phase`.
 * Local; `phase` is copied, and should be equal on all ranks. */
void nami_comm_phase(nami_comm *c, const char *phase, double seconds);

/* Until told again (0: no more), waiting may last `seconds` longer than the phase says: a rank works alone on something
 * whose length is known, such as writing so many bytes. Local; c NULL: nothing. */
void nami_comm_extend(nami_comm *c, double seconds);

/* Make all ranks agree on the worst status (largest code); rank 0 prints the first failing rank's sentence once, and
 * the sentence is cleared. Collective. Returns the agreed status; NAMI_OK only if every rank passed it. */
nami_status nami_agree(nami_comm *c, nami_status own);

/* The same without printing: the sentence of the first rank that failed worst is recorded on all ranks.
 * For modules whose callers decide what a failure means. c NULL: returns own. Collective on c. */
nami_status nami_comm_settle(nami_comm *c, nami_status own);

/* Collectives on host data, for set-up and step ends; they wait politely. Collective on c. */
void nami_comm_broadcast(nami_comm *c, void *data, size_t bytes,
                         int root); /* any size */
void nami_comm_gather(nami_comm *c, const void *own, size_t bytes,
                      void *all);     /* everyone gets size * bytes, rank order */
void nami_comm_barrier(nami_comm *c); /* polite */
double nami_comm_max(nami_comm *c, double x);
double nami_comm_min(nami_comm *c, double x);
int64_t nami_comm_sum(nami_comm *c, int64_t x);

/* Start summing `count` doubles elementwise where at most one rank has a nonzero entry (so: exact); poll with
 * nami_comm_done. Collective; nonblocking. */
typedef int nami_request; /* index into c's pool; 0: already complete */
nami_request nami_comm_merge(nami_comm *c, double *inout, int count);

/* Nonblocking messages of `bytes` (any size: cut below INT_MAX), matched by (peer, tag) in order. Local.
 * 0 <= tag < nami_comm_tags(c). A received length that differs ends the program (NAMI_EBUG). */
nami_request nami_comm_send(nami_comm *c, const void *data, size_t bytes, int peer,
                            int tag);
nami_request nami_comm_receive(nami_comm *c, void *data, size_t bytes, int peer,
                               int tag);
bool nami_comm_done(nami_comm *c,
                    nami_request *r);  /* test; sets *r = 0 when complete */
void nami_comm_progress(nami_comm *c); /* let messages move */
int nami_comm_tags(const nami_comm *c);
int nami_comm_pending(
    const nami_comm *c); /* requests not complete: leak check at a step's end */

/* Messages, merges and pieces of reductions that this rank has completed: whether waiting got anywhere. Local. */
int64_t nami_comm_activity(const nami_comm *c);

/* Polite waiting: called in a loop that found nothing to do; backs off exponentially up to about 1 ms
 * when ranks outnumber cores, and starts again whenever nami_comm_activity has grown. {0} at first.
 * Reset when something else was found. */
typedef struct nami_patience {
    int idle;     /* turns without activity */
    int64_t seen; /* activity at the last turn */
} nami_patience;
void nami_patience_wait(const nami_comm *c, nami_patience *p);
static inline void nami_patience_reset(nami_patience *p)
{
    p->idle = 0;
}

/* A group that sums buffers in a fixed binary tree over its members (in rank order), to all of them or slice by slice,
 * and collects slices: bit-equal for any transport. Through shared memory when all members are on one node, else by point-to-point slices. */
typedef struct nami_reducer nami_reducer;

/* Collective on c. `color`: equal for members of one group (-1: no group, *out = NULL); order by rank.
 * `bucket`: bytes moved at a time. `force`: 0 choose, 1 shared memory, 2 messages (tests). */
nami_status nami_reducer_open(nami_comm *c, int color, size_t bucket, int force,
                              nami_reducer **out);
void nami_reducer_close(nami_reducer *r); /* Collective on the group. */
int nami_reducer_size(const nami_reducer *r);
size_t nami_reducer_bytes(const nami_reducer *r); /* memory it holds on this rank */

/* Start the sum of `count` elements (f32: wide = 4, f64: wide = 8) in host memory, result in place on all
 * members. What was started completes in start order; every member starts the same sequence. Returns the number that
 * nami_reducer_done asks for. Local, nonblocking. */
int64_t nami_reducer_start(nami_reducer *r, void *data, int64_t count, int wide);

/* Elements that lie together and belong to one member, in host memory. */
typedef struct nami_reducer_span {
    void *data;
    int64_t count;
    int member;
} nami_reducer_span;

/* The same for span[spans], which is borrowed until it is complete: each member gets the sums of its own spans, those of
 * others keep the values that they had. Counts and members are equal on all members, in the same order. A member has each
 * element once. Local, nonblocking. */
int64_t nami_reducer_scatter(nami_reducer *r, const nami_reducer_span *span, int spans,
                             int wide);

/* Give the values of each member's own spans to all others. As before. */
int64_t nami_reducer_gather(nami_reducer *r, const nami_reducer_span *span, int spans,
                            int wide);

/* Advance; true when all that was started is complete. Local. */
bool nami_reducer_poll(nami_reducer *r);

/* Whether what was started with this number is complete. Local. */
bool nami_reducer_done(const nami_reducer *r, int64_t job);

/* The fixed binary tree over `leaves`: the largest power of two below the count goes left, the rest right.
 * Whether the interval [first, last) is a node of it: then a replica may sum its partials [first, last) with
 * nami_tree_sum and the reducer's sum over replicas of equal size gives the value of the whole tree. */
bool nami_tree_is_node(int leaves, int first, int last);

/* out [count] = sum of leaf[i] [count] in the order of that tree; f32: wide = 4, f64: wide = 8. `out` may be leaf[0],
 * and no other leaf. leaves >= 1. Local. */
void nami_tree_sum(const void *const *leaf, int leaves, void *out, int64_t count,
                   int wide);

#endif
