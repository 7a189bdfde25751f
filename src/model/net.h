/* SPDX-License-Identifier: MIT */
/* net.h - image models as lists of layers, written down once: parameters, shapes, work and graphs follow from it.
 *
 * A family appends layers in order, each behind one or two earlier ones, and closes blocks. Only the last layer of a
 * block may be read behind it. The first mistake (an image too small) is kept in the net, and later calls do nothing.
 */
#ifndef NAMI_MODEL_NET_H
#define NAMI_MODEL_NET_H

#include "model/family.h"

enum { NAMI_NET_NAME = 64 };

typedef enum nami_layer_kind {
    NAMI_LAYER_IMAGE, /* the input */
    NAMI_LAYER_CONV,
    NAMI_LAYER_BATCH_NORM,
    NAMI_LAYER_UNARY,
    NAMI_LAYER_POOL,
    NAMI_LAYER_FLATTEN,
    NAMI_LAYER_LINEAR,
    NAMI_LAYER_DROPOUT, /* with train.dropout */
    NAMI_LAYER_ADD,
    NAMI_LAYER_CONCAT,
    NAMI_LAYER_EXCITE
} nami_layer_kind;

typedef struct nami_layer {
    nami_layer_kind kind;
    char name[NAMI_NET_NAME]; /* of its parameters, or random stream; "" without them */
    int in[2];                /* layers, -1: none */
    int block;
    nami_shape shape;    /* of what it makes, one sample: [1,H,W,C], or [1,1,N] */
    nami_stencil window; /* CONV, POOL */
    int64_t groups;      /* CONV */
    bool bias;           /* CONV, LINEAR */
    bool relu;           /* BATCH_NORM: followed by ReLU */
    bool max;            /* POOL */
    nami_unary function; /* UNARY */
    /* BATCH_NORM: eps; ADD: share of train.dropout with which the second is dropped */
    double real;
} nami_layer;

typedef struct nami_net {
    const nami_model_options *options;
    nami_layer *layer; /* [layers] */
    int layers, blocks;
    char (*block_name)[32]; /* [blocks] */
    double eps;             /* of batch norms to come; 1e-5 at first */
    nami_status status;
} nami_net;

/* What a window is, in short: kernel, stride and padding of both axes. */
typedef struct nami_net_window {
    int64_t kernel_h, kernel_w, stride, pad_h, pad_w;
} nami_net_window;

static inline nami_net_window nami_net_square(int64_t kernel, int64_t stride,
                                              int64_t pad)
{
    return (nami_net_window){kernel, kernel, stride, pad, pad};
}

/* The net of a family. Local. Status: NAMI_EINPUT naming what does not fit. Freed with nami_net_free. */
nami_status nami_net_make(const nami_family *family, const nami_model_options *o,
                          nami_net **out);
void nami_net_free(nami_net *n);

/* Append a layer behind layer `x`; each returns its number. Local. */
int nami_net_conv(nami_net *n, int x, const char *name, int64_t out, nami_net_window w,
                  int64_t groups, bool bias);
int nami_net_batch_norm(nami_net *n, int x, const char *name, bool relu);
int nami_net_unary(nami_net *n, int x, nami_unary function);
int nami_net_pool(nami_net *n, int x, bool max, nami_net_window w);
int nami_net_pool_ceil(nami_net *n, int x,
                       nami_net_window w);    /* max; the last window may hang over */
int nami_net_global_pool(nami_net *n, int x); /* mean over the image */
/* Mean over windows that leave size x size; a head of fixed size follows. Refused where they do not divide. */
int nami_net_adapt(nami_net *n, int x, int64_t size);
int nami_net_flatten(nami_net *n, int x);
int nami_net_linear(nami_net *n, int x, const char *name, int64_t out);
int nami_net_dropout(nami_net *n, int x, const char *name);
int nami_net_add(nami_net *n, int x, int branch, double drop, const char *name);
int nami_net_concat(nami_net *n, int x, int other);
int nami_net_excite(nami_net *n, int x, int scale);

/* Close a block, called `name`, behind the last layer. Local. */
void nami_net_block(nami_net *n, const char *name);

/* "PREFIX.NAME" in a buffer of its own among a few; either may be "". Local. */
const char *nami_net_name(char buf[NAMI_NET_NAME], const char *prefix,
                          const char *name);

/* The members of a family that follow from its net. */
void nami_net_parameters(nami_model *m);
void nami_net_block_name(const nami_model *m, int block, char buf[32]);
int nami_net_build(const nami_block_build *b, int input);
double nami_net_flops(const nami_model *m, int block, int64_t time);
nami_shape nami_net_shape(const nami_model *m, int block, int64_t batch);

/* Whether it has a layer of that kind. Local. */
bool nami_net_has(const nami_net *n, nami_layer_kind kind);

/* Whether some layer drops with train.dropout. Local. */
bool nami_net_drops(const nami_net *n);

/* A family of image models by the function `make` that writes its layers down. */
#define NAMI_NET_FAMILY(id, make) NAMI_NET_FAMILY_WITHOUT(id, make, NULL)

/* The same, which does not read the keys `without`, as "stem". */
#define NAMI_NET_FAMILY_WITHOUT(id, make, without)                                     \
    NAMI_NET_FAMILY_KEYS(id, make, without, NULL)

/* The same, which reads the keys `with` that other image models do not, as "layers width". */
#define NAMI_NET_FAMILY_KEYS(id, make, without, with)                                  \
    const nami_family nami_family_##id = {.name = #id,                                 \
                                          .unread = (without),                         \
                                          .reads = (with),                             \
                                          .images = true,                              \
                                          .net = make,                                 \
                                          .parameters = nami_net_parameters,           \
                                          .block_name = nami_net_block_name,           \
                                          .build = nami_net_build,                     \
                                          .flops = nami_net_flops,                     \
                                          .shape = nami_net_shape}

#endif
