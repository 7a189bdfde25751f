/* SPDX-License-Identifier: MIT */
/* mlp.c - layers of numbers: `layers` hidden ones of `width` with ReLU, then one for each class.
 *
 * Names are those of the model in PyTorch's quickstart, which has 2 x 512.
 */
#include <stdio.h>

#include "model/net.h"

static void make(nami_net *n, const nami_model_options *o)
{
    char name[NAMI_NET_NAME];
    int x = nami_net_flatten(n, 0);
    for (int64_t l = 0; l < o->layers; l++) {
        (void)snprintf(name, sizeof name, "linear_relu_stack.%lld", 2 * (long long)l);
        x = nami_net_linear(n, x, name, o->width);
        x = nami_net_unary(n, x, NAMI_RELU);
        (void)snprintf(name, sizeof name, "hidden %lld", (long long)l);
        nami_net_block(n, name);
    }
    (void)snprintf(name, sizeof name, "linear_relu_stack.%lld",
                   2 * (long long)o->layers);
    (void)nami_net_linear(n, x, name, o->classes);
}

NAMI_NET_FAMILY_KEYS(mlp, make, "stem", "layers width");
