/* SPDX-License-Identifier: MIT */
/* inner.h - what a nami_comm is; for the files of comm/ alone. */
#ifndef NAMI_COMM_INNER_H
#define NAMI_COMM_INNER_H

#include <limits.h>
#include <mpi.h>

#include "comm/comm.h"

enum {
    NAMI_COMM_PIECE = 1 << 30, /* bytes of the largest single MPI transfer */
    NAMI_COMM_SENTENCE = 1024, /* bytes of the sentence of a failure */
    NAMI_COMM_LATE = 1         /* tag on `control` of "I have waited too long" */
};

/* One request of the pool. A message of several pieces is a chain of slots. */
typedef struct nami_slot {
    MPI_Request request;
    int next;     /* next piece of the message, or next free slot; -1 ends */
    int expected; /* bytes a receive must get; -1: not a receive */
    int peer, tag;
    bool busy;
} nami_slot;

struct nami_comm {
    /* set-up collectives; as messages, reports of ranks that waited too long */
    MPI_Comm control;
    MPI_Comm data; /* messages; as collectives, nami_comm_merge */
    MPI_Comm node; /* the ranks of this node */
    int rank, size, node_rank, node_size;
    int node_leader; /* lowest rank of this node */
    int tags;        /* upper bound of tags, exclusive */
    int threads;     /* of this rank */
    bool alone;      /* of nami_comm_alone */
    bool crowded;    /* waiting must give the core away */
    double limit;    /* seconds a collective may take, 0: for ever */
    double extra;    /* seconds more */
    char phase[64];
    nami_slot *slot; /* [slots] */
    int slots;
    int free_slot;    /* first of the free chain, -1: none */
    int pending;      /* messages and merges not complete */
    int64_t activity; /* see nami_comm_activity */
};

/* Wait politely for `request` of a collective named `what`; ends the program when the limit passes. */
void nami_comm_wait(nami_comm *c, MPI_Request *request, const char *what);

/* A free slot (the pool grows when there is none); its request is MPI_REQUEST_NULL. Local. */
int nami_comm_slot(nami_comm *c);

/* Whether all `count` requests are complete. Local. */
bool nami_comm_all_done(int count, MPI_Request *request);

/* Wait a little: spin, or give the core away when `crowded`. Local. */
void nami_patience_step(bool crowded, nami_patience *p);

/* The union of affinity masks and the threads of this node; sets c->crowded. Collective on the node. */
void nami_comm_count_cores(nami_comm *c);

#endif
