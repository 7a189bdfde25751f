/* SPDX-License-Identifier: MIT */
/* transformer.c - what transformers with pre-norm have in common: their chain of blocks.
 *
 * Blocks: 0 embedding; 2l+1 attention and 2l+2 MLP half-layer of layer l; 2L+1 final norm, head and loss.
 */
#include <stdio.h>

#include "model/family.h"

nami_status nami_transformer_check(const nami_model_options *o)
{
    if (o->layers < 1 || o->heads < 1 || o->context < 1)
        return nami_fail(NAMI_EINPUT,
                         "model.layers, heads and context must be at least 1");
    if (o->width < 1 || o->width % o->heads != 0)
        return nami_fail(NAMI_EINPUT,
                         "model.width = %lld is not a multiple of model.heads = %lld",
                         (long long)o->width, (long long)o->heads);
    if (o->width > INT64_C(1) << 20)
        return nami_fail(NAMI_EINPUT, "model.width = %lld is above 1048576",
                         (long long)o->width);
    return NAMI_OK;
}

nami_status nami_transformer_check_inner(int64_t inner)
{
    if (inner > INT64_C(1) << 22)
        return nami_fail(NAMI_EINPUT, "model.mlp_width = %lld is above 4194304",
                         (long long)inner);
    return NAMI_OK;
}

int nami_transformer_blocks(const nami_model_options *o)
{
    return 2 * (int)o->layers + 2;
}

void nami_transformer_block_name(const nami_model *m, int block, char buf[32])
{
    if (block == 0)
        (void)snprintf(buf, 32, "embedding");
    else if (block == m->blocks - 1)
        (void)snprintf(buf, 32, "head");
    else
        (void)snprintf(buf, 32, "%d.%s", (block - 1) / 2,
                       block % 2 ? "attention" : "mlp");
}
