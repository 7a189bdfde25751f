/* SPDX-License-Identifier: MIT */
/* vgg.c - VGG (Simonyan and Zisserman, 2014), with or without batch norm, with torchvision's names.
 *
 * Small images: the head is a single layer behind the last pooling.
 */
#include <stdio.h>

#include "model/net.h"

/* Convolutions between two poolings, and their channels. */
static const int64_t channels[5] = {64, 128, 256, 512, 512};

/* A convolution with what belongs to it is a block; *at: number of the next module of `features`. */
static int conv(nami_net *n, int x, int64_t out, int *at, bool pools)
{
    char name[NAMI_NET_NAME], block[32];
    const bool norm = n->options->batch_norm;
    (void)snprintf(block, sizeof block, "features.%d", *at);
    (void)snprintf(name, sizeof name, "features.%d", (*at)++);
    x = nami_net_conv(n, x, name, out, nami_net_square(3, 1, 1), 1, true);
    if (norm) {
        (void)snprintf(name, sizeof name, "features.%d", (*at)++);
        x = nami_net_batch_norm(n, x, name, true);
    } else {
        x = nami_net_unary(n, x, NAMI_RELU);
    }
    *at += 1;
    if (pools) {
        x = nami_net_pool(n, x, true, nami_net_square(2, 2, 0));
        *at += 1;
    }
    nami_net_block(n, block);
    return x;
}

static int hidden(nami_net *n, int x, const char *linear, const char *dropout)
{
    x = nami_net_linear(n, x, linear, 4096);
    x = nami_net_unary(n, x, NAMI_RELU);
    x = nami_net_dropout(n, x, dropout);
    nami_net_block(n, linear);
    return x;
}

static void make(nami_net *n, const nami_model_options *o, const int convs[5])
{
    int x = 0, at = 0;
    for (int part = 0; part < 5; part++)
        for (int i = 0; i < convs[part]; i++)
            x = conv(n, x, channels[part], &at, i + 1 == convs[part]);
    x = nami_net_adapt(n, x, o->stem == 1 ? 1 : 7);
    x = nami_net_flatten(n, x);
    if (o->stem == 0) {
        x = hidden(n, x, "classifier.0", "classifier.2");
        x = hidden(n, x, "classifier.3", "classifier.5");
    }
    (void)nami_net_linear(n, x, o->stem == 0 ? "classifier.6" : "classifier",
                          o->classes);
    nami_net_block(n, "head");
}

static void make_11(nami_net *n, const nami_model_options *o)
{
    make(n, o, (const int[]){1, 1, 2, 2, 2});
}

static void make_13(nami_net *n, const nami_model_options *o)
{
    make(n, o, (const int[]){2, 2, 2, 2, 2});
}

static void make_16(nami_net *n, const nami_model_options *o)
{
    make(n, o, (const int[]){2, 2, 3, 3, 3});
}

static void make_19(nami_net *n, const nami_model_options *o)
{
    make(n, o, (const int[]){2, 2, 4, 4, 4});
}

NAMI_NET_FAMILY(vgg11, make_11);
NAMI_NET_FAMILY(vgg13, make_13);
NAMI_NET_FAMILY(vgg16, make_16);
NAMI_NET_FAMILY(vgg19, make_19);
