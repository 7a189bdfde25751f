/* SPDX-License-Identifier: MIT */
/* pad.c - the published ResNets for CIFAR have no projections: a skip takes every second pixel, and zeros around its
 * channels (option A of He et al., 2015, 4.2). A projection by 0 and 1 and a norm that changes nothing do the same.
 */
#include <string.h>

#include "exchange/inner.h"

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* 1 where an output is an input. */
static void fill_matrix(int64_t out, int64_t in, float *data)
{
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            data[o * in + i] = o == i + (out - in) / 2 ? 1.0F : 0.0F;
}

void nami_exchange_pad(const nami_param *param, float *data)
{
    const double eps = 1e-5; /* of the norm: variance + eps is 1 */
    const int64_t *dim = param->shape.dim, count = nami_shape_count(&param->shape);
    float value = 0;
    if (ends_with(param->name, ".0.weight")) {
        fill_matrix(dim[0], dim[1], data);
        return;
    }
    if (ends_with(param->name, ".1.weight"))
        value = 1;
    else if (ends_with(param->name, ".running_var"))
        value = (float)(1 - eps);
    for (int64_t i = 0; i < count; i++)
        data[i] = value;
}
