/* SPDX-License-Identifier: MIT */
/* synthetic.c - blocks that take set times and compute almost nothing: to run any pipeline on few cores.
 *
 * Each of the `layers` blocks is one wait operator y = x + w; the first begins with an embedding, the last ends
 * in the loss, for which the boundary's width is the vocabulary. A boundary is context x width numbers a sample.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "model/family.h"

/* The next duration of a list separated by blanks or commas, as text in buf; returns what follows it. */
static const char *next_word(const char *text, char buf[64])
{
    text += strspn(text, " ,\t");
    const size_t length = strcspn(text, " ,\t");
    const size_t kept = length < 63 ? length : 63;
    memcpy(buf, text, kept);
    buf[kept] = '\0';
    return text + length;
}

/* Seconds of each block from the option `key`: one duration for all, or one for each. out [layers], or NULL to check. */
static nami_status read_times(const char *key, const char *text, int64_t layers,
                              double *out)
{
    char word[64];
    double seconds = 0;
    int64_t count = 0;
    for (const char *p = next_word(text ? text : "", word); word[0];
         p = next_word(p, word)) {
        if (!nami_parse_duration(word, &seconds) || seconds > 3600)
            return nami_fail(NAMI_EINPUT,
                             "synthetic.%s: '%s' is not a duration of at most an hour, "
                             "as 100ms or 0.1",
                             key, word);
        if (out && count < layers)
            out[count] = seconds;
        count++;
    }
    if (count != 1 && count != layers)
        return nami_fail(NAMI_EINPUT,
                         "synthetic.%s has %lld times, expected one, or one for each "
                         "of model.layers = %lld blocks",
                         key, (long long)count, (long long)layers);
    for (int64_t i = count; out && i < layers; i++)
        out[i] = seconds;
    return NAMI_OK;
}

static nami_status check(const nami_model_options *o)
{
    if (o->layers < 1 || o->width < 2 || o->context < 1 || o->synthetic_saved < 0)
        return nami_fail(NAMI_EINPUT,
                         "model.layers and context must be at least 1 and width at "
                         "least 2 for family synthetic");
    if (o->vocabulary != o->width)
        return nami_fail(NAMI_EINPUT,
                         "model.vocabulary = %lld, but the vocabulary of family "
                         "synthetic is its width, %lld",
                         (long long)o->vocabulary, (long long)o->width);
    NAMI_TRY(read_times("forward", o->synthetic_forward, o->layers, NULL));
    NAMI_TRY(read_times("backward_input", o->synthetic_input, o->layers, NULL));
    return read_times("backward_weight", o->synthetic_weight, o->layers, NULL);
}

static int blocks(const nami_model_options *o)
{
    return (int)o->layers;
}

static void parameters(nami_model *m)
{
    char name[32];
    const nami_model_options *o = &m->options;
    const size_t n = (size_t)o->layers;
    m->seconds = nami_calloc(NAMI_MEM_OTHER, 3 * n, sizeof *m->seconds);
    (void)read_times("", o->synthetic_forward, o->layers, m->seconds);
    (void)read_times("", o->synthetic_input, o->layers, m->seconds + n);
    (void)read_times("", o->synthetic_weight, o->layers, m->seconds + 2 * n);
    nami_model_param(m, 0, "wte.weight", nami_shape_of(o->vocabulary, o->width, 0, 0),
                     NAMI_INIT_NORMAL, 1);
    nami_model_param(m, 0, "wpe.weight", nami_shape_of(o->context, o->width, 0, 0),
                     NAMI_INIT_NORMAL, 1);
    for (int64_t l = 0; l < o->layers; l++) {
        (void)snprintf(name, sizeof name, "%lld.weight", (long long)l);
        nami_model_param(m, (int)l, name, nami_shape_of(1, 0, 0, 0), NAMI_INIT_NORMAL,
                         0.5);
    }
}

static void block_name(const nami_model *m, int block, char buf[32])
{
    (void)m;
    (void)snprintf(buf, 32, "block %d", block);
}

double nami_model_time_share(const nami_model *m, int64_t samples)
{
    const int64_t whole = m->options.synthetic_samples;
    return whole > 0 ? (double)samples / (double)whole : 1;
}

/* The wait of this block. */
static int build_wait(const nami_block_build *b, int x)
{
    char name[32];
    const nami_model *m = b->model;
    (void)snprintf(name, sizeof name, "%d.weight", b->block);
    const int param = nami_model_find(m, name);
    const int use = nami_graph_use(b->graph, param, m->param[param].shape);
    const int slices = nami_graph_slices(b->graph); /* each an equal share */
    const int64_t words =
        m->options.synthetic_saved / (b->wide == NAMI_F64 ? 8 : 4) / slices;
    const int saved = words > 0 ? nami_graph_value(b->graph, b->wide,
                                                   nami_shape_of(b->batch, words, 0, 0))
                                : -1;
    const int out = nami_graph_value(
        b->graph, b->act, nami_shape_of(b->batch, b->time, m->options.width, 0));
    nami_node *n = nami_graph_node(b->graph, &nami_op_wait);
    n->in[0] = x;
    n->param[0] = use;
    n->saved[0] = saved;
    const double share = nami_model_time_share(m, b->batch) / slices;
    for (int pass = 0; pass < 3; pass++)
        n->whole[pass] = llround(1e9 * share * m->seconds[pass * m->blocks + b->block]);
    return n->out = out;
}

static int build(const nami_block_build *b, int x)
{
    if (b->block == 0)
        x = nami_build_embed(b, x, "wte", "wpe");
    x = build_wait(b, x);
    return b->block == b->model->blocks - 1 ? nami_build_loss(b, x) : x;
}

/* Nanoseconds of a third of all passes: cuts make stages of equal time. */
static double flops(const nami_model *m, int block, int64_t time)
{
    double sum = 0;
    (void)time;
    for (int pass = 0; pass < 3; pass++)
        sum += m->seconds[pass * m->blocks + block];
    return 1e9 * sum / 3;
}

const nami_family nami_family_synthetic = {.name = "synthetic",
                                           .made_up = true,
                                           .unread = "heads tied bias dropout",
                                           .causal = true,
                                           .check = check,
                                           .blocks = blocks,
                                           .parameters = parameters,
                                           .block_name = block_name,
                                           .build = build,
                                           .flops = flops};
