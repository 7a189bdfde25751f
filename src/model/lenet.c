/* SPDX-License-Identifier: MIT */
/* lenet.c - LeNet-5 (LeCun et al., 1998) with ReLU and maximum pooling, as PyTorch's tutorials have it.
 *
 * Images of 28 pixels get a border of 2, as in the paper; images of 32 have it.
 */
#include "model/net.h"

static void make(nami_net *n, const nami_model_options *o)
{
    const nami_net_window halves = nami_net_square(2, 2, 0);
    const int64_t border = o->image_height < 32 ? 2 : 0;
    int x = nami_net_conv(n, 0, "conv1", 6, nami_net_square(5, 1, border), 1, true);
    x = nami_net_unary(n, x, NAMI_RELU);
    x = nami_net_pool(n, x, true, halves);
    nami_net_block(n, "conv1");
    x = nami_net_conv(n, x, "conv2", 16, nami_net_square(5, 1, 0), 1, true);
    x = nami_net_unary(n, x, NAMI_RELU);
    x = nami_net_pool(n, x, true, halves);
    nami_net_block(n, "conv2");
    x = nami_net_flatten(n, x);
    x = nami_net_linear(n, x, "fc1", 120);
    x = nami_net_unary(n, x, NAMI_RELU);
    nami_net_block(n, "fc1");
    x = nami_net_linear(n, x, "fc2", 84);
    x = nami_net_unary(n, x, NAMI_RELU);
    nami_net_block(n, "fc2");
    (void)nami_net_linear(n, x, "fc3", o->classes);
    nami_net_block(n, "fc3");
}

NAMI_NET_FAMILY_WITHOUT(lenet, make, "stem");
