/* SPDX-License-Identifier: MIT */
/* graph.c - building a graph: values, uses of parameters, nodes. */
#include "graph/plan.h"

nami_graph *nami_graph_new(nami_backend *b, nami_dtype act, int64_t batch, int64_t time)
{
    NAMI_CHECK(b && batch > 0 && time > 0);
    nami_graph *g = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *g);
    g->backend = b;
    g->act = act;
    g->wide = act == NAMI_F64 ? NAMI_F64 : NAMI_F32;
    g->batch = batch;
    g->time = time;
    g->slices = 1;
    g->input = g->output = g->targets = g->side = -1;
    return g;
}

void nami_graph_free(nami_graph *g)
{
    if (!g)
        return;
    for (int w = 0; w < NAMI_WALKS; w++)
        nami_free(g->list[w].item);
    nami_free(g->value);
    nami_free(g->use);
    nami_free(g->node);
    nami_free(g->shape);
    nami_free(g->buffer);
    nami_free((void *)g->sums);
    nami_free(g);
}

void nami_graph_slice(nami_graph *g, int slices)
{
    NAMI_CHECK(slices >= 1 && g->nodes == 0);
    g->slices = slices;
}

int nami_graph_slices(const nami_graph *g)
{
    return g->slices;
}

void nami_graph_share(nami_graph *g, int64_t samples)
{
    NAMI_CHECK(samples > g->batch && !g->shape);
    g->together = samples;
}

int64_t nami_graph_shared(const nami_graph *g)
{
    int64_t most = 0;
    for (int w = 0; w < NAMI_WALKS; w++)
        for (int i = 0; i < g->list[w].count; i++) {
            const int64_t count = g->list[w].item[i].shared;
            most = count > most ? count : most;
        }
    return most;
}

/* Make room for item `n` of an array that doubles at powers of two. */
static void *grow(void *array, int n, size_t size)
{
    if (n & (n - 1))
        return array;
    return nami_realloc(NAMI_MEM_OTHER, array, (n ? 2 * (size_t)n : 1) * size);
}

int nami_graph_value(nami_graph *g, nami_dtype dtype, nami_shape shape)
{
    double bytes = (double)nami_dtype_size(dtype); /* extents may not multiply */
    for (int i = 0; i < shape.rank; i++)
        bytes *= (double)shape.dim[i];
    g->bytes += bytes;
    g->value = grow(g->value, g->values, sizeof *g->value);
    g->value[g->values] =
        (nami_value){.type = {.dtype = dtype, .shape = shape}, .producer = -1};
    return g->values++;
}

int nami_graph_value_like(nami_graph *g, int value)
{
    NAMI_CHECK(value >= 0 && value < g->values);
    nami_tensor t = g->value[value].type;
    return nami_graph_value(g, t.dtype, t.shape);
}

int nami_graph_use(nami_graph *g, int param, nami_shape shape)
{
    g->use = grow(g->use, g->uses, sizeof *g->use);
    g->use[g->uses] = (nami_use){.param = param, .shape = shape};
    return g->uses++;
}

nami_node *nami_graph_node(nami_graph *g, const nami_op *op)
{
    g->node = grow(g->node, g->nodes, sizeof *g->node);
    nami_node *n = &g->node[g->nodes++];
    *n = (nami_node){.op = op,
                     .in = {-1, -1},
                     .out = -1,
                     .param = {-1, -1, -1, -1},
                     .saved = {-1, -1},
                     .block = g->block};
    return n;
}

void nami_graph_block(nami_graph *g, int block)
{
    NAMI_CHECK(g->nodes == 0 || block >= g->block);
    g->block = block;
}

void nami_graph_ends(nami_graph *g, int input, int output, int targets)
{
    g->input = input;
    g->output = output;
    g->targets = targets;
}

void nami_graph_side(nami_graph *g, int value)
{
    g->side = value;
}

void nami_graph_given(nami_graph *g)
{
    g->given = true;
}

const nami_graph_sizes *nami_graph_bytes(const nami_graph *g)
{
    return &g->sizes;
}

int nami_graph_uses(const nami_graph *g)
{
    return g->uses;
}

int nami_graph_use_param(const nami_graph *g, int u)
{
    NAMI_CHECK(u >= 0 && u < g->uses);
    return g->use[u].param;
}

nami_dtype nami_graph_wide(const nami_graph *g)
{
    return g->wide;
}
