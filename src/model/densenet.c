/* SPDX-License-Identifier: MIT */
/* densenet.c - DenseNet-121 (Huang et al., 2016), with torchvision's names.
 *
 * Each dense layer and each transition is a block; what crosses a cut are all features so far. Small images: the first
 * convolution is 3x3 with stride 1, and no pooling follows.
 */
#include <stdio.h>

#include "model/net.h"

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH, FIRST = 64, PARTS = 4 };

static const int layers[PARTS] = {6, 12, 24, 16};

static int stem(nami_net *n, bool small)
{
    const nami_net_window w =
        small ? nami_net_square(3, 1, 1) : nami_net_square(7, 2, 3);
    int x = nami_net_conv(n, 0, "features.conv0", FIRST, w, 1, false);
    x = nami_net_batch_norm(n, x, "features.norm0", true);
    if (!small)
        x = nami_net_pool(n, x, true, nami_net_square(3, 2, 1));
    nami_net_block(n, "stem");
    return x;
}

static int dense_layer(nami_net *n, int x, int part, int i)
{
    char prefix[64], name[NAMI_NET_NAME];
    (void)snprintf(prefix, sizeof prefix, "features.denseblock%d.denselayer%d", part,
                   i);
    int y = nami_net_batch_norm(n, x, nami_net_name(name, prefix, "norm1"), true);
    y = nami_net_conv(n, y, nami_net_name(name, prefix, "conv1"), BOTTLENECK,
                      nami_net_square(1, 1, 0), 1, false);
    y = nami_net_batch_norm(n, y, nami_net_name(name, prefix, "norm2"), true);
    y = nami_net_conv(n, y, nami_net_name(name, prefix, "conv2"), GROWTH,
                      nami_net_square(3, 1, 1), 1, false);
    x = nami_net_concat(n, x, y);
    (void)snprintf(name, sizeof name, "dense %d.%d", part, i);
    nami_net_block(n, name);
    return x;
}

/* Half the channels, half the height and width. */
static int transition(nami_net *n, int x, int part, int64_t channels)
{
    char prefix[48], name[NAMI_NET_NAME];
    (void)snprintf(prefix, sizeof prefix, "features.transition%d", part);
    x = nami_net_batch_norm(n, x, nami_net_name(name, prefix, "norm"), true);
    x = nami_net_conv(n, x, nami_net_name(name, prefix, "conv"), channels / 2,
                      nami_net_square(1, 1, 0), 1, false);
    x = nami_net_pool(n, x, false, nami_net_square(2, 2, 0));
    nami_net_block(n, prefix);
    return x;
}

static void make(nami_net *n, const nami_model_options *o)
{
    int64_t channels = FIRST;
    int x = stem(n, o->stem == 1);
    for (int part = 0; part < PARTS; part++) {
        for (int i = 0; i < layers[part]; i++)
            x = dense_layer(n, x, part + 1, i + 1);
        channels += (int64_t)GROWTH * layers[part];
        if (part + 1 < PARTS)
            x = transition(n, x, part + 1, channels);
        channels = part + 1 < PARTS ? channels / 2 : channels;
    }
    x = nami_net_batch_norm(n, x, "features.norm5", true);
    x = nami_net_global_pool(n, x);
    x = nami_net_flatten(n, x);
    (void)nami_net_linear(n, x, "classifier", o->classes);
    nami_net_block(n, "head");
}

NAMI_NET_FAMILY(densenet121, make);
