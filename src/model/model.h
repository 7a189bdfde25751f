/* SPDX-License-Identifier: MIT */
/* model.h - a model: a chain of blocks and a catalogue of parameters.
 *
 * A block is the unit of cutting. A transformer of L layers has 2L+2 blocks: embedding, then attention
 * half-layer and MLP half-layer per layer, then final norm with head (and loss).
 */
#ifndef NAMI_MODEL_MODEL_H
#define NAMI_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "graph/graph.h"

struct nami_family;
struct nami_net;

/* [model] and [synthetic] of the deck. */
typedef struct nami_model_options {
    int family; /* index into the families: gpt, synthetic */
    int64_t layers, width, heads, context, vocabulary;
    int64_t kv_heads;                     /* of llama; 0: as many as heads */
    int64_t mlp_width;                    /* 0: 4 width; of llama, see there */
    double rope_theta, norm_eps;          /* of llama */
    int64_t patch;                        /* of vit */
    int64_t type_vocabulary, predictions; /* of bert; predictions 0: of the data */
    int64_t image_height, image_width,
        image_channels;     /* of image families; 0: the data's */
    int64_t classes;        /* of image families; 0: the data's */
    int stem;               /* of image families: 0 as published, 1 for small images */
    bool batch_norm;        /* of vgg */
    bool sync_batch_norm;   /* statistics of all replicas together */
    char *chain;            /* layers of family chain */
    bool tied;              /* the head uses the token embedding */
    bool bias;              /* biases in linear layers and norms */
    double label_smoothing; /* of the training loss; [0,1), train.label_smoothing */
    char *synthetic_forward, *synthetic_input,
        *synthetic_weight;     /* durations, one or one a block */
    int64_t synthetic_saved;   /* bytes a sample and block */
    int64_t synthetic_samples; /* of a micro-batch that takes the times; 0: any */
} nami_model_options;

extern const nami_option_table nami_model_option_table;

typedef enum nami_init { NAMI_INIT_ZERO, NAMI_INIT_ONE, NAMI_INIT_NORMAL } nami_init;

typedef struct nami_param {
    /* PyTorch's names, of gpt nanoGPT's: "transformer.h.0.attn.c_attn.weight" */
    char *name;
    nami_shape shape; /* [O,I] for matrices */
    nami_init init;
    double deviation; /* of NAMI_INIT_NORMAL */
    bool decay; /* weight decay applies: matrices, embeddings; not biases and norms */
    /* no gradient and no optimiser: a running mean of what BW adds to it, see NAMI_MODEL_MOMENTUM */
    bool statistic;
    int block; /* first block that uses it */
    int uses;  /* 1, or 2 when tied */
} nami_param;

/* Parameters at most: what all ranks hold of them for any schedule can be counted in bytes. */
#define NAMI_MODEL_MOST 0x1p44

/* At the end of a step a statistic moves this far towards the mean over the step's micro-batches: PyTorch's
 * momentum of BatchNorm2d. */
#define NAMI_MODEL_MOMENTUM 0.1

/* Kinds of samples: what the first stage takes as input, and the last one as targets. */
typedef enum nami_sample_kind {
    NAMI_SAMPLE_TOKENS, /* tokens [T] i32; the next tokens [T] i32, negative ones do not count */
    NAMI_SAMPLE_IMAGE, /* [height,width,channels] f32, channels fastest, normalised; the class i32 */
    /* T tokens, T token types (0 or 1), then the length L i32: the first 1 <= L <= T tokens are real, the others
     * padding; M masked positions below L, the M tokens that were there (-1: the slot is unused, its position 0), then
     * whether the second sentence is not the one that follows the first: 0, 1, or -1 for no such question. */
    NAMI_SAMPLE_MASKED
} nami_sample_kind;

/* What a sample is, in words of four bytes. */
typedef struct nami_model_sample {
    nami_sample_kind kind;
    int64_t height, width, channels; /* of an image */
    int64_t time;                    /* T; of an image 1 */
    int64_t masked;                  /* M */
    int64_t words; /* of an input: height width channels, T or 2T + 1 */
    int64_t side;  /* the last words of an input, which every stage reads: 1, L, or 0 */
    int64_t targets; /* 1, T or 2M + 1 */
    int losses;      /* 1; 2: of masked tokens and of next sentences, which add up */
    int64_t classes; /* all classes and tokens are below it */
} nami_model_sample;

/* of a model at most; each is a mean over its own targets */
enum { NAMI_MODEL_LOSSES = 2 };

typedef struct nami_model nami_model;
typedef struct nami_named nami_named;

struct nami_model {
    nami_model_options options;
    const struct nami_family *family;
    double dropout;
    int blocks;
    int params;
    nami_param *param;    /* [params] in model order */
    nami_named *named;    /* [params] in order of their names */
    struct nami_net *net; /* layers of an image model; NULL for others */
    /* [3][blocks] of forward, backward input and weight; NULL: as long as it takes */
    double *seconds;
};

/* Local. Status: NAMI_EINPUT naming the key (width not divisible by heads, ...). */
nami_status nami_model_new(const nami_model_options *o, double dropout,
                           nami_model **out);
void nami_model_free(nami_model *m);
int64_t nami_model_count(
    const nami_model *m); /* parameters, tied ones once; without statistics */

/* Whether the model needs no data set: any tokens below the vocabulary do. Local. */
bool nami_model_made_up(const nami_model_options *o);

/* Name of block i for tables: "embedding", "0.attention", "0.mlp", "head". buf[32]. Local. */
const char *nami_model_block_name(const nami_model *m, int block, char buf[32]);

/* Blocks [first, last) as an unplanned graph; a stage with the last block has the loss. Local. */
nami_status nami_model_graph(const nami_model *m, int first, int last, nami_backend *b,
                             nami_dtype act, int64_t batch, int64_t time,
                             nami_graph **out);

/* Whether samples of `time` tokens can be cut into `slices`. Local. Status: NAMI_EPLAN with the arithmetic. */
nami_status nami_model_slices(const nami_model *m, int64_t time, int slices);

/* The same for one of `slices` token slices of samples with `time` tokens. Local. Status: NAMI_EPLAN too. */
nami_status nami_model_graph_sliced(const nami_model *m, int first, int last,
                                    nami_backend *b, nami_dtype act, int64_t batch,
                                    int64_t time, int slices, nami_graph **out);

/* All blocks as an unplanned graph whose output is the logits [batch,time,vocabulary] in `act`, to be planned
 * without training. Local. Status as nami_model_graph. */
nami_status nami_model_graph_logits(const nami_model *m, nami_backend *b,
                                    nami_dtype act, int64_t batch, int64_t time,
                                    nami_graph **out);

/* Refuse keys of a deck that its family does not read. Local. Status: NAMI_EINPUT naming the key. */
nami_status nami_model_check_keys(const nami_model_options *o);

/* Refuse biases that a deck asks for and its family does not have. Local. Status: NAMI_EINPUT. */
nami_status nami_model_check_bias(const nami_model_options *o);

/* Let keys that were not set say what the family is: no biases. Local. */
void nami_model_settle(nami_model_options *o);

/* Refuse dropout of a model where nothing drops. Local. Status: NAMI_EINPUT. */
nami_status nami_model_check_dropout(const nami_model *m);

/* Whether operators share statistics over replicas while training. Local. */
bool nami_model_shares(const nami_model *m);

/* Refuse shared statistics of a model without batch norm. Local. Status: NAMI_EINPUT. */
nami_status nami_model_check_shares(const nami_model *m);

/* Whether its samples are images; their size and number of classes are 0 in *o where the data is to say. Local. */
bool nami_model_takes_images(const nami_model_options *o);

/* Whether its samples are sentences with masked tokens. Local. */
bool nami_model_takes_sentences(const nami_model_options *o);

/* What a sample of `time` tokens (images: 1) consists of. Local. */
nami_model_sample nami_model_sample_of(const nami_model *m, int64_t time);

/* Add the targets of `count` samples that count to those of each loss. target [count][targets]. Local. */
void nami_model_counted(const nami_model_sample *s, const int32_t *target,
                        int64_t count, int64_t counted[NAMI_MODEL_LOSSES]);

/* A sample that does not count: padding of a batch. token [words], target [targets]; either may be NULL. Local. */
void nami_model_blank(const nami_model_sample *s, int32_t *token, int32_t *target);

/* A sample made up from `seed`, some of whose targets do not count; for profiles and tests. Outputs as of
 * nami_model_blank. Local. */
void nami_model_make_up(const nami_model_sample *s, uint64_t seed, int32_t *token,
                        int32_t *target);

/* What `samples` samples take of the times of a model made up, where those of others are set. Local. */
double nami_model_time_share(const nami_model *m, int64_t samples);

/* Elements of a sample of `time` tokens that enter block i, 1 <= i < blocks: time * width of a transformer. Local. */
int64_t nami_model_boundary(const nami_model *m, int block, int64_t time);

/* FLOPs of one sample of `time` tokens through block i, forward pass. Local. */
double nami_model_block_flops(const nami_model *m, int block, int64_t time);

/* Cut the chain into `stages` parts of nearly equal FLOPs: cut[0..stages], cut[0] = 0,
 * cut[stages] = blocks, stage s = [cut[s], cut[s+1]), none empty; the largest part is smallest possible, then the sum of squares.
 * Local. Status: NAMI_EPLAN with the arithmetic when stages > blocks. */
nami_status nami_model_cuts(const nami_model *m, int64_t time, int stages, int *cut);

/* The same for any n blocks of `work` >= 0 each, 1 <= stages <= n. Local. */
void nami_model_cut_work(const double *work, int n, int stages, int *cut);

/* Elements [from, from + count) of the initial value of parameter i under `seed`. Local. */
void nami_model_init(const nami_model *m, int i, uint64_t seed, int64_t from,
                     int64_t count, float *out);

#endif
