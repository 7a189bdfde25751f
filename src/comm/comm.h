/* SPDX-License-Identifier: MIT */
/* comm.h - ranks: start, agreement, messages, reductions. The only folder with mpi.h.
 *
 * rank and size mean MPI's; a position is a place in the pipeline, a replica a data-parallel copy;
 * rank = position * replicas + replica.
 */
#ifndef NAMI_COMM_COMM_H
#define NAMI_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct nami_comm nami_comm;

/* Start MPI, set the abort hook and the log's rank.
 *
 * Collective. Detects N singletons started by another MPI's launcher (PMI_SIZE, OMPI_COMM_WORLD_SIZE,
 * SLURM_NTASKS say more than MPI's size): NAMI_EENV with that explanation. */
nami_status nami_comm_open(int *argc, char ***argv, nami_comm **out);
void nami_comm_close(nami_comm *c); /* Collective. */

int nami_comm_rank(const nami_comm *c);
int nami_comm_size(const nami_comm *c);
int nami_comm_node_size(const nami_comm *c);  /* ranks on this node */
int nami_comm_node_rank(const nami_comm *c);  /* own number among them */
bool nami_comm_oversubscribed(const nami_comm *c); /* more runnable threads than cores in the affinity mask union */
const char *nami_comm_version(void);          /* one line of the MPI library */

/* Make all ranks agree on the worst status (largest code); rank 0 prints the first failing rank's sentence once.
 * Collective. Returns the agreed status; NAMI_OK only if every rank passed it. */
nami_status nami_agree(nami_comm *c, nami_status own);

/* Collectives on small host data, for set-up and step ends. Collective on c. */
void nami_comm_broadcast(nami_comm *c, void *data, size_t bytes, int root);
void nami_comm_gather(nami_comm *c, const void *own, size_t bytes, void *all); /* everyone gets size * bytes, rank order */
void nami_comm_barrier(nami_comm *c); /* polite */
double nami_comm_max(nami_comm *c, double x);
int64_t nami_comm_sum(nami_comm *c, int64_t x);

/* Start summing `count` doubles elementwise where at most one rank has a nonzero entry (so: exact); poll with
 * nami_comm_done. Collective; nonblocking. */
typedef int nami_request; /* index into c's pool; 0: already complete */
nami_request nami_comm_merge(nami_comm *c, double *inout, int count);

/* Nonblocking messages of `bytes` (any size: cut below INT_MAX), matched by (peer, tag) in order. Local.
 * 0 <= tag < nami_comm_tags(c). A received length that differs ends the program (NAMI_EBUG). */
nami_request nami_comm_send(nami_comm *c, const void *data, size_t bytes, int peer, int tag);
nami_request nami_comm_receive(nami_comm *c, void *data, size_t bytes, int peer, int tag);
bool nami_comm_done(nami_comm *c, nami_request *r); /* test; sets *r = 0 when complete */
void nami_comm_progress(nami_comm *c);              /* let messages move */
int nami_comm_tags(const nami_comm *c);
int nami_comm_pending(const nami_comm *c);          /* requests not complete: leak check at a step's end */

/* Polite waiting: called in a loop that found nothing to do; backs off exponentially up to about 1 ms
 * when ranks outnumber cores. reset when something was found. */
typedef struct nami_patience { int idle; } nami_patience;
void nami_patience_wait(const nami_comm *c, nami_patience *p);
static inline void nami_patience_reset(nami_patience *p)
{
    p->idle = 0;
}

/* A group that sums buffers in a fixed binary tree over its members (in rank order): bit-equal for any
 * transport. Through shared memory when all members are on one node, else by point-to-point slices. */
typedef struct nami_reducer nami_reducer;

/* Collective on c. `color`: equal for members of one group (-1: no group, *out = NULL); order by rank.
 * `bucket`: bytes moved at a time. `force`: 0 choose, 1 shared memory, 2 messages (tests). */
nami_status nami_reducer_open(nami_comm *c, int color, size_t bucket, int force, nami_reducer **out);
void nami_reducer_close(nami_reducer *r); /* Collective on the group. */
int nami_reducer_size(const nami_reducer *r);
size_t nami_reducer_bytes(const nami_reducer *r); /* memory it holds on this rank */

/* Start the sum of `count` elements (f32: wide = 4, f64: wide = 8) in host memory, result in place on all
 * members. Started ones complete in start order; every member starts the same sequence. Local, nonblocking. */
void nami_reducer_start(nami_reducer *r, void *data, int64_t count, int wide);
bool nami_reducer_poll(nami_reducer *r); /* advance; true when all started sums are complete */

/* Value of a fixed binary tree over leaves [first, last): the largest power of two below the count goes left.
 * Used for partials too: a replica's interval is a node of the tree over all leaves iff this says so. */
bool nami_tree_is_node(int leaves, int first, int last);

#endif
