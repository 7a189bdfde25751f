/* SPDX-License-Identifier: MIT */
/* kernel.h - what every backend can compute: the kernels and their argument structs.
 *
 * "act" is the activation type: f32, bf16, or f64 (ref only, for finite differences). Parameters,
 * gradient sums (dw, db) and statistics are "wide": f64 when act is f64, else f32.
 * Rules: dx is overwritten, dx = add + result where `add` is given (add may equal dx); dw and db are
 * added to. Softmax, norms and sums run in at least f32. The result does not depend on pointer values.
 * With act = bf16 the matrix products take w rounded to bf16, sums are f32 and bias is added in f32; the
 * result is rounded once. Packed weights belong to kernels prepared for the same n.
 * Images are [B,H,W,C], channels fastest; the weights of a convolution [O,I/G,KH,KW], as PyTorch's.
 * `n` rows = B*T positions. Dropout keeps element e of sample s when
 * nami_keep(key, s, e, p): see below; kept values are scaled by 1/(1-p).
 */
#ifndef NAMI_BACKEND_KERNEL_H
#define NAMI_BACKEND_KERNEL_H

#include <stdbool.h>

#include "base/rng.h"
#include "tensor/tensor.h"

typedef enum nami_kernel {
    NAMI_LINEAR_PACK, /* weights into the compute type and layout: packed_f, packed_b from w */
    NAMI_LINEAR_F,  /* y = x w^T + b */
    NAMI_LINEAR_BI, /* dx = add + dy w */
    NAMI_LINEAR_BW, /* dw += dy^T x, db += column sums of dy */
    NAMI_NORM_F, /* layer norm: y = (x - mean) rstd w + b; or RMS norm, see nami_arg_norm */
    NAMI_NORM_BI,
    NAMI_NORM_BW,
    NAMI_GELU_F, /* tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    NAMI_GELU_BI,
    NAMI_ATTENTION_F, /* multi-head self-attention on packed q,k,v, causal or whole */
    NAMI_ATTENTION_BI,
    NAMI_ROTARY_F, /* rotary positions of q and k, see nami_arg_rotary */
    NAMI_ROTARY_BI,
    NAMI_SWIGLU_F, /* y[n,c] = silu(x[n,c]) x[n,F+c], silu(g) = g sigmoid(g) */
    NAMI_SWIGLU_BI,
    NAMI_DROPOUT_F,  /* y = add + keep(x)/(1-p) */
    NAMI_DROPOUT_BI, /* dx = keep(dy)/(1-p) */
    NAMI_EMBED_F,    /* y[b,t,:] = wte[token[b,t],:] + wpe[t,:] (+ wtt[type[b,t],:]) */
    NAMI_EMBED_BW, /* dwte[token[b,t],:] += dy[b,t,:], dwpe[t,:] += sum_b dy[b,t,:], in order of (b,t); dwtt as dwte */
    NAMI_GATHER_F, /* y[b,m,:] = x[b,row[b,m],:] */
    NAMI_GATHER_BI, /* dx = add; then dx[b,row[b,m],:] += dy[b,m,:] in order of m */
    NAMI_XENT_F, /* loss[b] = sum_t (logsumexp - (1-E) logit of target - E mean logit); see gradient flag */
    NAMI_ADD,    /* a += b, wide */
    NAMI_SCALE,  /* a *= s, wide */
    NAMI_SQUARES, /* sums of squares in double over blocks of 64 Ki elements, added in block order */
    NAMI_ADAMW,   /* fused AdamW step over one parameter */
    NAMI_ADAM,    /* the same with the decay added to the gradient */
    NAMI_SGD,     /* SGD with momentum over one parameter */
    NAMI_RMSPROP, /* over one parameter */
    NAMI_PREDICT, /* out = w - distance x direction, of momentum or of Adam's moments */
    NAMI_DRIFT,   /* decayed mean of what updates change */
    NAMI_CONV_PACK, /* as LINEAR_PACK */
    NAMI_CONV_F,    /* y = x convolved with w, + b */
    NAMI_CONV_BI,
    NAMI_CONV_BW, /* dw, db added to */
    NAMI_BATCH_NORM_F, /* y = (x - mean) / sqrt(var + eps) w + b by channel, then ReLU if asked for */
    NAMI_BATCH_NORM_BI,
    NAMI_BATCH_NORM_BW,
    NAMI_BATCH_NORM_F_OWN, /* what these rows add to the sums of F, see nami_arg_batch_norm */
    NAMI_BATCH_NORM_BI_OWN,
    NAMI_POOL_F, /* maximum or mean of windows */
    NAMI_POOL_BI,
    NAMI_UNARY_F, /* ReLU and its relatives */
    NAMI_UNARY_BI,
    NAMI_CONCAT_F, /* y [n,A+B] = rows of a [n,A] and b [n,B] side by side */
    NAMI_CONCAT_BI,
    NAMI_EXCITE_F, /* y[b,p,c] = x[b,p,c] s[b,c] */
    NAMI_EXCITE_BI,
    NAMI_TURN, /* y[b,j,i] = x[b,i,j] */
    NAMI_CAST, /* y = x, f32 to act */
    NAMI_PREPEND_F, /* y[b,0,:] = token + position[0,:], y[b,t+1,:] = x[b,t,:] + position[t+1,:] */
    NAMI_PREPEND_BI, /* dx[b,t,:] = dy[b,t+1,:] */
    NAMI_PREPEND_BW, /* dtoken += sum_b dy[b,0,:], dposition[t,:] += sum_b dy[b,t,:], in order of b */
    NAMI_WAIT, /* takes a set time without burning a core; of an operator without work */
    NAMI_KERNELS
} nami_kernel;

enum { NAMI_SQUARES_BLOCK = 65536 }; /* elements, see NAMI_SQUARES */

typedef struct nami_arg_linear {
    nami_dtype act;
    int64_t n, in, out; /* rows, inner width I, outer width O */
    const void *x;      /* [n,I] act */
    const void *w;      /* [O,I] wide, the master copy */
    const void *b;      /* [O] wide, or NULL */
    void *packed_f;     /* prepared.packed_f bytes: w as LINEAR_F wants it */
    void *packed_b;     /* prepared.packed_b bytes: w as LINEAR_BI wants it */
    void *y;            /* [n,O] act */
    const void *dy;     /* [n,O] act */
    const void *add;    /* [n,I] act, or NULL */
    void *dx;           /* [n,I] act */
    void *dw;           /* [O,I] wide, added to */
    void *db;           /* [O] wide, added to, or NULL */
    void *scratch;      /* prepared.scratch bytes */
} nami_arg_linear;

typedef struct nami_arg_norm {
    nami_dtype act;
    int64_t n, width;
    double eps;
    bool rms;          /* mean is 0, not computed: rstd = 1 / sqrt(mean of x^2 + eps) */
    const void *x;     /* [n,C] act */
    const void *w, *b; /* [C] wide; b NULL: no bias */
    void *y;           /* [n,C] act */
    /* [n] wide, written by F, read by BI and BW; with `rms` rstd alone */
    void *mean, *rstd;
    const void *dy, *add; /* [n,C] act */
    void *dx;             /* [n,C] act */
    void *dw, *db;        /* [C] wide, added to; db NULL: no bias */
} nami_arg_norm;

typedef struct nami_arg_gelu {
    nami_dtype act;
    int64_t count;
    const void *x; /* [count] act */
    void *y;
    const void *dy;
    void *dx; /* may equal dy */
} nami_arg_gelu;

/* Windows over an image: output row i covers rows i stride - pad_h + dilation j, 0 <= j < kernel_h, of the input
 * as far as they are inside; columns alike. */
typedef struct nami_stencil {
    int64_t height, width, out_height, out_width;
    int64_t kernel_h, kernel_w, stride, pad_h, pad_w, dilation;
} nami_stencil;

typedef struct nami_arg_conv {
    nami_dtype act;
    /* B, channels I and O, G: group g makes O/G channels of I/G */
    int64_t batch, in, out, groups;
    nami_stencil window;
    const void *x;  /* [B,H,W,I] act */
    const void *w;  /* [O,I/G,KH,KW] wide */
    const void *b;  /* [O] wide, or NULL */
    void *packed_f; /* prepared.packed_f bytes, as of nami_arg_linear */
    void *packed_b;
    void *y;        /* [B,OH,OW,O] act */
    const void *dy; /* like y */
    void *dx;       /* like x */
    void *dw, *db;  /* wide, added to; db NULL: no bias */
    void *scratch;  /* prepared.scratch bytes */
} nami_arg_conv;

typedef struct nami_arg_batch_norm {
    nami_dtype act;
    int64_t n, width; /* rows B H W, channels C */
    double eps;
    bool relu;                              /* y = max(0, .) */
    bool running;                           /* by the running statistics: evaluation */
    const void *x;                          /* [n,C] act */
    const void *w, *b;                      /* [C] wide */
    const void *running_mean, *running_var; /* [C] wide, with `running` */
    void *y;                                /* [n,C] act */
    /* [C] wide, of these rows (var divided by n): written by F, read by BI and BW */
    void *mean, *var;
    const void *dy; /* [n,C] act */
    void *dx;       /* [n,C] act */
    void *dw, *db;  /* [C] wide, added to */
    /* [C] wide; BW adds mean and var n/(n-1), as PyTorch's running ones have it */
    void *dmean, *dvar;
    /* Where statistics are of `all` rows, these and others elsewhere: F_OWN leaves the sums of x and x^2 over these
     * rows, BI_OWN those of dy (in front of the ReLU) and dy (x - mean); F and BI read the sums over all rows. mean,
     * var and dvar are of all rows then, dw and db of these. */
    double *sums;  /* [2][C]; NULL: F and BI make them, of these rows */
    int64_t all;   /* 0: n */
    void *scratch; /* prepared.scratch bytes */
} nami_arg_batch_norm;

typedef struct nami_arg_pool {
    nami_dtype act;
    bool max;           /* else mean */
    bool count_padding; /* a mean divides by the whole kernel, also at the border */
    int64_t batch, channels;
    nami_stencil window;
    /* [B,H,W,C] act; BI of max reads it: the first largest of a window gets the gradient */
    const void *x;
    void *y;        /* [B,OH,OW,C] act */
    const void *dy; /* like y */
    void *dx;       /* like x */
} nami_arg_pool;

typedef enum nami_unary {
    NAMI_RELU,     /* BI reads x or y, they tell the same */
    NAMI_RELU6,    /* the same */
    NAMI_SIGMOID,  /* BI reads x */
    NAMI_SILU,     /* x sigmoid(x); BI reads x */
    NAMI_GELU_ERF, /* x Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2; BI reads x */
    NAMI_TANH,     /* BI reads x */
    NAMI_UNARIES
} nami_unary;

typedef struct nami_arg_unary {
    nami_dtype act;
    nami_unary function;
    int64_t count;
    const void *x; /* [count] act; of BI: x or y, see nami_unary */
    void *y;
    const void *dy;
    void *dx;
} nami_arg_unary;

typedef struct nami_arg_concat {
    nami_dtype act;
    int64_t n, width_a, width_b;
    const void *a, *b; /* [n,A], [n,B] act */
    void *y;           /* [n,A+B] act */
    const void *dy;    /* like y */
    void *da, *db;     /* like a, b; NULL: not wanted */
} nami_arg_concat;

typedef struct nami_arg_excite {
    nami_dtype act;
    int64_t batch, positions, channels;
    const void *x;  /* [B,P,C] act */
    const void *s;  /* [B,C] act */
    void *y;        /* [B,P,C] act */
    const void *dy; /* like y */
    void *dx, *ds;  /* like x, s; NULL: not wanted */
} nami_arg_excite;

typedef struct nami_arg_turn { /* TURN; CAST of rows alone */
    nami_dtype act;
    int64_t batch, rows, columns;
    const void *x; /* [B,rows,columns] act (CAST: f32) */
    void *y;       /* [B,columns,rows] act (CAST: like x) */
} nami_arg_turn;

typedef struct nami_arg_prepend {
    nami_dtype act;
    int64_t batch, time, width;   /* B, T, C */
    const void *x;                /* [B,T,C] act */
    const void *token, *position; /* [C], [T+1,C] wide */
    void *y;                      /* [B,T+1,C] act */
    const void *dy;               /* like y */
    void *dx;                     /* like x */
    void *dtoken, *dposition;     /* wide, added to */
} nami_arg_prepend;

typedef struct nami_arg_attention {
    nami_dtype act;
    int64_t batch, time, heads, head_width; /* B, T, H, D = C/H */
    /* G, divides H: heads h and h' share k, v where h / (H/G) = h' / (H/G); 0: H */
    int64_t kv_heads;
    bool whole; /* every row sees all columns; else row i those up to i */
    /* [B], 1 to T: with `whole`, no row of sample b sees columns from length[b] on; NULL: all */
    const int32_t *length;
    /* K token slices of T positions make a sample; 0 or 1: it is whole */
    int64_t slices;
    int64_t slice; /* k of this one: its rows are [kT, (k+1)T) of the sample */
    size_t stride; /* bytes from qkv and dkv of one slice to those of the next */
    /* p of the attention weights, 0 = none; weight (h,i,j) is element nami_attention_element */
    double dropout;
    uint64_t key;         /* of this operator and step */
    int64_t first_sample; /* global index of sample 0 */
    const void *qkv; /* [B,T,(H+2G)D] act: q, k, v one after the other, head by head */
    void *y;         /* [B,T,C] act; read by BI */
    void *lse;       /* [B,H,T] wide: log of the softmax sum, for BI */
    const void *dy;  /* [B,T,C] act */
    void *dqkv;      /* like qkv */
    void *dkv;       /* [B,T,2GD] wide, k then v; K > 1 alone, see below */
    void *scratch;   /* prepared.scratch bytes */
} nami_arg_attention;

/* With K > 1 (not with `whole`) slice k attends to the k, v of slices 0..k: slice j's qkv lies (k - j) strides before its own. BI runs
 * from the last slice to the first. The last slice overwrites the dkv of all slices before it with its share of
 * their gradients, the others add theirs; dqkv of slice k has what later slices left in its dkv. */

/* Rows [B,T] of H heads of even width D, then R elements that are copied. Elements d and d + D/2 of a head, 0 <= d < D/2,
 * turn by the angle p theta^(-2d/D) at position p = first + t: y_d = x_d cos - x_{d+D/2} sin, y_{d+D/2} = x_{d+D/2} cos +
 * x_d sin. Su et al., RoFormer (2021), equation 34, with the pairs of Hugging Face's Llama. */
typedef struct nami_arg_rotary {
    nami_dtype act;
    int64_t batch, time, heads, width, rest; /* B, T, H, D, R */
    int64_t first;                           /* position of row 0 in the sample */
    double theta;
    const void *x;  /* [B,T,HD+R] act */
    void *y;        /* like x */
    const void *dy; /* like x */
    void *dx;       /* like x */
} nami_arg_rotary;

typedef struct nami_arg_swiglu {
    nami_dtype act;
    int64_t n, width; /* rows, F */
    const void *x;    /* [n,2F] act: gate, then up */
    void *y;          /* [n,F] act */
    const void *dy;   /* like y */
    void *dx;         /* like x */
} nami_arg_swiglu;

typedef struct nami_arg_dropout {
    nami_dtype act;
    int64_t batch, count; /* B samples, `count` elements of each */
    int64_t first;  /* number of the first of them in the sample, of a token slice */
    double dropout; /* p; 0 copies */
    bool whole;     /* a sample is kept or dropped as a whole, by its element 0 */
    uint64_t key;
    int64_t first_sample;
    const void *x, *add; /* [B,count] act; add may be NULL */
    void *y;
    const void *dy;
    void *dx;
} nami_arg_dropout;

typedef struct nami_arg_embed {
    nami_dtype act;
    int64_t batch, time, width, vocabulary;
    /* words from a sample's tokens (and types) to the next one's; 0: T */
    int64_t stride;
    /* [B,T], 0 <= token < vocabulary (checked when data is read) */
    const int32_t *token;
    const int32_t *type;   /* [B,T] types of the tokens, checked likewise; or NULL */
    const void *wte, *wpe; /* [V,C], [>=T,C] wide; wpe NULL: without positions */
    const void *wtt;       /* [types,C] wide; with `type` alone */
    void *y;               /* [B,T,C] act */
    const void *dy;        /* [B,T,C] act */
    void *dwte, *dwpe;     /* wide, added to; dwpe NULL with wpe */
    void *dwtt;            /* likewise; with `type` alone */
} nami_arg_embed;

typedef struct nami_arg_gather {
    nami_dtype act;
    int64_t batch, time, rows, width; /* B, T, M, C */
    int64_t stride; /* words from a sample's row numbers to the next one's */
    const int32_t
        *row;        /* [B,M], 0 <= row < T (checked when data is read); NULL: all 0 */
    const void *x;   /* [B,T,C] act */
    void *y;         /* [B,M,C] act */
    const void *dy;  /* [B,M,C] act */
    const void *add; /* [B,T,C] act, or NULL: 0 */
    void *dx;        /* [B,T,C] act, may equal add */
} nami_arg_gather;

typedef struct nami_arg_xent {
    nami_dtype act;
    int64_t batch, time, vocabulary;
    /* [B,T,V] act; with `gradient` overwritten by scale (softmax - (1-E) onehot - E/V) */
    void *logits;
    int64_t stride;        /* words from a sample's targets to the next one's; 0: T */
    const int32_t *target; /* [B,T]; negative: position does not count */
    double scale;          /* 1 / counted tokens of the whole step */
    /* E in [0,1]: part of the target spread over all V; as torch's label_smoothing */
    double smoothing;
    bool gradient;
    /* [B] sums over t, host or device memory as the backend's other buffers */
    double *loss;
    /* [B] over t: counted targets with the largest logit; among the five largest; of equal logits the first is the
     * larger. Both NULL: not wanted */
    double *best, *five;
    void *scratch; /* prepared.scratch bytes */
} nami_arg_xent;

typedef struct nami_arg_vector { /* ADD, SCALE, SQUARES */
    nami_dtype wide;
    int64_t count;
    void *a;
    const void *b;
    double s;
    double *sum; /* SQUARES: the result */
} nami_arg_vector;

typedef struct nami_arg_update { /* ADAMW, ADAM, SGD, RMSPROP; over one parameter */
    nami_dtype wide;
    int64_t count;
    void *w;          /* parameter, written */
    const void *from; /* the parameter before, read; NULL: w itself */
    const void *g;    /* gradient */
    /* optimiser state: mean of gradients; SGD, RMSPROP: momentum (RMSPROP: or NULL) */
    void *m;
    void *v;       /* mean of their squares; not SGD */
    void *centre;  /* RMSPROP: mean of gradients, taken off the squares; or NULL */
    bool nesterov; /* SGD */
    double lr, beta1, beta2, eps,
        decay;         /* beta1 of SGD, RMSPROP: momentum; beta2 of RMSPROP: alpha */
    double grad_scale; /* clip factor, g is multiplied by it */
    int64_t step;      /* 1-based, for the bias correction */
} nami_arg_update;

typedef struct nami_arg_predict { /* PREDICT; elementwise, out may be w */
    nami_dtype wide;
    int64_t count;
    const void *w;
    const void *m; /* the direction; with v, mean of gradients */
    const void *v; /* mean of their squares, Adam's; or NULL */
    /* w - distance m, or w - distance (m / bias1) / (sqrt(v / bias2) + eps) */
    void *out;
    double distance;          /* updates to come, times the rate */
    double beta1, beta2, eps; /* with v: bias1 = 1 - beta1^step */
    int64_t step;             /* updates done, >= 1 */
} nami_arg_predict;

typedef struct
    nami_arg_drift { /* DRIFT: mean = gamma mean + (1 - gamma) (after - before) */
    nami_dtype wide;
    int64_t count;
    void *mean;
    const void *before, *after;
    double gamma;
} nami_arg_drift;

typedef struct nami_arg_wait { /* one pass: exactly y, dx or dw is given */
    nami_dtype act;
    int64_t count; /* elements of x, y, dy, dx */
    /* from the start of the launch to its end, its arithmetic included */
    double seconds;
    const void *x;  /* act */
    const void *w;  /* [1] wide */
    void *y;        /* = x + w[0], act */
    const void *dy; /* act */
    void *dx;       /* = dy, act */
    void *dw;       /* [1] wide, += the sum of dy in order */
} nami_arg_wait;

/* Heads of k and v. Local. */
static inline int64_t nami_attention_groups(const nami_arg_attention *a)
{
    return a->kv_heads > 0 ? a->kv_heads : a->heads;
}

/* Elements of a row of qkv. Local. */
static inline int64_t nami_attention_row(const nami_arg_attention *a)
{
    return (a->heads + 2 * nami_attention_groups(a)) * a->head_width;
}

/* Number of word n = b T + t of [B,T] words whose samples begin `stride` apart; 0: T. Local. */
static inline int64_t nami_word(int64_t n, int64_t time, int64_t stride)
{
    return stride > 0 ? n / time * stride + n % time : n;
}

/* Number of the attention weight of head h, row i, column j for nami_keep; `time`, i, j of the whole sample; rows start
 * at multiples of 4. Local. */
static inline int64_t nami_attention_element(int64_t time, int64_t h, int64_t i,
                                             int64_t j)
{
    return (h * time + i) * ((time + 3) / 4 * 4) + j;
}

/* Whether dropout with probability p keeps element e of global sample s under `key`. Local. */
static inline bool nami_keep(uint64_t key, int64_t sample, int64_t e, double p)
{
    const uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    const uint32_t c[4] = {(uint32_t)(e >> 2), (uint32_t)(e >> 34), (uint32_t)sample,
                           (uint32_t)((uint64_t)sample >> 32)};
    uint32_t r[4];
    nami_philox(c, k, r);
    return (double)r[e & 3] >= p * 4294967296.0;
}

#endif
