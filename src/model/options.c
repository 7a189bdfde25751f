/* SPDX-License-Identifier: MIT */
/* options.c - sections [model] and [synthetic] of the deck. */
#include "model/family.h"

enum { MOST = 1 << 30 };

#define ROW(k, c, ...)                                                                 \
    {                                                                                  \
        .section = "model", .key = #k, .kind = NAMI_OPTION_##c,                        \
        .offset = offsetof(nami_model_options, k), __VA_ARGS__                         \
    }
static const char *const stems[] = {"imagenet", "small", NULL};

static const nami_option rows[] = {
    ROW(family, CHOICE, .fallback = "gpt", .choices = nami_family_names,
        .help = "Family of models."),
    ROW(layers, INT, .fallback = "6", .minimum = 1, .maximum = 10000,
        .help = "Transformer layers; L layers give 2L+2 blocks that can be cut."),
    ROW(width, INT, .fallback = "384", .minimum = 1, .maximum = MOST,
        .help = "Width of the residual stream; a multiple of heads."),
    ROW(heads, INT, .fallback = "6", .minimum = 1, .maximum = MOST,
        .help = "Attention heads."),
    ROW(kv_heads, INT, .fallback = "0", .maximum = MOST,
        .help = "Family llama: heads of keys and values, a divisor of heads; 0: as "
                "many as heads."),
    ROW(mlp_width, INT, .fallback = "0", .maximum = MOST,
        .help = "Width between the two layers of an MLP; 0: four times width, and of "
                "llama two thirds of that, rounded up to a multiple of 256."),
    ROW(rope_theta, REAL, .fallback = "10000", .minimum = 1e-3, .maximum = 1e12,
        .help = "Family llama: base of the wavelengths of rotary positions."),
    ROW(norm_eps, REAL, .fallback = "1e-5", .minimum = 1e-20, .maximum = 1,
        .help = "Family llama: added to the mean of squares in a norm."),
    ROW(context, INT, .fallback = "256", .minimum = 1, .maximum = MOST,
        .unit = "tokens",
        .help = "Longest sequence, and the length of a training sample."),
    ROW(vocabulary, INT, .fallback = "0", .minimum = 0, .maximum = MOST,
        .help = "Different tokens; 0 takes the number from the training set."),
    ROW(image_height, INT, .fallback = "0", .maximum = 4096, .unit = "pixels",
        .help = "Height of the images; 0 takes it from the training set."),
    ROW(image_width, INT, .fallback = "0", .maximum = 4096, .unit = "pixels",
        .help = "Width of the images; 0 takes it from the training set."),
    ROW(image_channels, INT, .fallback = "0", .maximum = 4096,
        .help = "Channels of the images; 0 takes them from the training set."),
    ROW(classes, INT, .fallback = "0", .maximum = MOST,
        .help = "Classes of images; 0 takes the number from the training set."),
    ROW(patch, INT, .fallback = "16", .minimum = 1, .maximum = 4096, .unit = "pixels",
        .help = "Family vit: height and width of the patches that become tokens."),
    ROW(stem, CHOICE, .fallback = "imagenet", .choices = stems,
        .help = "Image families: imagenet as published for 224 pixels, small with a "
                "stride of 1 at first and a head of one layer, for up to 64 pixels."),
    ROW(batch_norm, BOOL, .fallback = "yes",
        .help = "Family vgg: batch norm behind each convolution."),
    ROW(sync_batch_norm, BOOL, .fallback = "no",
        .help =
            "Image families with batch norm: while training, mean and variance of a "
            "micro-batch are those of all replicas together (PyTorch's "
            "SyncBatchNorm): of the micro-batches that replicas run at the same "
            "place of their lists, or, where replicas divide each micro-batch, of "
            "the whole of it. Results then depend on the number of replicas, "
            "whatever train.partials says; nami compare takes such a layout only "
            "where one rank can form the same groups."),
    ROW(chain, TEXT, .fallback = "",
        .help =
            "Family chain: its layers, separated by commas, with | between "
            "blocks: conv OUT KERNEL [stride N] [pad N] [groups N] [bias yes], "
            "norm, relu, relu6, silu, sigmoid, gelu (by erf), tanh, max KERNEL [stride "
            "N] [pad N], "
            "mean KERNEL, global, flatten, linear OUT, dropout; OUT may be "
            "classes."),
    ROW(type_vocabulary, INT, .fallback = "2", .minimum = 2, .maximum = MOST,
        .help = "Family bert: types of tokens, which tell the sentences of a sample "
                "apart."),
    ROW(predictions, INT, .fallback = "0", .maximum = MOST, .unit = "tokens",
        .help = "Family bert: masked tokens of a sample at most; 0 takes the number "
                "from the training set, and without one 15 % of the context."),
    ROW(tied, BOOL, .fallback = "yes",
        .help = "The head uses the weights of the token embedding."),
    ROW(bias, BOOL, .fallback = "yes",
        .help = "Biases in linear layers and norms; of llama always no."),
#define SYNTHETIC(k, f, c, ...)                                                        \
    {                                                                                  \
        .section = "synthetic", .key = #k, .kind = NAMI_OPTION_##c,                    \
        .offset = offsetof(nami_model_options, f), __VA_ARGS__                         \
    }
    SYNTHETIC(forward, synthetic_forward, TEXT, .fallback = "100ms",
              .help = "Time of a block's forward pass; a list sets each block's."),
    SYNTHETIC(backward_input, synthetic_input, TEXT, .fallback = "100ms",
              .help = "Time of a block's backward pass for its input; or a list."),
    SYNTHETIC(backward_weight, synthetic_weight, TEXT, .fallback = "100ms",
              .help = "Time of a block's backward pass for its weights; or a list."),
    SYNTHETIC(samples, synthetic_samples, INT, .fallback = "0", .maximum = MOST,
              .help =
                  "Samples of a micro-batch that takes these times; others, as those "
                  "of a rank where samples are split, take their share. 0: as long "
                  "whatever there are."),
    SYNTHETIC(saved, synthetic_saved, INT, .fallback = "0", .maximum = MOST,
              .unit = "bytes",
              .help = "Memory a block keeps for each sample from forward to backward."),
};
#undef SYNTHETIC
#undef ROW

const nami_option_table nami_model_option_table = {rows, sizeof rows / sizeof rows[0]};
