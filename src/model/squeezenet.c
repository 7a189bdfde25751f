/* SPDX-License-Identifier: MIT */
/* squeezenet.c - SqueezeNet 1.1 (Iandola et al., 2016), with torchvision's names.
 *
 * A fire module is a block. Small images: the first convolution has a border and stride 1.
 */
#include <stdio.h>

#include "model/net.h"

static int conv(nami_net *n, int x, const char *prefix, const char *name, int64_t out,
                nami_net_window w)
{
    char full[NAMI_NET_NAME];
    x = nami_net_conv(n, x, nami_net_name(full, prefix, name), out, w, 1, true);
    return nami_net_unary(n, x, NAMI_RELU);
}

/* Few channels, then `expand` of 1x1 and as many of 3x3 side by side; pooled where `pools`. */
static int fire(nami_net *n, int x, int index, int64_t squeeze, int64_t expand,
                bool pools)
{
    char prefix[32];
    (void)snprintf(prefix, sizeof prefix, "features.%d", index);
    x = conv(n, x, prefix, "squeeze", squeeze, nami_net_square(1, 1, 0));
    const int one = conv(n, x, prefix, "expand1x1", expand, nami_net_square(1, 1, 0));
    const int three = conv(n, x, prefix, "expand3x3", expand, nami_net_square(3, 1, 1));
    x = nami_net_concat(n, one, three);
    if (pools)
        x = nami_net_pool_ceil(n, x, nami_net_square(3, 2, 0));
    nami_net_block(n, prefix);
    return x;
}

static void make(nami_net *n, const nami_model_options *o)
{
    const nami_net_window first =
        o->stem == 1 ? nami_net_square(3, 1, 1) : nami_net_square(3, 2, 0);
    int x = conv(n, 0, "features", "0", 64, first);
    x = nami_net_pool_ceil(n, x, nami_net_square(3, 2, 0));
    nami_net_block(n, "features.0");
    x = fire(n, x, 3, 16, 64, false);
    x = fire(n, x, 4, 16, 64, true);
    x = fire(n, x, 6, 32, 128, false);
    x = fire(n, x, 7, 32, 128, true);
    x = fire(n, x, 9, 48, 192, false);
    x = fire(n, x, 10, 48, 192, false);
    x = fire(n, x, 11, 64, 256, false);
    x = fire(n, x, 12, 64, 256, false);
    x = nami_net_dropout(n, x, "classifier.0");
    x = conv(n, x, "classifier", "1", o->classes, nami_net_square(1, 1, 0));
    x = nami_net_global_pool(n, x);
    (void)nami_net_flatten(n, x);
    nami_net_block(n, "head");
}

NAMI_NET_FAMILY(squeezenet, make);
