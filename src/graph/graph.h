/* SPDX-License-Identifier: MIT */
/* graph.h - a stage as a static DAG of operators, and where its values lie.
 *
 * Built block by block by model/, then planned once. Memory of a stage:
 *   kept       what F leaves for the backward passes, one slot per micro-batch from F to its B or BW; with token
 *              slices one slot for each of them, a stride apart, until the last backward pass of them all
 *   held       what BI leaves for BW, one slot per micro-batch (and slice) between them; 0 bytes without split
 *   transient  alive inside one action; shared by all stages of a position (the largest counts)
 *   packed     weights in the compute type and layout, one per weight version
 * The stage's input, output and their gradients lie outside: message buffers of the executor. The input, side words
 * and targets must stay unchanged until the last backward pass of the micro-batch,
 * the gradient of the output from BI to BW; the output is not read again.
 */
#ifndef NAMI_GRAPH_GRAPH_H
#define NAMI_GRAPH_GRAPH_H

#include "op/op.h"

typedef struct nami_graph nami_graph;

/* An empty graph for micro-batches of [batch, time] in type `act` on backend `b`. Local. */
nami_graph *nami_graph_new(nami_backend *b, nami_dtype act, int64_t batch,
                           int64_t time);
void nami_graph_free(nami_graph *g);

/* Each of `slices` >= 1 token slices of a sample goes through the graph by itself, in order, its backward passes
 * from the last to the first; `time` is the length of one. Before any node is appended. Local. */
void nami_graph_slice(nami_graph *g, int slices);
int nami_graph_slices(const nami_graph *g); /* 1: samples are whole */

/* While training, operators that share statistics take them of `samples` samples: the micro-batches of all replicas
 * together, this graph's among them. Whoever walks sums what nami_walk_shared shows. Before planning. Local. */
void nami_graph_share(nami_graph *g, int64_t samples);

/* The largest number of doubles that nami_walk_shared will show; 0: never any. After planning. Local. */
int64_t nami_graph_shared(const nami_graph *g);

/* Append an activation value; `saved` statistics are wide. Returns its number. Local. */
int nami_graph_value(nami_graph *g, nami_dtype dtype, nami_shape shape);

/* Append a value of the same type and shape as `value`. Local. */
int nami_graph_value_like(nami_graph *g, int value);

/* Append a use of the parameter with catalogue number `param`. Returns the number of the use: each use has
 * its own gradient sum. Local. */
int nami_graph_use(nami_graph *g, int param, nami_shape shape);

/* Append a node; fields beyond op, in, out, param, saved are set by the caller on the result. Local. */
nami_node *nami_graph_node(nami_graph *g, const nami_op *op);

/* The next nodes belong to block `block`; blocks come in rising order. Local. */
void nami_graph_block(nami_graph *g, int block);

/* Name the outer values: input (activation or tokens), output (-1: the loss), targets (-1: none). Local. */
void nami_graph_ends(nami_graph *g, int input, int output, int targets);

/* Name the outer value of the words that every stage reads, see nami_model_sample.side. Local. */
void nami_graph_side(nami_graph *g, int value);

/* The input comes from the data: nobody wants its gradient. Tokens need no such word. Local. */
void nami_graph_given(nami_graph *g);

typedef struct nami_graph_sizes {
    size_t kept, held, transient, packed; /* bytes, see above */
    double flops
        [NAMI_PASSES]; /* of one micro-batch (of a slice: their mean), without recomputation; PACK unused */
    double rerun; /* FLOPs of the forward passes run again by B or BI */
} nami_graph_sizes;

/* Prepare all kernels and lay out all memory, once. `split`: BI and BW can run apart (B still can too). `recompute`: keep only block
 * inputs and run each block's forward again in front of its backward. `train` false: forward only.
 * Local. Status: NAMI_EENV when the backend lacks a kernel; NAMI_EPLAN when the values of a micro-batch have more than
 * NAMI_GRAPH_MOST bytes. */
#define NAMI_GRAPH_MOST 0x1p44 /* no memory holds it, and sums of sizes stay exact */
nami_status nami_graph_plan(nami_graph *g, bool train, bool split, bool recompute);
const nami_graph_sizes *nami_graph_bytes(const nami_graph *g);

int nami_graph_uses(const nami_graph *g);             /* number of parameter uses */
int nami_graph_use_param(const nami_graph *g, int u); /* catalogue number of use u */
nami_dtype nami_graph_wide(const nami_graph *g); /* type of parameters and gradients */

/* What the second loss of a model gives, as the fields of the same names for the first one. */
typedef struct nami_graph_second {
    double *loss, *best, *five;
    double scale;
} nami_graph_second;

/* Where one action reads and writes. Pointers are device memory of the backend. */
typedef struct nami_graph_call {
    /* stage input: activation [B,T,C], of the first one words of samples */
    const void *input;
    void *output; /* stage output; NULL for the loss stage */
    /* gradient of the output, read by B, BI, (BW) ; NULL for the loss stage */
    const void *doutput;
    /* gradient of the input, written by B, BI; NULL for the first stage */
    void *dinput;
    const int32_t *targets; /* [B,targets of a sample]; loss stage only */
    const int32_t *side;    /* [B,side]; NULL where samples have none */
    void *kept, *held, *transient, *packed;
    void *const *param; /* [uses] values, wide */
    void *const
        *dparam;  /* [uses] gradient sums, wide, added to; NULL when not training */
    double *loss; /* [B]; loss stage only */
    double *best, *five; /* [B] as of nami_arg_xent; NULL: not wanted */
    uint64_t seed;
    int64_t step, first_sample;
    double scale;             /* 1 / counted targets of the step */
    nami_graph_second second; /* zero where a model has one loss */
    int slice;                /* token slice, 0 .. slices - 1 */
    size_t stride;            /* bytes from `kept` of a slice to that of the next */
} nami_graph_call;

typedef enum nami_walk_kind {
    NAMI_WALK_F,
    NAMI_WALK_B,
    NAMI_WALK_BI,
    NAMI_WALK_BW,
    NAMI_WALK_PACK
} nami_walk_kind;

/* A walk launches one node at a time, so that the executor lets messages progress in between. */
typedef struct nami_walk {
    const nami_graph *graph;
    nami_walk_kind kind;
    nami_graph_call call;
    int at;   /* next position in the plan's list of launches */
    int lane; /* 0 from nami_walk_begin on; the caller may change it then */
} nami_walk;

/* Begin and advance; next launches one node and says whether more are left. No allocation. Local. */
void nami_walk_begin(nami_walk *w, const nami_graph *g, nami_walk_kind kind,
                     const nami_graph_call *call);
bool nami_walk_next(nami_walk *w);

/* What was launched last leaves *count doubles in memory of the backend that are to be summed, each over all replicas, in
 * place, before the next launch; NULL where there is nothing to sum. Local. */
double *nami_walk_shared(const nami_walk *w, int64_t *count);

/* Uses from this number on get nothing more from the launches to come: their sums of this walk are complete once what was
 * launched is done. It falls to 0. Local. */
int nami_walk_open(const nami_walk *w);

/* What nami_walk_next is going to launch, for profiles: a node, with its *pass set; NULL at the end, and for a sum of
 * two gradients. Local. */
const nami_node *nami_walk_peek(const nami_walk *w, nami_pass *pass);

#endif
