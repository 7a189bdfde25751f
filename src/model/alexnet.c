/* SPDX-License-Identifier: MIT */
/* alexnet.c - AlexNet, the variant of Krizhevsky, "One weird trick" (2014), with torchvision's names.
 *
 * Small images: the first convolution is 3x3 with stride 1, the head a single layer.
 */
#include <stdio.h>

#include "model/net.h"

static int conv(nami_net *n, int x, const char *name, int64_t out, nami_net_window w)
{
    x = nami_net_conv(n, x, name, out, w, 1, true);
    return nami_net_unary(n, x, NAMI_RELU);
}

static void features(nami_net *n, bool small)
{
    const nami_net_window first =
        small ? nami_net_square(3, 1, 1) : nami_net_square(11, 4, 2);
    const nami_net_window shrink = nami_net_square(3, 2, 0);
    int x = conv(n, 0, "features.0", 64, first);
    x = nami_net_pool(n, x, true, shrink);
    nami_net_block(n, "conv1");
    x = conv(n, x, "features.3", 192, nami_net_square(5, 1, 2));
    x = nami_net_pool(n, x, true, shrink);
    nami_net_block(n, "conv2");
    x = conv(n, x, "features.6", 384, nami_net_square(3, 1, 1));
    nami_net_block(n, "conv3");
    x = conv(n, x, "features.8", 256, nami_net_square(3, 1, 1));
    nami_net_block(n, "conv4");
    x = conv(n, x, "features.10", 256, nami_net_square(3, 1, 1));
    (void)nami_net_pool(n, x, true, shrink);
    nami_net_block(n, "conv5");
}

static void make(nami_net *n, const nami_model_options *o)
{
    const bool small = o->stem == 1;
    features(n, small);
    int x = nami_net_adapt(n, n->layers - 1, small ? 1 : 6);
    x = nami_net_flatten(n, x);
    if (!small) {
        x = nami_net_dropout(n, x, "classifier.0");
        x = nami_net_linear(n, x, "classifier.1", 4096);
        x = nami_net_unary(n, x, NAMI_RELU);
        nami_net_block(n, "fc1");
        x = nami_net_dropout(n, x, "classifier.3");
        x = nami_net_linear(n, x, "classifier.4", 4096);
        x = nami_net_unary(n, x, NAMI_RELU);
        nami_net_block(n, "fc2");
    }
    (void)nami_net_linear(n, x, small ? "classifier" : "classifier.6", o->classes);
    nami_net_block(n, "head");
}

NAMI_NET_FAMILY(alexnet, make);
