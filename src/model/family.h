/* SPDX-License-Identifier: MIT */
/* family.h - what a model family is: a chain of blocks, its parameters, its graph.
 *
 * A new family is one file like template.c and one line in families.c.
 */
#ifndef NAMI_MODEL_FAMILY_H
#define NAMI_MODEL_FAMILY_H

#include "model/model.h"

struct nami_net;

/* A block being added to a graph. */
typedef struct nami_block_build {
    const nami_model *model;
    nami_graph *graph;
    nami_dtype act, wide;
    int64_t batch, time; /* of a token slice, where nami_graph_slices(graph) > 1 */
    int block;
    int side; /* value with the side words of samples i32 [B]; -1: there are none */
    int targets; /* value with the targets i32 [B,.], -1: the last block ends in its logits */
} nami_block_build;

typedef struct nami_family {
    const char *name;
    bool made_up; /* needs no data: its vocabulary is its width, any samples do */
    /* samples are images with a class: image_* and classes of the options */
    bool images;
    /* keys of the deck that it does not read while others of its kind do, as "stem" or "heads tied", and "dropout" for
     * train.dropout; NULL: none */
    const char *unread;
    /* keys that it reads while others of its kind do not; NULL: none */
    const char *reads;
    bool masked;     /* samples are sentences with masked tokens */
    bool bare;       /* no linear layer and no norm has a bias: model.bias is no */
    bool causal;     /* no token depends on a later one: sequences can be sliced */
    double norm_eps; /* of layer norms; 0: PyTorch's 1e-5 */
    /* Of image models that are lists of layers (net.h): write them down. check and blocks are NULL then. */
    void (*net)(struct nami_net *n, const nami_model_options *o);
    nami_status (*check)(const nami_model_options *o); /* NAMI_EINPUT naming the key */
    int (*blocks)(const nami_model_options *o);        /* length of the chain, >= 1 */
    void (*parameters)(nami_model *m); /* calls nami_model_param in model order */
    void (*block_name)(const nami_model *m, int block, char buf[32]);
    int (*build)(
        const nami_block_build *b,
        int input); /* returns the output value, -1: ended by nami_build_loss */
    double (*flops)(const nami_model *m, int block,
                    int64_t time); /* forward pass of one sample */
    /* Of what enters block `block`, `batch` samples; NULL: [B,T,width], tokens [B,T] at block 0. */
    nami_shape (*shape)(const nami_model *m, int block, int64_t batch);
} nami_family;

/* All families; the option model.family is an index. */
extern const nami_family *const nami_families[];
extern const char *const nami_family_names[]; /* NULL-terminated */

extern const nami_family nami_family_gpt;
extern const nami_family nami_family_bert;
extern const nami_family nami_family_llama;
extern const nami_family nami_family_synthetic;
extern const nami_family nami_family_alexnet, nami_family_chain,
    nami_family_densenet121;
extern const nami_family nami_family_efficientnetv2, nami_family_inception;
extern const nami_family nami_family_lenet, nami_family_mlp, nami_family_mobilenetv2;
extern const nami_family nami_family_resnet18, nami_family_resnet20;
extern const nami_family nami_family_resnet32, nami_family_resnet44;
extern const nami_family nami_family_resnet56, nami_family_resnet110;
extern const nami_family nami_family_resnet34, nami_family_resnet50;
extern const nami_family nami_family_resnet101, nami_family_resnet152;
extern const nami_family nami_family_resnext50;
extern const nami_family nami_family_squeezenet, nami_family_vgg11, nami_family_vgg13;
extern const nami_family nami_family_vgg16, nami_family_vgg19;
extern const nami_family nami_family_vit;
extern const nami_family nami_family_template; /* a pattern to copy */

/* Of transformers whose blocks are embedding, half-layers, head, see transformer.c. */
nami_status nami_transformer_check(const nami_model_options *o);
nami_status nami_transformer_check_inner(int64_t inner); /* width of an MLP */
int nami_transformer_blocks(const nami_model_options *o);
void nami_transformer_block_name(const nami_model *m, int block, char buf[32]);

/* A model of `family` instead of options.family. Local. Status as nami_model_new. */
nami_status nami_model_of(const nami_family *family, const nami_model_options *o,
                          double dropout, nami_model **out);

/* Append a parameter to the catalogue; `name` is copied. Matrices decay, vectors do not. Local. */
nami_param *nami_model_param(nami_model *m, int block, const char *name,
                             nami_shape shape, nami_init init, double deviation);

/* End of the catalogue: from here on parameters are found by name. Local. Status: NAMI_EINPUT, too many. */
nami_status nami_model_close(nami_model *m);

/* Number of the parameter `name`, -1 when there is none. Local. */
int nami_model_seek(const nami_model *m, const char *name);

/* The same; it must exist. Local. */
int nami_model_find(const nami_model *m, const char *name);

/* Pieces of blocks; each returns the value it makes. `name` is the module's, "transformer.h.0.ln_1": its
 * parameters are NAME.weight and, where the catalogue has it, NAME.bias. x [B,T,*]. Local. */
/* A use of NAMEsuffix, -1 when the catalogue has no such parameter. Local. */
int nami_build_use(const nami_block_build *b, const char *name, const char *suffix);

int nami_build_linear(const nami_block_build *b, int x, const char *name);
int nami_build_norm(const nami_block_build *b, int x, const char *name);
int nami_build_rms_norm(const nami_block_build *b, int x, const char *name);
/* Rotary positions of q and k in qkv [B,T,C+2GC/H]. */
int nami_build_rotary(const nami_block_build *b, int qkv, int64_t kv_heads);
/* silu(gate) up [B,T,width] of x [B,T,2 width]. */
int nami_build_swiglu(const nami_block_build *b, int x, int64_t width);
int nami_build_gelu(const nami_block_build *b, int x); /* tanh form */
int nami_build_unary(const nami_block_build *b, int x, nami_unary function);

/* How nami_build_attention attends. */
typedef struct nami_attention_kind {
    int64_t kv_heads; /* of k and v; 0: as many as model.heads */
    bool whole;       /* every position sees all */
    int length; /* value i32 [B]: only so many first ones, `whole` alone; -1: all */
} nami_attention_kind;

/* From qkv [B,T,C+2GC/H], see nami_arg_attention; dropout of its weights as the model says. */
int nami_build_attention(const nami_block_build *b, int qkv,
                         const nami_attention_kind *kind, const char *name);
int nami_build_dropout(const nami_block_build *b, int x, const char *name);
int nami_build_residual(const nami_block_build *b, int x, int branch, const char *name);
/* wpe NULL: no learned positions. */
int nami_build_embed(const nami_block_build *b, int tokens, const char *wte,
                     const char *wpe);
/* End of the last block: the loss and -1, or `logits` themselves where there are no targets. */
int nami_build_loss(const nami_block_build *b, int logits);

#endif
