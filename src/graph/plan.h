/* SPDX-License-Identifier: MIT */
/* plan.h - inside graph/: what a graph is made of, and the lists of launches that planning makes.
 *
 * Planning writes the launches of every walk first, naming storage by `buffer`, and notes in which lists and
 * where a buffer is touched. Where the buffer must lie follows from that alone (see place.c):
 *   touched in F and in a backward list -> kept
 *   touched in BI and in BW             -> held
 *   touched in one list                 -> transient
 */
#ifndef NAMI_GRAPH_PLAN_H
#define NAMI_GRAPH_PLAN_H

#include "graph/graph.h"

enum { NAMI_ALIGN = 64, NAMI_WALKS = NAMI_WALK_PACK + 1 };

/* The regions of memory a walk is given; a place is one of them and an offset. */
typedef enum nami_region {
    NAMI_AT_NONE, /* absent: NULL */
    NAMI_AT_INPUT,
    NAMI_AT_OUTPUT,
    NAMI_AT_DOUTPUT,
    NAMI_AT_DINPUT,
    NAMI_AT_TARGETS,
    NAMI_AT_SIDE,
    NAMI_AT_LOSS,
    NAMI_AT_SECOND, /* the second loss */
    NAMI_AT_KEPT,
    NAMI_AT_HELD,
    NAMI_AT_TRANSIENT,
    NAMI_AT_PACKED,
    NAMI_REGIONS
} nami_region;

/* What a launch may touch beside parameters. */
typedef enum nami_launch_slot {
    NAMI_SLOT_IN0,
    NAMI_SLOT_IN1,
    NAMI_SLOT_OUT,
    NAMI_SLOT_SAVED0,
    NAMI_SLOT_SAVED1,
    NAMI_SLOT_DOUT,
    NAMI_SLOT_DIN0,
    NAMI_SLOT_DIN1,
    NAMI_SLOT_ADD0,
    NAMI_SLOT_ADD1,
    NAMI_SLOT_SCRATCH,
    NAMI_SLOT_PACKED_F,
    NAMI_SLOT_PACKED_B,
    NAMI_SLOT_LOSS,
    NAMI_SLOT_SHARED,
    NAMI_SLOTS
} nami_launch_slot;

typedef struct nami_spot {
    nami_region region;
    size_t offset; /* bytes */
} nami_spot;

/* A piece of storage while planning. */
typedef struct nami_buffer {
    size_t bytes;
    nami_spot place; /* region NAMI_AT_NONE until placed */
    bool keep;       /* lies in kept memory whatever touches it */
    /* launches that touch it; first -1: none */
    int first[NAMI_WALKS], last[NAMI_WALKS];
} nami_buffer;

/* One step of a walk: a pass of a node; without a node the sum IN0 (+ ADD0) -> DIN0 of `value`'s shape. */
typedef struct nami_launch {
    int node; /* -1: a sum or a copy */
    nami_pass pass;
    int value;                   /* of a sum */
    int buffer[NAMI_SLOTS];      /* while planning; -1: absent */
    nami_spot place[NAMI_SLOTS]; /* for walking */
    int64_t shared; /* numbers in SHARED, which a first half leaves; else 0 */
    int open; /* one above the highest use that this launch or a later one adds to */
} nami_launch;

typedef struct nami_launches {
    nami_launch *item; /* [count] */
    int count, capacity;
} nami_launches;

typedef struct nami_value {
    nami_tensor type; /* data NULL */
    int producer;     /* node, -1: from outside */
    int block;        /* of its producer */
} nami_value;

typedef struct nami_use {
    int param;
    nami_shape shape;
} nami_use;

struct nami_graph {
    nami_backend *backend;
    nami_dtype act, wide;
    int64_t batch, time;
    int slices;
    int64_t together; /* samples that share statistics, 0: each graph's by themselves */
    nami_value *value; /* [values] */
    nami_use *use;     /* [uses] */
    nami_node *node;   /* [nodes] in topological order */
    nami_bind *shape;  /* [nodes] binds with types and shapes, no data */
    int values, uses, nodes;
    int block;    /* of the nodes to come */
    double bytes; /* of all values */
    int input, output, targets, side;
    bool given; /* the input has no gradient */
    bool train, split, recompute;
    nami_buffer *buffer; /* [buffers], only while planning */
    int buffers;
    nami_launches list[NAMI_WALKS];
    /* [values] kernel that adds two gradients of a value; NULL: not needed */
    const nami_prepared **sums;
    nami_graph_sizes sizes;
};

/* A new buffer, outside planning's reach when `region` is not NAMI_AT_NONE. Returns its number. Local. */
int nami_plan_buffer(nami_graph *g, size_t bytes, nami_region region, size_t offset);

/* Append a launch without slots to list `w`; then give it its slots, noting the touch. Local. */
nami_launch *nami_plan_launch(nami_graph *g, nami_walk_kind w, int node,
                              nami_pass pass);
void nami_plan_touch(nami_graph *g, nami_walk_kind w, nami_launch_slot slot,
                     int buffer);

/* Append the forward launch of `node` with its values in vbuf [values] and its loss in buffer `loss`. Packed
 * weights of node i are buffers 2i (forward form) and 2i+1 (backward form). Local. */
void nami_plan_emit_forward(nami_graph *g, nami_walk_kind w, int node, const int *vbuf,
                            int loss);

/* Append the first half `own` of a pass of `node`, of which slots are to be touched, where the node has one. Returns
 * the buffer of its shared numbers, for both; -1: there is none. Local. */
int nami_plan_emit_own(nami_graph *g, nami_walk_kind w, int node, nami_pass own);

/* A new unplaced buffer for (the gradient of) a value. Local. */
int nami_plan_value_buffer(nami_graph *g, int value);

/* Write the forward list; vbuf[values] receives the buffer of each value. Local. */
void nami_plan_forward(nami_graph *g, int *vbuf);

/* Write the backward lists: B when !split, else BI and BW, after a first call for B. vbuf [values] from nami_plan_forward. Local.
 * Status: NAMI_EBUG for a graph that cannot be run backward; NAMI_EENV without a kernel for a sum. */
nami_status nami_plan_backward(nami_graph *g, const int *vbuf, bool split);

/* Give every buffer its place and fill in g->sizes. Local. */
void nami_plan_place(nami_graph *g);

/* Smallest known arrangement of `n` buffers alive during [first, last] of list `w`: best fit, large ones first.
 * item [n] buffer numbers, reordered. Returns the bytes of the arrangement. Local. */
size_t nami_plan_pack(nami_buffer *buffer, int *item, int n, nami_walk_kind w);

static inline size_t nami_plan_round(size_t bytes)
{
    return (bytes + NAMI_ALIGN - 1) / NAMI_ALIGN * NAMI_ALIGN;
}

#endif
