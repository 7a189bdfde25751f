/* SPDX-License-Identifier: MIT */
/* chain.c - a model run by hand as a chain of planned graphs, for tests. */
#include "chain.h"

#include <math.h>

#include "base/rng.h"
#include "nami_test.h"

enum { CANARY = 64 };

static char *guarded(size_t bytes)
{
    char *p = nami_alloc(NAMI_MEM_OTHER, bytes + 2 * (size_t)CANARY);
    memset(p, 0xc3, bytes + 2 * (size_t)CANARY);
    memset(p + CANARY, 0xff, bytes); /* NaN in every type */
    return p + CANARY;
}

static void check_guard(char *p, size_t bytes)
{
    for (int i = 1; i <= CANARY; i++) {
        assert_int_equal((unsigned char)p[-i], 0xc3);
        assert_int_equal((unsigned char)p[bytes + (size_t)i - 1], 0xc3);
    }
    nami_free(p - CANARY);
}

double chain_get(nami_dtype d, const void *p, int64_t i)
{
    return d == NAMI_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

void chain_set(nami_dtype d, void *p, int64_t i, double x)
{
    if (d == NAMI_F64)
        ((double *)p)[i] = x;
    else
        ((float *)p)[i] = (float)x;
}

int64_t chain_count(const chain *c, int p)
{
    return nami_shape_count(&c->model->param[p].shape);
}

static size_t param_bytes(const chain *c, int p)
{
    return (size_t)chain_count(c, p) * nami_dtype_size(c->wide);
}

static void open_params(chain *c)
{
    size_t n = (size_t)c->model->params;
    c->param = nami_calloc(NAMI_MEM_OTHER, n, sizeof *c->param);
    c->grad = nami_calloc(NAMI_MEM_OTHER, n, sizeof *c->grad);
    for (int p = 0; p < c->model->params; p++) {
        int64_t count = chain_count(c, p);
        float *value = nami_calloc(NAMI_MEM_OTHER, (size_t)count, sizeof *value);
        nami_model_init(c->model, p, c->o.seed, 0, count, value);
        c->param[p] = guarded(param_bytes(c, p));
        for (int64_t e = 0; e < count; e++)
            chain_set(c->wide, c->param[p], e, value[e]);
        nami_free(value);
        for (int u = 0; u < c->model->param[p].uses; u++)
            c->grad[p][u] = guarded(param_bytes(c, p));
    }
    chain_zero(c);
}

void chain_spread(chain *c)
{
    for (int p = 0; p < c->model->params; p++)
        for (int64_t e = 0; e < chain_count(c, p); e++)
            chain_set(c->wide, c->param[p], e,
                      chain_get(c->wide, c->param[p], e) +
                          0.3 * nami_normal(99 + (uint64_t)p, (uint64_t)e));
    chain_pack(c);
}

void chain_zero(chain *c)
{
    for (int p = 0; p < c->model->params; p++)
        for (int u = 0; u < c->model->param[p].uses; u++)
            memset(c->grad[p][u], 0, param_bytes(c, p));
}

static int64_t slices_of(const chain *c)
{
    return c->o.slices ? c->o.slices : 1;
}

/* Of one slice, into stage i; 0 at the ends. */
static size_t message_bytes(const chain *c, int i)
{
    int block = c->cut[i];
    if (block == 0 || block == c->model->blocks)
        return 0;
    return (size_t)(c->o.batch *
                    nami_model_boundary(c->model, block, c->o.time / slices_of(c))) *
           nami_dtype_size(c->o.act);
}

static void open_stage(chain *c, int i, int *used)
{
    chain_stage *s = &c->stage[i];
    const chain_options *o = &c->o;
    size_t slices = (size_t)slices_of(c);
    assert_ok(nami_model_graph_sliced(c->model, o->cut[i], o->cut[i + 1], c->backend,
                                      o->act, o->batch, o->time, (int)slices,
                                      &s->graph));
    assert_ok(nami_graph_plan(s->graph, true, o->split, o->recompute));
    const nami_graph_sizes *z = nami_graph_bytes(s->graph);
    s->transient = guarded(z->transient);
    s->packed = guarded(z->packed);
    for (int m = 0; m < o->micro; m++) {
        s->kept[m] = guarded(slices * z->kept);
        s->held[m] = guarded(slices * z->held);
        s->input[m] = guarded(slices * message_bytes(c, i));
        s->output[m] = guarded(slices * message_bytes(c, i + 1));
        s->dinput[m] = guarded(slices * message_bytes(c, i));
    }
    size_t uses = (size_t)nami_graph_uses(s->graph);
    s->param = nami_calloc(NAMI_MEM_OTHER, uses + 1, sizeof *s->param);
    s->dparam = nami_calloc(NAMI_MEM_OTHER, uses + 1, sizeof *s->dparam);
    for (int u = 0; u < (int)uses; u++) {
        int p = nami_graph_use_param(s->graph, u);
        s->param[u] = c->param[p];
        s->dparam[u] = c->grad[p][used[p]++];
        assert_non_null(s->dparam[u]);
    }
}

void chain_open(chain *c, const nami_model *m, const chain_options *o)
{
    *c = (chain){.o = *o, .model = m, .wide = o->act == NAMI_F64 ? NAMI_F64 : NAMI_F32};
    assert_ok(nami_backend_open(o->backend, o->threads ? o->threads : 1, o->act,
                                &c->backend));
    memcpy(c->cut, o->cut, ((size_t)o->stages + 1) * sizeof *c->cut);
    c->sample = nami_model_sample_of(m, o->time);
    size_t samples = (size_t)(o->micro * o->batch), words = (size_t)c->sample.words;
    c->token = nami_calloc(NAMI_MEM_OTHER, samples * words, sizeof *c->token);
    c->target = nami_calloc(NAMI_MEM_OTHER, samples * (size_t)c->sample.targets,
                            sizeof *c->target);
    c->loss =
        nami_calloc(NAMI_MEM_OTHER, (size_t)(o->micro * o->batch), sizeof *c->loss);
    size_t piece = (size_t)(o->batch * c->sample.words / slices_of(c));
    for (int i = 0; i < 2; i++)
        c->piece[i] = nami_calloc(NAMI_MEM_OTHER, piece, sizeof *c->piece[i]);
    c->second =
        nami_calloc(NAMI_MEM_OTHER, (size_t)(o->micro * o->batch), sizeof *c->second);
    c->side = nami_calloc(NAMI_MEM_OTHER, (size_t)o->batch, sizeof *c->side);
    for (int i = 0; i < 2; i++)
        c->part[i] = nami_calloc(NAMI_MEM_OTHER, (size_t)o->batch, sizeof **c->part);
    open_params(c);
    int *used = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params, sizeof *used);
    for (int i = 0; i < o->stages; i++)
        open_stage(c, i, used);
    nami_free(used);
    chain_pack(c);
}

static void close_stage(chain *c, int i)
{
    chain_stage *s = &c->stage[i];
    const nami_graph_sizes *z = nami_graph_bytes(s->graph);
    size_t slices = (size_t)slices_of(c);
    check_guard(s->transient, z->transient);
    check_guard(s->packed, z->packed);
    for (int m = 0; m < c->o.micro; m++) {
        check_guard(s->kept[m], slices * z->kept);
        check_guard(s->held[m], slices * z->held);
        check_guard(s->input[m], slices * message_bytes(c, i));
        check_guard(s->output[m], slices * message_bytes(c, i + 1));
        check_guard(s->dinput[m], slices * message_bytes(c, i));
    }
    nami_free(s->param);
    nami_free(s->dparam);
    nami_graph_free(s->graph);
}

void chain_close(chain *c)
{
    for (int i = 0; i < c->o.stages; i++)
        close_stage(c, i);
    for (int p = 0; p < c->model->params; p++) {
        check_guard(c->param[p], param_bytes(c, p));
        for (int u = 0; u < c->model->param[p].uses; u++)
            check_guard(c->grad[p][u], param_bytes(c, p));
    }
    nami_free(c->param);
    nami_free(c->grad);
    nami_free(c->token);
    nami_free(c->target);
    nami_free(c->loss);
    nami_free(c->piece[0]);
    nami_free(c->piece[1]);
    nami_free(c->second);
    nami_free(c->side);
    nami_free(c->part[0]);
    nami_free(c->part[1]);
    nami_backend_close(c->backend);
}

static void masked_tokens(chain *c, uint64_t seed)
{
    const nami_model_sample *s = &c->sample;
    int64_t samples = c->o.micro * c->o.batch, counted[NAMI_MODEL_LOSSES] = {0};
    for (int64_t i = 0; i < samples; i++)
        nami_model_make_up(s, seed + 1000 * (uint64_t)i, c->token + i * s->words,
                           c->target + i * s->targets);
    nami_model_counted(s, c->target, samples, counted);
    c->scale = 1.0 / (double)(counted[0] ? counted[0] : 1);
    c->second_scale = 1.0 / (double)(counted[1] ? counted[1] : 1);
}

void chain_tokens(chain *c, uint64_t seed)
{
    int64_t samples = c->o.micro * c->o.batch, counted = 0;
    uint64_t vocabulary = (uint64_t)c->sample.classes;
    for (int64_t i = 0; i < samples * c->sample.words; i++) {
        float pixel = (float)nami_normal(seed, (uint64_t)i);
        if (c->sample.kind == NAMI_SAMPLE_IMAGE)
            memcpy(&c->token[i], &pixel, sizeof pixel);
        else
            c->token[i] = (int32_t)(nami_mix(seed, (uint64_t)i) % vocabulary);
    }
    for (int64_t i = 0; i < samples * c->sample.targets; i++) {
        uint64_t r = nami_mix(seed + 1, (uint64_t)i);
        c->target[i] = r % 8 == 0 ? -1 : (int32_t)(r / 8 % vocabulary);
        counted += c->target[i] >= 0;
    }
    c->scale = 1.0 / (double)(counted ? counted : 1);
    if (c->sample.kind == NAMI_SAMPLE_MASKED)
        masked_tokens(c, seed);
}

/* The words of slice k of micro-batch m, `all` a sample. */
static const int32_t *piece_of(const chain *c, const int32_t *words, int64_t all, int m,
                               int k, int32_t *piece)
{
    int64_t each = all / slices_of(c), first = m * c->o.batch;
    for (int64_t i = 0; i < c->o.batch * each; i++)
        piece[i] = words[(first + i / each) * all + k * each + i % each];
    return piece;
}

static void walk(chain *c, int i, int m, int k, nami_walk_kind kind)
{
    chain_stage *s = &c->stage[i];
    int64_t samples = m * c->o.batch;
    size_t in = (size_t)k * message_bytes(c, i),
           out = (size_t)k * message_bytes(c, i + 1);
    const nami_graph_sizes *z = nami_graph_bytes(s->graph);
    bool last = i + 1 == c->o.stages;
    for (int64_t b = 0; b < c->o.batch; b++)
        c->side[b] = c->token[(samples + b + 1) * c->sample.words - 1];
    nami_graph_call call = {
        .input = i ? (const void *)(s->input[m] + in)
                   : piece_of(c, c->token, c->sample.words, m, k, c->piece[0]),
        .output = last ? NULL : s->output[m] + out,
        .doutput = last ? NULL : c->stage[i + 1].dinput[m] + out,
        .dinput = i ? s->dinput[m] + in : NULL,
        .targets =
            last ? piece_of(c, c->target, c->sample.targets, m, k, c->piece[1]) : NULL,
        .kept = s->kept[m] + (size_t)k * z->kept,
        .held = s->held[m] + (size_t)k * z->held,
        .transient = s->transient,
        .packed = s->packed,
        .param = s->param,
        .dparam = s->dparam,
        .side = c->sample.side > 0 ? c->side : NULL,
        .loss = last && kind == NAMI_WALK_F ? c->part[0] : NULL,
        .second = {.loss = last && kind == NAMI_WALK_F ? c->part[1] : NULL,
                   .scale = c->second_scale},
        .seed = c->o.seed,
        .step = c->step,
        .first_sample = c->first_sample + samples,
        .scale = c->scale,
        .slice = k,
        .stride = z->kept};
    nami_walk w = {0};
    memset(s->transient, 0xff, z->transient);
    nami_walk_begin(&w, s->graph, kind, &call);
    while (nami_walk_next(&w)) {
    }
    for (int64_t b = 0; b < c->o.batch && call.loss; b++) {
        c->loss[samples + b] = (k > 0 ? c->loss[samples + b] : 0) + c->part[0][b];
        c->second[samples + b] = c->part[1][b];
    }
    if (kind == NAMI_WALK_F &&
        !last) { /* sent away, its buffer used for something else */
        memcpy(c->stage[i + 1].input[m] + out, s->output[m] + out,
               message_bytes(c, i + 1));
        memset(s->output[m] + out, 0xff, message_bytes(c, i + 1));
    }
}

void chain_pack(chain *c)
{
    for (int i = 0; i < c->o.stages; i++)
        walk(c, i, 0, 0, NAMI_WALK_PACK);
}

void chain_forward(chain *c)
{
    for (int m = 0; m < c->o.micro; m++)
        for (int k = 0; k < slices_of(c); k++)
            for (int i = 0; i < c->o.stages; i++)
                walk(c, i, m, k, NAMI_WALK_F);
}

void chain_backward(chain *c)
{
    for (int m = 0; m < c->o.micro; m++)
        for (int k = (int)slices_of(c) - 1; k >= 0; k--)
            for (int i = c->o.stages - 1; i >= 0; i--)
                walk(c, i, m, k, c->o.split ? NAMI_WALK_BI : NAMI_WALK_B);
    for (int m = 0; m < c->o.micro && c->o.split; m++)
        for (int k = 0; k < slices_of(c); k++)
            for (int i = 0; i < c->o.stages; i++)
                walk(c, i, m, k, NAMI_WALK_BW);
}

double chain_loss(const chain *c)
{
    double sum = 0, second = 0;
    for (int64_t i = 0; i < c->o.micro * c->o.batch; i++) {
        sum += c->loss[i];
        second += c->second[i];
    }
    return sum * c->scale + second * c->second_scale;
}

double chain_grad(const chain *c, int p, int64_t e)
{
    double sum = 0;
    for (int u = 0; u < c->model->param[p].uses; u++)
        sum += chain_get(c->wide, c->grad[p][u], e);
    return sum;
}

void chain_assert_equal(const chain *a, const chain *b)
{
    assert_memory_equal(a->loss, b->loss,
                        (size_t)(a->o.micro * a->o.batch) * sizeof(double));
    assert_memory_equal(a->second, b->second,
                        (size_t)(a->o.micro * a->o.batch) * sizeof(double));
    for (int p = 0; p < a->model->params; p++)
        for (int u = 0; u < a->model->param[p].uses; u++)
            if (memcmp(a->grad[p][u], b->grad[p][u], param_bytes(a, p)) != 0)
                fail_msg("gradient %d of %s differs", u, a->model->param[p].name);
}

/* Loss with element e of parameter p moved by h. */
static double moved(chain *c, int p, int64_t e, double h)
{
    double old = chain_get(c->wide, c->param[p], e);
    chain_set(c->wide, c->param[p], e, old + h);
    chain_pack(c);
    chain_forward(c);
    chain_set(c->wide, c->param[p], e, old);
    return chain_loss(c);
}

void chain_assert_differences(chain *c, int64_t stride)
{
    const double h = 1e-5;
    for (int p = 0; p < c->model->params; p++)
        for (int64_t e = 0; e < chain_count(c, p); e += stride) {
            double numeric = (moved(c, p, e, h) - moved(c, p, e, -h)) / (2 * h);
            double exact = chain_grad(c, p, e);
            if (!(fabs(numeric - exact) <= 1e-8 + 1e-6 * fabs(exact)))
                fail_msg("%s[%lld]: %.12g by differences, %.12g by the backward pass",
                         c->model->param[p].name, (long long)e, numeric, exact);
        }
}
