/* SPDX-License-Identifier: MIT */
/* template.c - the smallest family, to copy from: embedding, `layers` linear layers with GELU, head.
 *
 * Not in families.c, so no deck can choose it; tests build and train it. To add a family of your own: copy this
 * file, rename nami_family_template, add the file to Makefile.inc and a line to families.c.
 */
#include <stdio.h>

#include "model/family.h"

/* Say which option is wrong, with its value and what was expected. */
static nami_status check(const nami_model_options *o)
{
    if (o->layers < 1 || o->width < 1)
        return nami_fail(
            NAMI_EINPUT,
            "model.layers = %lld and model.width = %lld must be at least 1",
            (long long)o->layers, (long long)o->width);
    return NAMI_OK;
}

/* A block is what a cut may not divide. */
static int blocks(const nami_model_options *o)
{
    return (int)o->layers + 2;
}

/* The catalogue, in model order: checkpoints, weight decay and initial values follow it. */
static void parameters(nami_model *m)
{
    char name[32];
    int64_t c = m->options.width, v = m->options.vocabulary;
    nami_model_param(m, 0, "wte.weight", nami_shape_of(v, c, 0, 0), NAMI_INIT_NORMAL,
                     1);
    nami_model_param(m, 0, "wpe.weight", nami_shape_of(m->options.context, c, 0, 0),
                     NAMI_INIT_NORMAL, 1);
    for (int64_t l = 0; l < m->options.layers; l++) {
        (void)snprintf(name, sizeof name, "%lld.weight", (long long)l);
        nami_model_param(m, 1 + (int)l, name, nami_shape_of(c, c, 0, 0),
                         NAMI_INIT_NORMAL, 0.5);
        (void)snprintf(name, sizeof name, "%lld.bias", (long long)l);
        nami_model_param(m, 1 + (int)l, name, nami_shape_of(c, 0, 0, 0), NAMI_INIT_ZERO,
                         0);
    }
    nami_model_param(m, m->blocks - 1, "head.weight", nami_shape_of(v, c, 0, 0),
                     NAMI_INIT_NORMAL, 0.5);
}

static void block_name(const nami_model *m, int block, char buf[32])
{
    (void)snprintf(buf, 32,
                   block == 0              ? "embedding"
                   : block < m->blocks - 1 ? "layer %d"
                                           : "head",
                   block - 1);
}

/* The operators of one block; what comes in is the block before's output, what is returned the next's input. */
static int build(const nami_block_build *b, int x)
{
    char name[32];
    if (b->block == 0)
        return nami_build_embed(b, x, "wte", "wpe");
    if (b->block == b->model->blocks - 1) {
        return nami_build_loss(b, nami_build_linear(b, x, "head"));
    }
    (void)snprintf(name, sizeof name, "%d", b->block - 1);
    return nami_build_gelu(b, nami_build_linear(b, x, name));
}

/* Work of one sample; only ratios between blocks matter for cuts. */
static double flops(const nami_model *m, int block, int64_t time)
{
    double t = (double)time, c = (double)m->options.width;
    if (block == 0)
        return t * c;
    return 2 * t * c * (block < m->blocks - 1 ? c : (double)m->options.vocabulary);
}

const nami_family nami_family_template = {.name = "template",
                                          .check = check,
                                          .blocks = blocks,
                                          .parameters = parameters,
                                          .block_name = block_name,
                                          .build = build,
                                          .flops = flops};
