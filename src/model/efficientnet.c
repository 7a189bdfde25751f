/* SPDX-License-Identifier: MIT */
/* efficientnet.c - EfficientNetV2-S (Tan and Le, 2021), with torchvision's names.
 *
 * An MBConv or fused MBConv is a block. Stochastic depth grows from 0 to train.dropout (0.2 in the paper) over the blocks.
 * Small images: the first two strides of 2 are 1.
 */
#include <stdio.h>

#include "model/net.h"

/* Table 4 of the paper: expansion, stride of the first, channels, repeats. */
static const struct {
    bool fused;
    int64_t expand, stride, out, repeats;
} rows[] = {{true, 1, 1, 24, 2},   {true, 4, 2, 48, 4},   {true, 4, 2, 64, 4},
            {false, 4, 2, 128, 6}, {false, 6, 1, 160, 9}, {false, 6, 2, 256, 15}};

enum { ROWS = sizeof rows / sizeof rows[0], FIRST = 24, LAST = 1280, REPEATS = 40 };

/* PREFIX.0 convolution, PREFIX.1 norm, SiLU where `acts`. */
static int conv(nami_net *n, int x, const char *prefix, int64_t out, nami_net_window w,
                int64_t groups, bool acts)
{
    char name[NAMI_NET_NAME];
    x = nami_net_conv(n, x, nami_net_name(name, prefix, "0"), out, w, groups, false);
    x = nami_net_batch_norm(n, x, nami_net_name(name, prefix, "1"), false);
    return acts ? nami_net_unary(n, x, NAMI_SILU) : x;
}

/* Squeeze and excitation: scale channels by what their means say. */
static int squeeze(nami_net *n, int x, const char *prefix, int64_t squeezed,
                   int64_t channels)
{
    char name[NAMI_NET_NAME];
    const nami_net_window one = nami_net_square(1, 1, 0);
    int s = nami_net_global_pool(n, x);
    s = nami_net_conv(n, s, nami_net_name(name, prefix, "fc1"), squeezed, one, 1, true);
    s = nami_net_unary(n, s, NAMI_SILU);
    s = nami_net_conv(n, s, nami_net_name(name, prefix, "fc2"), channels, one, 1, true);
    s = nami_net_unary(n, s, NAMI_SIGMOID);
    return nami_net_excite(n, x, s);
}

/* "PREFIX.block.I" */
static const char *part(char buf[NAMI_NET_NAME], const char *prefix, int i)
{
    (void)snprintf(buf, NAMI_NET_NAME, "%.40s.block.%d", prefix, i);
    return buf;
}

static int fused(nami_net *n, int x, const char *prefix, int64_t expand, int64_t in,
                 int64_t out, int64_t stride)
{
    char name[NAMI_NET_NAME];
    const nami_net_window w = nami_net_square(3, stride, 1);
    if (expand == 1)
        return conv(n, x, part(name, prefix, 0), out, w, 1, true);
    x = conv(n, x, part(name, prefix, 0), expand * in, w, 1, true);
    return conv(n, x, part(name, prefix, 1), out, nami_net_square(1, 1, 0), 1, false);
}

static int mbconv(nami_net *n, int x, const char *prefix, int64_t expand, int64_t in,
                  int64_t out, int64_t stride)
{
    char name[NAMI_NET_NAME];
    const int64_t wide = expand * in;
    const nami_net_window one = nami_net_square(1, 1, 0);
    x = conv(n, x, part(name, prefix, 0), wide, one, 1, true);
    x = conv(n, x, part(name, prefix, 1), wide, nami_net_square(3, stride, 1), wide,
             true);
    x = squeeze(n, x, part(name, prefix, 2), in / 4, wide);
    return conv(n, x, part(name, prefix, 3), out, one, 1, false);
}

/* Block `i` of row `r`, number `k` of all. */
static int block(nami_net *n, int x, int r, int64_t i, int k, int64_t stride)
{
    char prefix[32];
    if (n->status != NAMI_OK)
        return 0;
    const int64_t in = n->layer[x].shape.dim[3], out = rows[r].out;
    (void)snprintf(prefix, sizeof prefix, "features.%d.%d", r + 1, (int)i);
    int y =
        (rows[r].fused ? fused : mbconv)(n, x, prefix, rows[r].expand, in, out, stride);
    if (stride == 1 && in == out)
        y = nami_net_add(n, x, y, (double)k / REPEATS, prefix);
    nami_net_block(n, prefix);
    return y;
}

static void make(nami_net *n, const nami_model_options *o)
{
    int k = 0, strides = o->stem == 1 ? 2 : 0; /* strides of 2 still to be 1 */
    n->eps = 1e-3;
    int x = conv(n, 0, "features.0", FIRST,
                 nami_net_square(3, strides-- > 0 ? 1 : 2, 1), 1, true);
    nami_net_block(n, "features.0");
    for (int r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < rows[r].repeats; i++) {
            int64_t stride = i == 0 ? rows[r].stride : 1;
            if (stride == 2 && strides-- > 0)
                stride = 1;
            x = block(n, x, r, i, k++, stride);
        }
    x = conv(n, x, "features.7", LAST, nami_net_square(1, 1, 0), 1, true);
    x = nami_net_global_pool(n, x);
    x = nami_net_flatten(n, x);
    x = nami_net_dropout(n, x, "classifier.0");
    (void)nami_net_linear(n, x, "classifier.1", o->classes);
    nami_net_block(n, "head");
}

NAMI_NET_FAMILY(efficientnetv2, make);
