/* SPDX-License-Identifier: MIT */
/* op.h - operators: nodes of a stage's graph.
 *
 * One file per operator. An operator knows its shapes, what it saves, and which kernels run its three
 * passes; it sees a backend, never MPI, and keeps no state between micro-batches.
 * backward_weight may run any time after backward_input of the same micro-batch.
 */
#ifndef NAMI_OP_OP_H
#define NAMI_OP_OP_H

#include "backend/backend.h"

typedef enum nami_pass {
    NAMI_FORWARD,
    NAMI_BACKWARD_INPUT,
    NAMI_BACKWARD_WEIGHT,
    NAMI_PACK,
    NAMI_FORWARD_OWN, /* first halves, see nami_op.shared */
    NAMI_BACKWARD_OWN,
    NAMI_PASSES
} nami_pass;

enum { NAMI_OP_IN = 2, NAMI_OP_PARAM = 4, NAMI_OP_SAVED = 2, NAMI_OP_WHOLE = 8 };

/* What a pass reads beside parameters: bits. */
enum {
    NAMI_READ_IN0 = 1,
    NAMI_READ_IN1 = 2,
    NAMI_READ_OUT = 4,
    NAMI_READ_SAVED = 8,
    NAMI_READ_DOUT = 16
};

typedef struct nami_op nami_op;

/* One operator in a graph. in, out and saved are value numbers of the graph, param numbers of uses. */
typedef struct nami_node {
    const nami_op *op;
    int in[NAMI_OP_IN];       /* -1: none */
    int out;                  /* -1: none (loss) */
    int param[NAMI_OP_PARAM]; /* -1: none */
    int saved[NAMI_OP_SAVED]; /* -1: none */
    int block;                /* block of the model this node belongs to */
    int second;     /* of a loss operator: 1, it makes the second loss; else 0 */
    double real[2]; /* attributes: eps, dropout p */
    int64_t whole[NAMI_OP_WHOLE]; /* attributes: heads ... as the operator says */
    uint64_t key;                 /* random stream of this operator, from its name */
    const nami_prepared *prepared[NAMI_PASSES]; /* NULL: the pass does nothing */
} nami_node;

/* Everything one call of a pass reads and writes; filled by the graph's walk. */
typedef struct nami_bind {
    nami_backend *backend;
    int lane;
    nami_tensor in[NAMI_OP_IN], out, saved[NAMI_OP_SAVED];
    nami_tensor param[NAMI_OP_PARAM];  /* wide */
    nami_tensor dparam[NAMI_OP_PARAM]; /* wide, added to */
    void *packed_f, *packed_b;         /* of param[0] */
    nami_tensor dout;                  /* gradient of out */
    /* gradient of in, overwritten; data NULL: not wanted */
    nami_tensor din[NAMI_OP_IN];
    const void *add[NAMI_OP_IN]; /* added to din, or NULL */
    void *scratch;               /* of the largest need of the node */
    double *shared;   /* nami_op.shared numbers: of the halves and what follows them */
    int64_t together; /* samples that share statistics with these; 0: none do */
    bool train;       /* dropout on; loss leaves its gradient */
    uint64_t seed;    /* stream = nami_mix(nami_mix(seed, node->key), step) */
    int64_t step;     /* optimiser step, 0-based */
    /* global index of the micro-batch's first sample in the step's order */
    int64_t first_sample;
    double scale;        /* of the loss: 1 / counted tokens of the step */
    double *loss;        /* [B] loss sums per sample; loss operator only */
    double *best, *five; /* [B] as of nami_arg_xent, or NULL */
    int slices; /* token slices of a sample; T of the shapes is one of them; 0 or 1: whole */
    int slice;     /* the one at hand */
    size_t stride; /* bytes from the kept values of a slice to those of the next */
} nami_bind;

struct nami_op {
    const char *name;            /* "linear" */
    unsigned bi_reads, bw_reads; /* NAMI_READ_ bits */
    bool in_place_gradient; /* loss: its forward turns in[0] into in[0]'s gradient */
    bool adds;              /* backward_input honours bind.add; else add must be NULL */
    /* With token slices reads in[0] of earlier slices and leaves in their saved[1] what their backward passes
     * read: both lie in kept memory, `stride` apart. saved[1] is -1 without slices or training. */
    bool mixes_slices;
    /* Whether the gradient of in[input] is the gradient of out itself (residual: in0, and in1 without
     * dropout). The graph then aliases the two, din[input].data stays NULL, and the pass writes nothing
     * there; backward_input is not launched when every wanted din passes. NULL: never. Local. */
    bool (*passes)(const nami_node *n, int input);
    /* How many doubles the first halves of forward and backward_input leave at bind.shared, for the samples here;
     * they are summed over all samples (bind.together) before the pass itself reads them. 0: there are no halves; NULL:
     * never. backward_weight reads none. Local. */
    int64_t (*shared)(const nami_node *n, const nami_bind *shapes);
    void (*forward_own)(const nami_node *n, const nami_bind *b);
    void (*backward_own)(const nami_node *n, const nami_bind *b);
    /* Fill n->prepared. shapes: types and shapes set, data pointers unset; shapes->train says whether
     * backward passes will run; add[i] is non-NULL (any address) where a pass will be given it. Local. */
    nami_status (*prepare)(nami_node *n, const nami_bind *shapes);
    void (*forward)(const nami_node *n, const nami_bind *b);
    void (*backward_input)(const nami_node *n,
                           const nami_bind *b); /* NULL: no input gradient */
    void (*backward_weight)(const nami_node *n,
                            const nami_bind *b);          /* NULL: no weights */
    void (*pack)(const nami_node *n, const nami_bind *b); /* NULL: nothing packed */
};

/* in0 x [B,T,I]; param w [O,I], b [O] or -1; out [B,T,O] */
extern const nami_op nami_op_linear;
/* in0 x; param w,b [C]; saved mean, rstd [B,T]; real[0]=eps; whole[0]: RMS norm, saved -1, rstd */
extern const nami_op nami_op_norm;
/* in0 qkv; real[0]=theta; whole[0..1]=heads that turn, their width */
extern const nami_op nami_op_rotary;
extern const nami_op nami_op_swiglu; /* in0 [...,2F]; out [...,F] */
extern const nami_op nami_op_gelu;   /* in0 x */
/* in0 qkv, in1 lengths [B] or none; real[0]=p; whole[0..2]=heads, kv heads, whole; see attention.c */
extern const nami_op nami_op_attention;
/* out = in0 + dropout(in1); real[0]=p. dL/din0 is dout itself */
extern const nami_op nami_op_residual;
extern const nami_op nami_op_dropout; /* out = dropout(in0); real[0]=p */
/* in0 tokens i32 [B,T], with param[2] wtt then types [B,T] and more; param wte, wpe or -1; no input gradient */
extern const nami_op nami_op_embed;
/* in0 x [B,T,C], in1 row numbers i32 [B,>=M] or -1: row 0; out [B,M,C] */
extern const nami_op nami_op_gather;
/* in0 logits [B,T,V], in1 words i32 [B,W]: targets at whole[0] .. whole[0] + T - 1; out -1; real[0]=label smoothing */
extern const nami_op nami_op_xent;
/* Images are [B,H,W,C]. The window of conv and pool is whole[0..5]: kernel_h, kernel_w, stride, pad_h, pad_w, dilation */
/* in0 x; param w [O,I/G,KH,KW], b [O] or -1; whole[6]=groups */
extern const nami_op nami_op_conv;
/* in0 x; param w, b, running mean, running var [C]; saved mean, var [C]; real[0]=eps; whole[0]: ReLU behind it;
 * whole[1]: statistics are shared. What BW adds to the "gradients" of the running ones are the statistics of the
 * micro-batch, or of all samples that share them. */
extern const nami_op nami_op_batch_norm;
/* in0 x; whole[6]: 0 mean, 1 maximum; whole[7]: a mean counts padding */
extern const nami_op nami_op_pool;
/* in0 x; its backward pass reads out, so it cannot end a block */
extern const nami_op nami_op_relu;
extern const nami_op nami_op_unary; /* in0 x; whole[0]: a nami_unary */
/* out = in0 and in1 [...,C0] [...,C1] side by side */
extern const nami_op nami_op_concat;
extern const nami_op nami_op_excite; /* out = in0 [B,H,W,C] scaled by in1 [B,1,1,C] */
/* in0 [B,H,W,C]; out [B,1,C H W], channels slowest as PyTorch's */
extern const nami_op nami_op_flatten;
/* in0 x [B,..,C] of T rows; param token [C], positions [T+1,C] */
extern const nami_op nami_op_prepend;
extern const nami_op nami_op_cast; /* in0 f32; out the same in act; no gradient */
/* out = in0 + in1, where in1 is dropped for whole samples; real[0]=p */
extern const nami_op nami_op_depth;
extern const nami_op nami_op_wait; /* in0 x; param w [1]; takes set times, see wait.c */
extern const nami_op nami_op_template; /* a pattern to copy; computes gelu */

#endif
