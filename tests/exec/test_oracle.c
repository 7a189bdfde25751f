/* SPDX-License-Identifier: MIT */
/* test_oracle.c - a step written out: the whole model as one graph, micro-batches one after the other, uses of a
 * parameter added, norm, clipping and update by hand. The executor must give its bits. */
#include "tiny.h"

#include <math.h>

#include "optim/optim.h"

/* One whole model and its sums. */
typedef struct plain {
    const tiny_problem *p;
    nami_model *model;
    nami_backend *backend;
    nami_optim_options optim;
    nami_graph *graph;
    int uses;
    float **value, **state, **sum; /* [params]; states one after the other */
    void **param, **dparam;        /* [uses] */
    int64_t *count;                /* [params] */
    char *kept, *transient, *packed;
} plain;

static int64_t use_count(const plain *o, int u)
{
    return o->count[nami_graph_use_param(o->graph, u)];
}

static void plain_parameters(plain *o)
{
    size_t params = (size_t)o->model->params;
    o->value = calloc(params, sizeof(float *));
    o->state = calloc(params, sizeof(float *));
    o->sum = calloc(params, sizeof(float *));
    o->count = calloc(params, sizeof(int64_t));
    for (size_t i = 0; i < params; i++) {
        o->count[i] = nami_shape_count(&o->model->param[i].shape);
        size_t n = (size_t)o->count[i];
        o->value[i] = nami_calloc(NAMI_MEM_OTHER, n, sizeof(float));
        o->state[i] = nami_calloc(NAMI_MEM_OTHER, n * NAMI_OPTIM_STATES, sizeof(float));
        nami_model_init(o->model, (int)i, 5, 0, o->count[i], o->value[i]);
    }
}

static void plain_open(plain *o, const tiny_problem *p)
{
    *o = (plain){.p = p, .model = tiny_model(p), .optim = tiny_optim(p)};
    assert_ok(nami_backend_open(p->backend, 1, p->act, &o->backend));
    plain_parameters(o);
    assert_ok(nami_model_graph(o->model, 0, o->model->blocks, o->backend, p->act,
                               p->batch / p->micros, TINY_TIME, &o->graph));
    assert_ok(nami_graph_plan(o->graph, true, false, false));
    const nami_graph_sizes *size_of = nami_graph_bytes(o->graph);
    o->kept = nami_alloc(NAMI_MEM_OTHER, size_of->kept);
    o->transient = nami_alloc(NAMI_MEM_OTHER, size_of->transient);
    o->packed = nami_alloc(NAMI_MEM_OTHER, size_of->packed);
    o->uses = nami_graph_uses(o->graph);
    o->param = calloc((size_t)o->uses, sizeof(void *));
    o->dparam = calloc((size_t)o->uses, sizeof(void *));
    for (int u = 0; u < o->uses; u++) {
        o->param[u] = o->value[nami_graph_use_param(o->graph, u)];
        o->dparam[u] =
            nami_calloc(NAMI_MEM_OTHER, (size_t)use_count(o, u), sizeof(float));
    }
}

static void plain_close(plain *o)
{
    for (int u = 0; u < o->uses; u++)
        nami_free(o->dparam[u]);
    for (int i = 0; i < o->model->params; i++) {
        nami_free(o->value[i]);
        nami_free(o->state[i]);
    }
    nami_free(o->kept);
    nami_free(o->transient);
    nami_free(o->packed);
    free(o->value);
    free(o->state);
    free(o->sum);
    free(o->count);
    free(o->param);
    free(o->dparam);
    nami_graph_free(o->graph);
    nami_backend_close(o->backend);
    nami_model_free(o->model);
}

static void walk(plain *o, nami_walk_kind kind, const nami_graph_call *call)
{
    nami_walk w;
    nami_walk_begin(&w, o->graph, kind, call);
    while (nami_walk_next(&w))
        continue;
}

/* Gradients of all micro-batches; returns the sum of the losses of the samples in their order. */
static double plain_gradients(plain *o, int64_t step)
{
    int64_t micro = o->p->batch / o->p->micros;
    int32_t token[64 * TINY_TIME], target[64 * TINY_TIME];
    double loss[64], sum = 0;
    for (int u = 0; u < o->uses; u++)
        memset(o->dparam[u], 0, (size_t)use_count(o, u) * sizeof(float));
    for (int i = 0; i < o->p->micros; i++) {
        assert_ok(tiny_read(NULL, step, i * micro, micro, token, target));
        nami_graph_call c = {.input = token,
                             .targets = target,
                             .kept = o->kept,
                             .transient = o->transient,
                             .packed = o->packed,
                             .param = o->param,
                             .dparam = o->dparam,
                             .loss = loss,
                             .seed = 5,
                             .step = step,
                             .first_sample = i * micro,
                             .scale = 1.0 / (o->p->batch * TINY_TIME)};
        walk(o, NAMI_WALK_F, &c);
        walk(o, NAMI_WALK_B, &c);
        for (int64_t s = 0; s < micro; s++)
            sum += loss[s];
    }
    return sum;
}

/* Uses of one parameter in model order, into its first use's sum. */
static void plain_uses(plain *o)
{
    memset(o->sum, 0, (size_t)o->model->params * sizeof(float *));
    for (int u = 0; u < o->uses; u++) {
        float **sum = &o->sum[nami_graph_use_param(o->graph, u)], *own = o->dparam[u];
        if (*sum == NULL)
            *sum = own;
        for (int64_t i = 0; *sum != own && i < use_count(o, u); i++)
            (*sum)[i] += own[i];
    }
}

static double plain_norm(const plain *o)
{
    double all = 0;
    for (int i = 0; i < o->model->params; i++) {
        double squares = 0; /* no parameter here is longer than a block */
        for (int64_t k = 0; k < o->count[i]; k++)
            squares += (double)o->sum[i][k] * o->sum[i][k];
        all += squares;
    }
    return sqrt(all);
}

static void plain_update(plain *o, int64_t step, double norm)
{
    double clip =
        o->p->clip > 0 && o->p->clip < norm + 1e-6 ? o->p->clip / (norm + 1e-6) : 1;
    for (int i = 0; i < o->model->params; i++) {
        nami_optim_kernels k;
        nami_optim_item item = {.count = o->count[i],
                                .decay = o->model->param[i].decay,
                                .w = o->value[i],
                                .g = o->sum[i]};
        nami_optim_place(&o->optim, o->state[i], (size_t)o->count[i] * sizeof(float),
                         &item);
        assert_ok(nami_optim_prepare(&o->optim, o->backend, NAMI_F32, o->count[i], &k));
        nami_optim_update(&o->optim, o->backend, 0, &k, NAMI_F32, &item,
                          tiny_rate(step), clip, step);
    }
}

static void check(const tiny_problem *p)
{
    plain o;
    tiny_outcome got = tiny_reference(p);
    plain_open(&o, p);
    nami_graph_call pack = {
        .param = o.param, .packed = o.packed, .transient = o.transient};
    walk(&o, NAMI_WALK_PACK, &pack);
    for (int i = 0; i < p->steps; i++) {
        double loss = plain_gradients(&o, i) / (p->batch * TINY_TIME);
        plain_uses(&o);
        double norm = plain_norm(&o);
        plain_update(&o, i, norm);
        walk(&o, NAMI_WALK_PACK, &pack);
        assert_true(fabs(loss - got.loss[i]) <= 1e-15 * loss);
        assert_true(fabs(norm - got.norm[i]) <= 1e-12 * norm);
    }
    uint64_t sum = 0;
    for (int i = 0; i < o.model->params; i++) {
        sum = nami_mix(sum, (uint64_t)tiny_stretches(o.value[i], 0, o.count[i]));
        for (int s = 0; s < nami_optim_states(&o.optim); s++)
            sum = nami_mix(sum, (uint64_t)tiny_stretches(o.state[i] + s * o.count[i], 0,
                                                         o.count[i]));
    }
    assert_int_equal((int64_t)sum, got.parameters);
    plain_close(&o);
}

static void test_adamw(void **state)
{
    (void)state;
    const tiny_problem p = {.backend = "ref",
                            .act = NAMI_F32,
                            .tied = true,
                            .dropout = 0.1,
                            .clip = 0.5,
                            .batch = 12,
                            .micros = 4,
                            .partials = 1,
                            .optimizer = NAMI_OPTIMIZER_ADAMW,
                            .steps = TINY_STEPS};
    check(&p);
}

static void test_sgd(void **state)
{
    (void)state;
    const tiny_problem p = {.backend = "ref",
                            .act = NAMI_BF16,
                            .tied = false,
                            .batch = 6,
                            .micros = 6,
                            .partials = 1,
                            .optimizer = NAMI_OPTIMIZER_SGD,
                            .steps = 8};
    check(&p);
}

/* All three states. */
static void test_rmsprop(void **state)
{
    (void)state;
    const tiny_problem p = {.backend = "ref",
                            .act = NAMI_F32,
                            .tied = true,
                            .batch = 6,
                            .micros = 3,
                            .partials = 1,
                            .optimizer = NAMI_OPTIMIZER_RMSPROP,
                            .steps = 8};
    check(&p);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_rmsprop),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
