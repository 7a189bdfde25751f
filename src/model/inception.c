/* SPDX-License-Identifier: MIT */
/* inception.c - Inception v3 (Szegedy et al., 2015) without the auxiliary head, with torchvision's names.
 *
 * A Mixed module is a block.
 */
#include <stdio.h>

#include "model/net.h"

static const nami_net_window one = {1, 1, 1, 0, 0}, three = {3, 3, 1, 1, 1},
                             five = {5, 5, 1, 2, 2}, halves = {3, 3, 2, 0, 0},
                             row7 = {1, 7, 1, 0, 3}, column7 = {7, 1, 1, 3, 0},
                             row3 = {1, 3, 1, 0, 1}, column3 = {3, 1, 1, 1, 0};

/* PREFIX.NAME.conv, PREFIX.NAME.bn, ReLU. */
static int conv(nami_net *n, int x, const char *prefix, const char *name, int64_t out,
                nami_net_window w)
{
    char module[NAMI_NET_NAME], full[NAMI_NET_NAME];
    (void)nami_net_name(module, prefix, name);
    x = nami_net_conv(n, x, nami_net_name(full, module, "conv"), out, w, 1, false);
    return nami_net_batch_norm(n, x, nami_net_name(full, module, "bn"), true);
}

/* A mean over 3x3, then 1x1. */
static int pooled(nami_net *n, int x, const char *m, int64_t out)
{
    return conv(n, nami_net_pool(n, x, false, three), m, "branch_pool", out, one);
}

static int join(nami_net *n, const char *name, const int *branch, int branches)
{
    int x = branch[0];
    for (int i = 1; i < branches; i++)
        x = nami_net_concat(n, x, branch[i]);
    nami_net_block(n, name);
    return x;
}

static int module_a(nami_net *n, int x, const char *m, int64_t pool)
{
    int b[4];
    b[0] = conv(n, x, m, "branch1x1", 64, one);
    b[1] = conv(n, x, m, "branch5x5_1", 48, one);
    b[1] = conv(n, b[1], m, "branch5x5_2", 64, five);
    b[2] = conv(n, x, m, "branch3x3dbl_1", 64, one);
    b[2] = conv(n, b[2], m, "branch3x3dbl_2", 96, three);
    b[2] = conv(n, b[2], m, "branch3x3dbl_3", 96, three);
    b[3] = pooled(n, x, m, pool);
    return join(n, m, b, 4);
}

static int module_b(nami_net *n, int x, const char *m)
{
    int b[3];
    b[0] = conv(n, x, m, "branch3x3", 384, halves);
    b[1] = conv(n, x, m, "branch3x3dbl_1", 64, one);
    b[1] = conv(n, b[1], m, "branch3x3dbl_2", 96, three);
    b[1] = conv(n, b[1], m, "branch3x3dbl_3", 96, halves);
    b[2] = nami_net_pool(n, x, true, halves);
    return join(n, m, b, 3);
}

static int module_c(nami_net *n, int x, const char *m, int64_t c)
{
    int b[4];
    b[0] = conv(n, x, m, "branch1x1", 192, one);
    b[1] = conv(n, x, m, "branch7x7_1", c, one);
    b[1] = conv(n, b[1], m, "branch7x7_2", c, row7);
    b[1] = conv(n, b[1], m, "branch7x7_3", 192, column7);
    b[2] = conv(n, x, m, "branch7x7dbl_1", c, one);
    b[2] = conv(n, b[2], m, "branch7x7dbl_2", c, column7);
    b[2] = conv(n, b[2], m, "branch7x7dbl_3", c, row7);
    b[2] = conv(n, b[2], m, "branch7x7dbl_4", c, column7);
    b[2] = conv(n, b[2], m, "branch7x7dbl_5", 192, row7);
    b[3] = pooled(n, x, m, 192);
    return join(n, m, b, 4);
}

static int module_d(nami_net *n, int x, const char *m)
{
    int b[3];
    b[0] = conv(n, x, m, "branch3x3_1", 192, one);
    b[0] = conv(n, b[0], m, "branch3x3_2", 320, halves);
    b[1] = conv(n, x, m, "branch7x7x3_1", 192, one);
    b[1] = conv(n, b[1], m, "branch7x7x3_2", 192, row7);
    b[1] = conv(n, b[1], m, "branch7x7x3_3", 192, column7);
    b[1] = conv(n, b[1], m, "branch7x7x3_4", 192, halves);
    b[2] = nami_net_pool(n, x, true, halves);
    return join(n, m, b, 3);
}

static int module_e(nami_net *n, int x, const char *m)
{
    int b[6], t;
    b[0] = conv(n, x, m, "branch1x1", 320, one);
    t = conv(n, x, m, "branch3x3_1", 384, one);
    b[1] = conv(n, t, m, "branch3x3_2a", 384, row3);
    b[2] = conv(n, t, m, "branch3x3_2b", 384, column3);
    t = conv(n, x, m, "branch3x3dbl_1", 448, one);
    t = conv(n, t, m, "branch3x3dbl_2", 384, three);
    b[3] = conv(n, t, m, "branch3x3dbl_3a", 384, row3);
    b[4] = conv(n, t, m, "branch3x3dbl_3b", 384, column3);
    b[5] = pooled(n, x, m, 192);
    return join(n, m, b, 6);
}

static int stem(nami_net *n)
{
    const nami_net_window bare = nami_net_square(3, 1, 0);
    int x = conv(n, 0, "", "Conv2d_1a_3x3", 32, halves);
    x = conv(n, x, "", "Conv2d_2a_3x3", 32, bare);
    nami_net_block(n, "Conv2d_2a_3x3");
    x = conv(n, x, "", "Conv2d_2b_3x3", 64, three);
    x = nami_net_pool(n, x, true, halves);
    nami_net_block(n, "Conv2d_2b_3x3");
    x = conv(n, x, "", "Conv2d_3b_1x1", 80, one);
    x = conv(n, x, "", "Conv2d_4a_3x3", 192, bare);
    x = nami_net_pool(n, x, true, halves);
    nami_net_block(n, "Conv2d_4a_3x3");
    return x;
}

static void make(nami_net *n, const nami_model_options *o)
{
    static const char *const c[] = {"Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"};
    static const int64_t inner[] = {128, 160, 160, 192};
    if (o->stem == 1) {
        n->status = nami_fail(
            NAMI_EINPUT, "model.stem = small: there is no inception for small images");
        return;
    }
    n->eps = 1e-3;
    int x = stem(n);
    x = module_a(n, x, "Mixed_5b", 32);
    x = module_a(n, x, "Mixed_5c", 64);
    x = module_a(n, x, "Mixed_5d", 64);
    x = module_b(n, x, "Mixed_6a");
    for (int i = 0; i < 4; i++)
        x = module_c(n, x, c[i], inner[i]);
    x = module_d(n, x, "Mixed_7a");
    x = module_e(n, x, "Mixed_7b");
    x = module_e(n, x, "Mixed_7c");
    x = nami_net_global_pool(n, x);
    x = nami_net_flatten(n, x);
    x = nami_net_dropout(n, x, "dropout");
    (void)nami_net_linear(n, x, "fc", o->classes);
    nami_net_block(n, "head");
}

NAMI_NET_FAMILY(inception, make);
