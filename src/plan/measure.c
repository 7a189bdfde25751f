/* SPDX-License-Identifier: MIT */
/* measure.c - time the passes of each block alone, and take its bytes from the plan of its graph. */
#include "plan/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"

enum { PASSES = 3 };

/* One block with all that its passes read and write. */
typedef struct bench {
    const nami_measure_request *r;
    int block;
    nami_graph *graph;
    nami_graph_call call;
    void **pointer; /* [2 * uses] parameters, then gradients */
    void *owned[64];
    int owns;
} bench;

/* Memory of the backend, zeroed; freed with the bench. NULL for none. */
static void *take(bench *b, nami_tag tag, size_t bytes)
{
    if (bytes == 0)
        return NULL;
    NAMI_CHECK(b->owns < (int)(sizeof b->owned / sizeof *b->owned));
    void *block = nami_backend_alloc(b->r->backend, tag, bytes);
    nami_backend_wait(b->r->backend, nami_backend_zero(b->r->backend, 0, block, bytes));
    b->owned[b->owns++] = block;
    return block;
}

static void put(bench *b, void *to, const void *from, size_t bytes)
{
    nami_backend *backend = b->r->backend;
    if (bytes > 0)
        nami_backend_wait(backend, nami_backend_copy(backend, 0, to, from, bytes));
}

/* `count` numbers around 0, of size `scale`, as the backend keeps activations. */
static void *take_values(bench *b, int64_t count, double scale)
{
    size_t size = nami_dtype_size(b->r->act);
    char *values = nami_alloc(NAMI_MEM_OTHER, (size_t)count * size);
    for (int64_t i = 0; i < count; i++) {
        double x = scale * (2 * nami_uniform(7, (uint64_t)i) - 1);
        float narrow = (float)x;
        char *at = values + (size_t)i * size;
        if (size == 8)
            memcpy(at, &x, size);
        else /* bf16: the upper half */
            memcpy(at, (char *)&narrow + sizeof narrow - size, size);
    }
    void *to = take(b, NAMI_MEM_MESSAGE, (size_t)count * size);
    if (to != NULL)
        put(b, to, values, (size_t)count * size);
    nami_free(values);
    return to;
}

/* Samples made up: where to find their words, their targets, their side words. */
typedef struct words {
    int32_t *token, *target, *side;
} words;

static words take_words(bench *b, const nami_model_sample *s)
{
    const int64_t n = b->r->samples;
    const size_t size = sizeof(int32_t), tokens = (size_t)(n * s->words) * size,
                 targets = (size_t)(n * s->targets) * size,
                 sides = (size_t)(n * s->side) * size;
    int32_t *token = nami_alloc(NAMI_MEM_OTHER, tokens),
            *target = nami_alloc(NAMI_MEM_OTHER, targets),
            *side = nami_alloc(NAMI_MEM_OTHER, sides + 1);
    for (int64_t i = 0; i < n; i++) {
        nami_model_make_up(s, (uint64_t)(11 + i), token + i * s->words,
                           target + i * s->targets);
        for (int64_t k = 0; k < s->side; k++)
            side[i * s->side + k] = token[(i + 1) * s->words - s->side + k];
    }
    words w = {.token = take(b, NAMI_MEM_DATA, tokens),
               .target = take(b, NAMI_MEM_DATA, targets),
               .side = take(b, NAMI_MEM_DATA, sides)};
    put(b, w.token, token, tokens);
    put(b, w.target, target, targets);
    put(b, w.side, side, sides);
    nami_free(token);
    nami_free(target);
    nami_free(side);
    return w;
}

/* The initial value of parameter `p`, and room for its gradient. */
static void take_parameter(bench *b, int use, int uses)
{
    int p = nami_graph_use_param(b->graph, use);
    int64_t count = nami_shape_count(&b->r->model->param[p].shape);
    size_t size = nami_dtype_size(nami_graph_wide(b->graph));
    float *value = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *value);
    b->pointer[use] =
        nami_backend_alloc(b->r->backend, NAMI_MEM_PARAMETER, (size_t)count * size);
    b->pointer[uses + use] =
        nami_backend_alloc(b->r->backend, NAMI_MEM_GRADIENT, (size_t)count * size);
    nami_model_init(b->r->model, p, 1, 0, count, value);
    put(b, b->pointer[use], value, (size_t)count * sizeof *value);
    nami_backend_wait(b->r->backend,
                      nami_backend_zero(b->r->backend, 0, b->pointer[uses + use],
                                        (size_t)count * size));
    nami_free(value);
}

/* What lies outside the graph: input and output with their gradients, targets and losses. */
static void take_ends(bench *b)
{
    const nami_measure_request *r = b->r;
    int64_t time = r->model->options.context, n = r->samples;
    nami_model_sample s = nami_model_sample_of(r->model, time);
    nami_graph_call *c = &b->call;
    const words w = take_words(b, &s);
    c->side = w.side;
    if (b->block == 0) {
        c->input = w.token;
    } else {
        int64_t count = n * nami_model_boundary(r->model, b->block, time);
        c->input = take_values(b, count, 1);
        c->dinput = take_values(b, count, 0);
    }
    if (b->block == r->model->blocks - 1) {
        c->targets = w.target;
        c->loss = take(b, NAMI_MEM_MESSAGE, (size_t)n * sizeof(double));
        c->second.loss = take(b, NAMI_MEM_MESSAGE, (size_t)n * sizeof(double));
    } else {
        int64_t count = n * nami_model_boundary(r->model, b->block + 1, time);
        c->output = take_values(b, count, 0);
        c->doutput = take_values(b, count, 1e-3);
    }
    c->scale = c->second.scale = 1.0 / (double)(n * s.targets);
}

static nami_status make_graph(const nami_measure_request *r, int block, bool split,
                              nami_graph **out)
{
    NAMI_TRY(nami_model_graph(r->model, block, block + 1, r->backend, r->act,
                              r->samples, r->model->options.context, out));
    return nami_graph_plan(*out, true, split, false);
}

static nami_status open_bench(bench *b)
{
    NAMI_TRY(make_graph(b->r, b->block, true, &b->graph));
    const nami_graph_sizes *size = nami_graph_bytes(b->graph);
    int uses = nami_graph_uses(b->graph);
    b->pointer = nami_calloc(NAMI_MEM_OTHER, 2 * (size_t)uses + 1, sizeof *b->pointer);
    for (int u = 0; u < uses; u++)
        take_parameter(b, u, uses);
    b->call.param = b->pointer;
    b->call.dparam = b->pointer + uses;
    b->call.kept = take(b, NAMI_MEM_ACTIVATION, size->kept);
    b->call.held = take(b, NAMI_MEM_ACTIVATION, size->held);
    b->call.transient = take(b, NAMI_MEM_TRANSIENT, size->transient);
    b->call.packed = take(b, NAMI_MEM_PACKED, size->packed);
    b->call.stride = size->kept;
    take_ends(b);
    return NAMI_OK;
}

static void close_bench(bench *b)
{
    int uses = b->pointer != NULL ? 2 * nami_graph_uses(b->graph) : 0;
    for (int i = 0; i < uses; i++)
        nami_backend_free(b->r->backend, b->pointer[i]);
    for (int i = 0; i < b->owns; i++)
        nami_backend_free(b->r->backend, b->owned[i]);
    nami_free(b->pointer);
    if (b->graph != NULL)
        nami_graph_free(b->graph);
}

/* Seconds of one walk, on the device's own clock where it has one. */
static double time_walk(bench *b, nami_walk_kind kind)
{
    nami_backend *backend = b->r->backend;
    nami_walk w;
    nami_event first = nami_backend_mark(backend, 0);
    double start = nami_now();
    nami_walk_begin(&w, b->graph, kind, &b->call);
    while (nami_walk_next(&w))
        ;
    nami_event last = nami_backend_mark(backend, 0);
    if (last == 0)
        return nami_now() - start;
    nami_backend_wait(backend, last);
    return nami_backend_moment(backend, last) - nami_backend_moment(backend, first);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle of `count` numbers, which are sorted. */
static double median(double *x, int count)
{
    qsort(x, (size_t)count, sizeof *x, by_size);
    return count % 2 ? x[count / 2] : (x[count / 2 - 1] + x[count / 2]) / 2;
}

static void time_block(bench *b, nami_chain_block *out)
{
    static const nami_walk_kind kind[PASSES] = {NAMI_WALK_F, NAMI_WALK_BI,
                                                NAMI_WALK_BW};
    int repeats = b->r->repeats;
    double *seconds =
        nami_calloc(NAMI_MEM_OTHER, PASSES * (size_t)repeats, sizeof *seconds);
    time_walk(b, NAMI_WALK_PACK);
    for (int i = -b->r->warm; i < repeats; i++) {
        for (int k = 0; k < PASSES; k++) {
            double s = time_walk(b, kind[k]);
            if (i >= 0)
                seconds[k * repeats + i] = s;
        }
    }
    out->forward = median(seconds, repeats);
    out->input = median(seconds + repeats, repeats);
    out->weight = median(seconds + (ptrdiff_t)2 * repeats, repeats);
    nami_free(seconds);
}

/* Bytes as an executor needs them that runs B in one piece. */
static nami_status count_block(const nami_measure_request *r, int block,
                               nami_chain_block *out)
{
    nami_graph *g = NULL;
    nami_status status = make_graph(r, block, false, &g);
    if (status == NAMI_OK) {
        const nami_graph_sizes *size = nami_graph_bytes(g);
        out->kept = (double)size->kept;
        out->transient = (double)size->transient;
        out->packed = (double)size->packed;
        for (int u = 0; u < nami_graph_uses(g); u++) {
            const nami_param *p = &r->model->param[nami_graph_use_param(g, u)];
            out->parameter += (double)nami_shape_count(&p->shape) *
                              (double)nami_dtype_size(nami_graph_wide(g));
        }
    }
    if (g != NULL)
        nami_graph_free(g);
    if (block + 1 < r->model->blocks)
        out->output =
            (double)r->samples * (double)nami_dtype_size(r->act) *
            (double)nami_model_boundary(r->model, block + 1, r->model->options.context);
    return status;
}

static nami_status measure_block(const nami_measure_request *r, int block,
                                 nami_chain_block *out)
{
    char name[32];
    bench b = {.r = r, .block = block};
    snprintf(out->name, sizeof out->name, "%s",
             nami_model_block_name(r->model, block, name));
    for (char *c = out->name; *c; c++) { /* a word of the file */
        if (*c == ' ' || *c == ',' || *c == '#')
            *c = '_';
    }
    NAMI_TRY(count_block(r, block, out));
    nami_status status = open_bench(&b);
    if (status == NAMI_OK)
        time_block(&b, out);
    close_bench(&b);
    return status;
}

/* Times become the means of all ranks. */
static void average(nami_comm *c, nami_chain *chain)
{
    int ranks = nami_comm_size(c), n = chain->blocks;
    double *own = nami_calloc(NAMI_MEM_OTHER, PASSES * (size_t)n, sizeof *own);
    double *all =
        nami_calloc(NAMI_MEM_OTHER, PASSES * (size_t)n * (size_t)ranks, sizeof *all);
    for (int i = 0; i < n; i++) {
        double *pass = own + (ptrdiff_t)PASSES * i;
        pass[0] = chain->block[i].forward;
        pass[1] = chain->block[i].input;
        pass[2] = chain->block[i].weight;
    }
    nami_comm_gather(c, own, PASSES * (size_t)n * sizeof *own, all);
    for (int i = 0; i < n; i++) {
        double sum[PASSES] = {0};
        for (int r = 0; r < ranks; r++)
            for (int k = 0; k < PASSES; k++)
                sum[k] += all[PASSES * (r * n + i) + k];
        chain->block[i].forward = sum[0] / ranks;
        chain->block[i].input = sum[1] / ranks;
        chain->block[i].weight = sum[2] / ranks;
    }
    nami_free(all);
    nami_free(own);
}

nami_status nami_measure_blocks(const nami_measure_request *r, nami_chain *out)
{
    int n = r->model->blocks;
    *out = (nami_chain){.samples = r->samples, .blocks = n};
    out->block = nami_calloc(NAMI_MEM_OTHER, (size_t)n, sizeof *out->block);
    for (int i = 0; i < n; i++)
        NAMI_TRY(nami_comm_settle(r->comm, measure_block(r, i, &out->block[i])));
    average(r->comm, out);
    return NAMI_OK;
}
