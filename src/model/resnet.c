/* SPDX-License-Identifier: MIT */
/* resnet.c - residual nets (He et al., 2015) and ResNeXt (Xie et al., 2016), with torchvision's names.
 *
 * A residual block is a block. resnet20 to resnet110 are the paper's nets for CIFAR with projections where the shape changes. Small
 * images: the first convolution is 3x3 with stride 1, and no pooling follows.
 */
#include <stdio.h>

#include "model/net.h"

typedef struct resnet {
    int parts;           /* of equal width */
    int blocks[4];       /* in each part */
    int64_t width;       /* of the first part */
    bool bottleneck;     /* 1x1, 3x3, 1x1; else two 3x3 */
    int64_t groups;      /* of the 3x3 of a bottleneck */
    int64_t group_width; /* its channels a group in the first part */
    bool cifar;          /* stem of small images always */
} resnet;

/* Channels of what a block makes inside and gives out. */
typedef struct widths {
    int64_t inner, outer;
} widths;

static int conv_norm(nami_net *n, int x, const char *conv, const char *norm,
                     int64_t out, nami_net_window w, int64_t groups, bool relu)
{
    x = nami_net_conv(n, x, conv, out, w, groups, false);
    return nami_net_batch_norm(n, x, norm, relu);
}

/* conv`i` and bn`i` of the block `name`. */
static int step(nami_net *n, int x, const char *name, int i, int64_t out,
                nami_net_window w, int64_t groups, bool relu)
{
    char conv[NAMI_NET_NAME + 16], norm[NAMI_NET_NAME + 16];
    (void)snprintf(conv, sizeof conv, "%s.conv%d", name, i);
    (void)snprintf(norm, sizeof norm, "%s.bn%d", name, i);
    return conv_norm(n, x, conv, norm, out, w, groups, relu);
}

static int branch(nami_net *n, const resnet *r, int x, const char *name, widths c,
                  int64_t stride)
{
    if (!r->bottleneck) {
        x = step(n, x, name, 1, c.inner, nami_net_square(3, stride, 1), 1, true);
        return step(n, x, name, 2, c.outer, nami_net_square(3, 1, 1), 1, false);
    }
    x = step(n, x, name, 1, c.inner, nami_net_square(1, 1, 0), 1, true);
    x = step(n, x, name, 2, c.inner, nami_net_square(3, stride, 1), r->groups, true);
    return step(n, x, name, 3, c.outer, nami_net_square(1, 1, 0), 1, false);
}

/* The skip connection: the input, or its projection. */
static int shortcut(nami_net *n, int x, const char *name, int64_t outer, int64_t stride)
{
    char conv[NAMI_NET_NAME + 16], norm[NAMI_NET_NAME + 16];
    if (n->status != NAMI_OK || (n->layer[x].shape.dim[3] == outer && stride == 1))
        return x;
    (void)snprintf(conv, sizeof conv, "%s.downsample.0", name);
    (void)snprintf(norm, sizeof norm, "%s.downsample.1", name);
    return conv_norm(n, x, conv, norm, outer, nami_net_square(1, stride, 0), 1, false);
}

static int residual(nami_net *n, const resnet *r, int x, int part, int i)
{
    char name[32];
    const int64_t stride = part > 0 && i == 0 ? 2 : 1, times = (int64_t)1 << part;
    const widths c = {r->bottleneck ? r->groups * r->group_width * times
                                    : r->width * times,
                      r->width * times * (r->bottleneck ? 4 : 1)};
    (void)snprintf(name, sizeof name, "layer%d.%d", part + 1, i);
    const int b = branch(n, r, x, name, c, stride);
    const int skip = shortcut(n, x, name, c.outer, stride);
    x = nami_net_add(n, skip, b, 0, name);
    x = nami_net_unary(n, x, NAMI_RELU);
    nami_net_block(n, name);
    return x;
}

static int stem(nami_net *n, const resnet *r, bool small)
{
    const nami_net_window w =
        small ? nami_net_square(3, 1, 1) : nami_net_square(7, 2, 3);
    int x = conv_norm(n, 0, "conv1", "bn1", r->width, w, 1, true);
    if (!small)
        x = nami_net_pool(n, x, true, nami_net_square(3, 2, 1));
    nami_net_block(n, "stem");
    return x;
}

static void make(nami_net *n, const nami_model_options *o, const resnet *r)
{
    int x = stem(n, r, r->cifar || o->stem == 1);
    for (int part = 0; part < r->parts; part++)
        for (int i = 0; i < r->blocks[part]; i++)
            x = residual(n, r, x, part, i);
    x = nami_net_global_pool(n, x);
    x = nami_net_flatten(n, x);
    (void)nami_net_linear(n, x, "fc", o->classes);
    nami_net_block(n, "head");
}

/* One family: its parts, and how they differ. */
#define RESNET(id, ...) RESNET_WITHOUT(id, NULL, __VA_ARGS__)
#define RESNET_WITHOUT(id, without, ...)                                               \
    static void make_##id(nami_net *n, const nami_model_options *o)                    \
    {                                                                                  \
        static const resnet r = {__VA_ARGS__};                                         \
        make(n, o, &r);                                                                \
    }                                                                                  \
    NAMI_NET_FAMILY_WITHOUT(id, make_##id, without)

/* Of CIFAR's images, with n blocks in each of three parts. */
#define CIFAR(id, n)                                                                   \
    RESNET_WITHOUT(id, "stem", .parts = 3, .blocks = {n, n, n}, .width = 16,           \
                   .cifar = true)

CIFAR(resnet20, 3);
CIFAR(resnet32, 5);
CIFAR(resnet44, 7);
CIFAR(resnet56, 9);
CIFAR(resnet110, 18);
RESNET(resnet18, .parts = 4, .blocks = {2, 2, 2, 2}, .width = 64);
RESNET(resnet34, .parts = 4, .blocks = {3, 4, 6, 3}, .width = 64);
RESNET(resnet50, .parts = 4, .blocks = {3, 4, 6, 3}, .width = 64, .bottleneck = true,
       .groups = 1, .group_width = 64);
RESNET(resnet101, .parts = 4, .blocks = {3, 4, 23, 3}, .width = 64, .bottleneck = true,
       .groups = 1, .group_width = 64);
RESNET(resnet152, .parts = 4, .blocks = {3, 8, 36, 3}, .width = 64, .bottleneck = true,
       .groups = 1, .group_width = 64);
RESNET(resnext50, .parts = 4, .blocks = {3, 4, 6, 3}, .width = 64, .bottleneck = true,
       .groups = 32, .group_width = 4);
