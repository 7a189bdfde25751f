/* SPDX-License-Identifier: MIT */
/* mobilenet.c - MobileNetV2 (Sandler et al., 2018), with torchvision's names.
 *
 * An inverted residual is a block. Small images: the first three strides of 2 are 1.
 */
#include <stdio.h>

#include "model/net.h"

/* Rows of table 2 of the paper: expansion, channels, repeats, stride of the first. */
static const struct {
    int64_t expand, out, repeats, stride;
} rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
            {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

enum { ROWS = sizeof rows / sizeof rows[0], FIRST = 32, LAST = 1280 };

/* PREFIX.0 convolution, PREFIX.1 norm, ReLU6. */
static int conv(nami_net *n, int x, const char *prefix, int64_t out, nami_net_window w,
                int64_t groups)
{
    char name[NAMI_NET_NAME];
    x = nami_net_conv(n, x, nami_net_name(name, prefix, "0"), out, w, groups, false);
    x = nami_net_batch_norm(n, x, nami_net_name(name, prefix, "1"), false);
    return nami_net_unary(n, x, NAMI_RELU6);
}

/* features.INDEX: expand, filter by channel, project. */
static int inverted(nami_net *n, int x, int index, int64_t expand, int64_t out,
                    int64_t stride)
{
    char prefix[32], name[NAMI_NET_NAME], block[32];
    int part = 0;
    if (n->status != NAMI_OK)
        return 0;
    const int64_t in = n->layer[x].shape.dim[3], wide = in * expand;
    int y = x;
    if (expand > 1) {
        (void)snprintf(prefix, sizeof prefix, "features.%d.conv.%d", index, part++);
        y = conv(n, y, prefix, wide, nami_net_square(1, 1, 0), 1);
    }
    (void)snprintf(prefix, sizeof prefix, "features.%d.conv.%d", index, part++);
    y = conv(n, y, prefix, wide, nami_net_square(3, stride, 1), wide);
    (void)snprintf(name, sizeof name, "features.%d.conv.%d", index, part++);
    y = nami_net_conv(n, y, name, out, nami_net_square(1, 1, 0), 1, false);
    (void)snprintf(name, sizeof name, "features.%d.conv.%d", index, part);
    y = nami_net_batch_norm(n, y, name, false);
    (void)snprintf(block, sizeof block, "features.%d", index);
    if (stride == 1 && in == out)
        y = nami_net_add(n, x, y, 0, block);
    nami_net_block(n, block);
    return y;
}

static void make(nami_net *n, const nami_model_options *o)
{
    char name[NAMI_NET_NAME];
    int index = 1, strides = o->stem == 1 ? 3 : 0; /* strides of 2 still to be 1 */
    int x = conv(n, 0, "features.0", FIRST,
                 nami_net_square(3, strides-- > 0 ? 1 : 2, 1), 1);
    nami_net_block(n, "features.0");
    for (int r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < rows[r].repeats; i++) {
            int64_t stride = i == 0 ? rows[r].stride : 1;
            if (stride == 2 && strides-- > 0)
                stride = 1;
            x = inverted(n, x, index++, rows[r].expand, rows[r].out, stride);
        }
    (void)snprintf(name, sizeof name, "features.%d", index);
    x = conv(n, x, name, LAST, nami_net_square(1, 1, 0), 1);
    x = nami_net_global_pool(n, x);
    x = nami_net_flatten(n, x);
    x = nami_net_dropout(n, x, "classifier.0");
    (void)nami_net_linear(n, x, "classifier.1", o->classes);
    nami_net_block(n, "head");
}

NAMI_NET_FAMILY(mobilenetv2, make);
