/* SPDX-License-Identifier: MIT */
/* sample.c - a trained model that continues tokens, in one process without MPI. */
#include "train/sample.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "model/family.h"

struct nami_speaker {
    nami_model *model;
    nami_backend *backend;
    nami_graph *graph;
    float **param; /* [params] */
    void **use;    /* [uses] */
    void *kept, *transient, *packed;
    int32_t *input; /* [context] */
    float *logits;  /* [context, vocabulary] */
    double *weight; /* [vocabulary] */
    int *order;     /* [vocabulary] */
};

static nami_status load(nami_speaker *s, const char *path)
{
    int params = s->model->params;
    nami_ckpt_item *item = nami_calloc(NAMI_MEM_OTHER, (size_t)params, sizeof *item);
    s->param = nami_calloc(NAMI_MEM_OTHER, (size_t)params, sizeof *s->param);
    for (int p = 0; p < params; p++) {
        const nami_param *param = &s->model->param[p];
        int64_t count = nami_shape_count(&param->shape);
        s->param[p] = nami_backend_alloc(s->backend, NAMI_MEM_PARAMETER,
                                         (size_t)count * sizeof(float));
        item[p] = (nami_ckpt_item){.group = "parameters",
                                   .name = param->name,
                                   .shape = param->shape,
                                   .count = count,
                                   .data = s->param[p]};
    }
    nami_status status = nami_ckpt_load(NULL, path, item, params);
    nami_free(item);
    return status;
}

static void walk(nami_speaker *s, nami_walk_kind kind)
{
    nami_graph_call call = {.input = s->input,
                            .output = s->logits,
                            .kept = s->kept,
                            .transient = s->transient,
                            .packed = s->packed,
                            .param = s->use};
    nami_walk w;
    nami_walk_begin(&w, s->graph, kind, &call);
    while (nami_walk_next(&w))
        ;
}

static nami_status plan(nami_speaker *s)
{
    int64_t context = s->model->options.context, v = s->model->options.vocabulary;
    NAMI_TRY(
        nami_model_graph_logits(s->model, s->backend, NAMI_F32, 1, context, &s->graph));
    NAMI_TRY(nami_graph_plan(s->graph, false, false, false));
    const nami_graph_sizes *size = nami_graph_bytes(s->graph);
    s->kept = nami_backend_alloc(s->backend, NAMI_MEM_ACTIVATION, size->kept);
    s->transient = nami_backend_alloc(s->backend, NAMI_MEM_TRANSIENT, size->transient);
    s->packed = nami_backend_alloc(s->backend, NAMI_MEM_PACKED, size->packed);
    s->input = nami_calloc(NAMI_MEM_DATA, (size_t)context, sizeof *s->input);
    s->logits = nami_calloc(NAMI_MEM_MESSAGE, (size_t)(context * v), sizeof *s->logits);
    s->weight = nami_calloc(NAMI_MEM_OTHER, (size_t)v, sizeof *s->weight);
    s->order = nami_calloc(NAMI_MEM_OTHER, (size_t)v, sizeof *s->order);
    int uses = nami_graph_uses(s->graph);
    s->use = nami_calloc(NAMI_MEM_OTHER, (size_t)uses, sizeof *s->use);
    for (int u = 0; u < uses; u++)
        s->use[u] = s->param[nami_graph_use_param(s->graph, u)];
    walk(s, NAMI_WALK_PACK);
    return NAMI_OK;
}

nami_status nami_speaker_open(const char *path, const nami_settings *settings,
                              int threads, nami_speaker **out)
{
    *out = NULL;
    if (nami_model_takes_images(&settings->model) ||
        nami_model_takes_sentences(&settings->model))
        return nami_fail(NAMI_EINPUT,
                         "%s: a model of family %s does not continue tokens", path,
                         nami_family_names[settings->model.family]);
    nami_speaker *s = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *s);
    nami_status status = nami_model_new(&settings->model, 0, &s->model);
    if (status == NAMI_OK)
        status = nami_backend_open(nami_settings_host_backend(settings), threads,
                                   NAMI_F32, &s->backend);
    if (status == NAMI_OK)
        status = load(s, path);
    if (status == NAMI_OK)
        status = plan(s);
    if (status != NAMI_OK) {
        nami_speaker_close(s);
        s = NULL;
    }
    *out = s;
    return status;
}

void nami_speaker_close(nami_speaker *s)
{
    if (!s)
        return;
    for (int p = 0; s->param && p < s->model->params; p++)
        nami_backend_free(s->backend, s->param[p]);
    if (s->backend) {
        nami_backend_free(s->backend, s->kept);
        nami_backend_free(s->backend, s->transient);
        nami_backend_free(s->backend, s->packed);
    }
    nami_free(s->param);
    nami_free(s->use);
    nami_free(s->input);
    nami_free(s->logits);
    nami_free(s->weight);
    nami_free(s->order);
    if (s->graph)
        nami_graph_free(s->graph);
    if (s->backend)
        nami_backend_close(s->backend);
    nami_model_free(s->model);
    nami_free(s);
}

/* The numbers 0..n-1 in falling order of weight, the `top` first of them; equal ones by number. */
static void select_top(const double *weight, int n, int top, int *order)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = 0; i < top; i++) {
        int best = i;
        for (int j = i + 1; j < n; j++)
            if (weight[order[j]] > weight[order[best]])
                best = j;
        int kept = order[best];
        memmove(&order[i + 1], &order[i], (size_t)(best - i) * sizeof *order);
        order[i] = kept;
    }
}

/* Draw from the `top` likeliest of the logits. */
static nami_status draw(nami_speaker *s, const nami_choice *c, const float *logits,
                        int64_t index, int32_t *out)
{
    int v = (int)s->model->options.vocabulary;
    int top = c->temperature == 0 ? 1 : c->top > 0 && c->top < v ? (int)c->top : v;
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < v; i++)
        most = fmax(most, logits[i]);
    if (!isfinite(most))
        return nami_fail(NAMI_ENUMERIC, "the model's logits are not finite");
    double scale = c->temperature > 0 ? 1 / c->temperature : 1;
    for (int i = 0; i < v; i++)
        s->weight[i] = exp((logits[i] - most) * scale);
    select_top(s->weight, v, top == v ? 0 : top, s->order);
    for (int i = 0; i < top; i++)
        sum += s->weight[s->order[i]];
    double rest = sum * nami_uniform(c->seed, (uint64_t)index);
    int at = 0;
    while (at < top - 1 && rest >= s->weight[s->order[at]])
        rest -= s->weight[s->order[at++]];
    *out = s->order[at];
    return NAMI_OK;
}

nami_status nami_speaker_next(nami_speaker *s, const nami_choice *choice,
                              const int32_t *token, int64_t count, int64_t index,
                              int32_t *out)
{
    int64_t context = s->model->options.context, v = s->model->options.vocabulary;
    int64_t seen = count < context ? count : context;
    for (int64_t i = 0; i < seen; i++)
        NAMI_CHECK(token[count - seen + i] >= 0 && token[count - seen + i] < v);
    /* behind the last token: no earlier position sees it */
    memset(s->input, 0, (size_t)context * sizeof *s->input);
    memcpy(s->input, token + count - seen, (size_t)seen * sizeof *s->input);
    walk(s, NAMI_WALK_F);
    return draw(s, choice, s->logits + (seen - 1) * v, index, out);
}
