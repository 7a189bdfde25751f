/* SPDX-License-Identifier: MIT */
/* share.h - what one rank of a layout consists of, before a byte of it is allocated.
 *
 * The budget prints the sizes of a share, the executor allocates by them: one computation, so that
 * predicted and allocated bytes are the same.
 *
 *   parameters  one buffer a position: of each stage its statistics, then a ring of slots, [slot][parameter], each at
 *               a multiple of 64 bytes; a parameter that two stages here use lies once, with the first of them. A slot
 *               is a version of the weights; there is one with a flush. Behind the ring may lie one more slot, of moved
 *               weights. Statistics have no versions. Optimiser states have neither: [parameter].
 *   gradients   `levels` buffers a position, each [stage][use]: one sum for every use of a parameter
 *   exchange    the sums of the same parameters that other positions make: of other uses and other copies
 *
 * With recipe.zero each replica of a position updates a slice of every parameter (slice.c), and has optimiser states and
 * exchanged sums of that alone. Parameters and gradients are whole on all.
 */
#ifndef NAMI_EXEC_SHARE_H
#define NAMI_EXEC_SHARE_H

#include "exec/layout.h"
#include "exec/route.h"

enum { NAMI_SHARE_ALIGN = 64 };

static inline size_t nami_share_round(size_t bytes)
{
    return (bytes + NAMI_SHARE_ALIGN - 1) / NAMI_SHARE_ALIGN * NAMI_SHARE_ALIGN;
}

/* A use of a parameter in one copy of the model: where it stands. */
typedef struct nami_share_use {
    int param;    /* catalogue number */
    int stage;    /* of the model */
    int copy;     /* of the model */
    int position; /* of that stage in that copy */
    int number;   /* of the use in the stage's graph */
} nami_share_use;

/* What all positions have in common. */
typedef struct nami_blueprint {
    const nami_layout *layout; /* borrowed, as the next three */
    const nami_model *model;
    const nami_optim_options *optim;
    nami_backend *backend;
    nami_route *train, *evaluate; /* [positions] */
    nami_share_use *use; /* [uses] in model order, the copies of each in turn */
    int uses;
    /* [positions]: [params][replicas + 1] first elements of slices, and the end; NULL: no slices */
    int64_t **bound;
    /* [params + 1] first of the numbers that make up a parameter's sum of squares, which all ranks merge: one, or with
     * slices one a block, of which those of a whole parameter lie in the first */
    int64_t *square;
} nami_blueprint;

/* Elements [from, from + count) of a parameter. */
typedef struct nami_slice {
    int64_t from, count;
} nami_slice;

enum { NAMI_SHARE_TERMS = 4 }; /* two uses in two copies */

/* One of the gradient sums that make up the gradient of a parameter. */
typedef struct nami_share_term {
    int use;   /* of the blueprint */
    int local; /* stage of this position that makes it; -1: another position does */
    /* bytes into a gradient buffer; else of the own slice into the exchange buffer */
    size_t at;
} nami_share_term;

/* A gradient sum that another position sends, or waits for. */
typedef struct nami_share_move {
    int param; /* index into nami_share.param */
    int term;  /* of that parameter */
    int peer;  /* rank */
    int tag;
    nami_slice slice; /* of the parameter */
    bool sends;
} nami_share_move;

/* A parameter that a position holds. */
typedef struct nami_share_param {
    int param;      /* catalogue number */
    int64_t count;  /* elements */
    nami_slice own; /* what this replica updates; the whole without recipe.zero */
    size_t at;      /* bytes of its own slice into each optimiser state */
    size_t whole;   /* bytes into all parameters, one after the other */
    int square; /* first of its sums of squares here; one, or one for each block of a slice */
    size_t weight; /* bytes of its slot 0 into the parameter buffer */
    size_t stride; /* bytes from there to the next slot; 0: one for all */
    int local;     /* stage of this position that updates it: its first use here */
    /* its first use in the model is here: checkpoints and the norm take it from here */
    bool owner;
    int terms;
    nami_share_term term
        [NAMI_SHARE_TERMS]; /* [terms] in the order of the blueprint's uses: on all positions alike */
} nami_share_param;

/* A stage that a position holds. */
typedef struct nami_share_stage {
    int stage, copy;              /* number in the model; in which copy of it */
    nami_graph *train, *evaluate; /* planned */
    /* bytes of a token slice's part of a slot; of the first slot into the activation buffer */
    size_t kept, kept_at;
    size_t held, held_at;
    int versions;   /* slots of the ring */
    int slots;      /* with the one of moved weights behind it */
    size_t weights; /* bytes of a slot */
    /* bytes of the packed copies of a slot; of slot 0 into the packed buffer */
    size_t packed, packed_at;
    /* of what R makes and nobody reads, bytes into the activation buffer */
    size_t output_at;
    size_t side_at;    /* of the side words it holds, bytes into their buffer */
    size_t sum_at;     /* of its gradient sums, bytes into a gradient buffer */
    int64_t sum_count; /* elements, padding included */
    int uses;
    int *param;  /* [uses] index into nami_share.param */
    size_t *sum; /* [uses] bytes into a gradient buffer */
} nami_share_stage;

typedef struct nami_share {
    const nami_blueprint *blueprint;
    int position, replica;
    nami_layout_samples samples;
    int stages, params;
    nami_share_stage *stage; /* [stages] in the order of the routes */
    nami_share_param *param; /* [params] in the order of their first use here */
    nami_share_move *move;   /* [moves] */
    int moves;
    const nami_route *train, *evaluate;
    int levels; /* gradient buffers: partial sums alive at once; 1 with several copies of the model */
    int states;       /* optimiser states */
    int square;       /* sums of squares */
    size_t wide;      /* bytes of a parameter's element */
    size_t parameter; /* bytes of the parameter buffer */
    size_t whole;     /* bytes of all parameters, without versions */
    size_t state; /* bytes of each optimiser state; of slices: of the fullest replica */
    size_t gradient; /* bytes of one gradient buffer */
    size_t exchange; /* bytes of the exchange buffer */
    size_t squares;  /* bytes of the sums of squares, doubles */
    size_t packed, activation, transient;
    size_t boundary; /* bytes of one message buffer: of the largest boundary */
    /* [stages of the model + 1] bytes of a message into each stage; the ends unused */
    size_t *crossing;
    /* [positions][parts_most] who holds the own samples there */
    nami_layout_part *part;
    int *parts; /* [positions] */
    int parts_most;
    nami_model_sample sample;
    int buffers; /* message buffers */
    /* tokens and targets are read for each unit when it comes: without a flush */
    bool rolling;
    int units; /* of this rank's lists */
    /* bytes of a whole step of this replica, rolling: of the units held at once; 0: none */
    size_t tokens, targets;
    /* bytes of the side words of all stages, as tokens; 0: samples have none */
    size_t side;
    size_t reading; /* bytes of a micro-batch that is read for its side words alone */
    size_t losses;  /* bytes of all units, three rows a loss; 0: not needed here */
    /* bytes of the squares of all updates, [window][params] doubles; 0: with a flush */
    size_t history;
    /* bytes of the targets of one micro-batch of all replicas, to be counted; 0: with a flush */
    size_t tally;
    /* bytes of a micro-batch while its tokens are put in order of their slices; 0: whole samples */
    size_t arrange;
    size_t shared; /* bytes of the most numbers that replicas sum inside an action */
    size_t merge;  /* bytes of what is merged over all ranks at a step's end */
    size_t bytes[NAMI_MEM_TAGS];
} nami_share;

/* Local. Status: NAMI_EPLAN, NAMI_EENV. Freed with nami_blueprint_free, also after a failure. */
nami_status nami_blueprint_make(const nami_layout *l, const nami_model *m,
                                const nami_optim_options *o, nami_backend *b,
                                nami_blueprint *out);
void nami_blueprint_free(nami_blueprint *p);

/* Divide `params` parameters of count[params] elements over `replicas`, into bound[params][replicas + 1]. Local. */
void nami_slices_cut(const int64_t *count, int params, int replicas, int64_t *bound);

/* Set bound and square of a blueprint whose uses are known; take them down. Local. */
void nami_slices_make(nami_blueprint *p);
void nami_slices_free(nami_blueprint *p);

/* The slice of a parameter that a replica of `position`, which holds it, updates. Local. */
nami_slice nami_slice_of(const nami_blueprint *p, int position, int replica, int param);

/* Blocks of NAMI_SQUARES in `count` elements. Local. */
int64_t nami_blocks_of(int64_t count);

/* The graph of a stage for `micro` samples, not planned. Local; freed with nami_graph_free. Status: NAMI_EENV. */
nami_status nami_blueprint_graph(const nami_blueprint *p, int stage, int64_t micro,
                                 nami_graph **out);

/* The share of a replica of `position`; borrows the blueprint. Local. Freed with nami_share_free, also after a failure. */
nami_status nami_share_make(const nami_blueprint *p, int position, int replica,
                            nami_share *out);
void nami_share_free(nami_share *s);

/* Find the terms of every parameter of a share whose stages are there, and the moves. Local. Status: NAMI_EPLAN. */
nami_status nami_share_exchange(nami_share *s);

/* Partial sums that one stage makes in a step: with several copies of the model each adds its own micro-batches
 * to one sum. Local. */
int nami_share_leaves(const nami_layout *l);

/* Whether stages keep a slot of moved weights: for forwards that are predicted, for backwards that are corrected. Local. */
bool nami_share_moves(const nami_blueprint *p);

/* Partial sums alive at once when `leaves` of them combine in the fixed tree, one after the other. Local. */
int nami_share_levels(int leaves);

#endif
