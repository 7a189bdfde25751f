/* SPDX-License-Identifier: MIT */
/* emulate.c - training without a flush, emulated. */
#include "emulate.h"

#include <math.h>

#include "base/memory.h"
#include "nami_test.h"

/* One stage: its graph, and its weights under every number of the window. */
typedef struct part {
    nami_graph *graph;
    int uses;
    int64_t count; /* elements of all its parameters */
    int64_t *at;   /* [uses] where each lies in a vector of weights */
    /* by number in the window: weights and what the optimiser knew then */
    double *weights[EMULATE_UPDATES + 1], *m[EMULATE_UPDATES + 1],
        *v[EMULATE_UPDATES + 1];
    double *grad, *delta, *seen;
    char *kept, *transient, *packed;
    double *input, *output, *dinput; /* of the unit under way */
    void **param, **dparam;          /* [uses] */
} part;

typedef struct machine {
    const emulate_way *way;
    const nami_model *model;
    nami_backend *backend;
    part part[EMULATE_STAGES];
    nami_model_sample sample;
    int32_t *token, *target; /* of an update: [batch][words], [targets] of the sample */
    double *loss;            /* [micro] of a unit */
    int micro;               /* samples of a unit */
    double scale;
} machine;

/* --- the policies: which number of the weights --- */

/* Updates that stage s has made before the forward of its unit u, with m units an update: all whose last backward
 * precedes it, as each backward beyond the depth lets one more forward in. */
static int before_forward(const emulate_way *w, int s, int u, int m)
{
    if (w->before != NULL)
        return w->before[s * w->window * m + u];
    int done = u - w->depth[s];
    return done > 0 ? done / m : 0;
}

static int forward_number(const emulate_way *w, int s, int u, int m)
{
    int group = u / m;
    switch (w->weights) {
    case NAMI_WEIGHTS_VERTICAL:
        return before_forward(w, 0, u, m);
    case NAMI_WEIGHTS_2BW:
        return group > 0 ? group - 1 : 0;
    case NAMI_WEIGHTS_GROUPED:
        return s < w->stages / 2 ? (group > 0 ? group - 1 : 0) : group;
    default:
        return before_forward(w, s, u, m);
    }
}

/* --- optimisers, written out --- */

static bool decays(const machine *w, const part *p, int64_t e)
{
    int use = 0;
    while (use + 1 < p->uses && p->at[use + 1] <= e)
        use++;
    return w->model->param[nami_graph_use_param(p->graph, use)].decay;
}

static double norm_of(const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t e = 0; e < count; e++)
        sum += x[e] * x[e];
    return sqrt(sum);
}

/* The direction that a step of rate 1 would take from state (m, v) after t steps. */
static double direction(const emulate_way *w, double m, double v, int64_t t)
{
    if (w->optimizer == 0)
        return m;
    if (t == 0)
        return 0;
    double mean = m / (1 - pow(w->beta1, (double)t));
    double square = v / (1 - pow(w->beta2, (double)t));
    return mean / (sqrt(square) + w->eps);
}

/* Mean over the units of update k of the updates between the weights of their forward and this one. The backward of
 * the same units reads number k itself. */
static double lateness(const emulate_way *w, int s, int k)
{
    int m = w->units / w->replicas;
    double sum = 0;
    for (int u = k * m; u < (k + 1) * m; u++)
        sum += k - forward_number(w, s, u, m);
    return sum / m;
}

/* PipeMare's T1: the rate of stage s in update k of the window, 0-based `step` of the run. */
static double rate_of(const emulate_way *w, int s, int k, int64_t step)
{
    double done = w->annealing > 0 ? (double)step / w->annealing : 1;
    double left = done < 1 ? 1 - done : 0, late = lateness(w, s, k);
    return w->rate / pow(late > 1 ? late : 1, left);
}

/* Number k of stage s becomes number k + 1; 0-based `step` of the run. */
static void update(machine *w, int s, int k, int64_t step)
{
    const emulate_way *o = w->way;
    part *p = &w->part[s];
    const double *from = p->weights[k];
    double *to = p->weights[k + 1], *m = p->m[k + 1], *v = p->v[k + 1];
    double norm = norm_of(p->grad, p->count);
    double factor = o->clip > 0 ? fmin(1, o->clip / (norm + 1e-6)) : 1;
    double rate = rate_of(o, s, k, step), late = lateness(o, s, k);
    double gamma = late > 0 && o->correction > 0 ? pow(o->correction, 1 / late) : 0;
    for (int64_t e = 0; e < p->count; e++) {
        double g = p->grad[e] * factor, x = from[e];
        double decay = decays(w, p, e) ? o->decay : 0;
        if (o->optimizer == 0) {
            m[e] = o->momentum * p->m[k][e] + g + decay * x;
        } else {
            x -= rate * decay * x;
            m[e] = o->beta1 * p->m[k][e] + (1 - o->beta1) * g;
            v[e] = o->beta2 * p->v[k][e] + (1 - o->beta2) * g * g;
        }
        to[e] = x - rate * direction(o, m[e], v[e], step + 1);
        p->delta[e] = gamma * p->delta[e] + (1 - gamma) * (to[e] - from[e]);
    }
}

/* --- stages --- */

static void *zeroed(int64_t count, size_t size)
{
    return nami_calloc(NAMI_MEM_OTHER, (size_t)count + 1, size);
}

static void open_parameters(machine *w, part *p)
{
    p->at = zeroed(p->uses, sizeof *p->at);
    for (int u = 0; u < p->uses; u++) {
        p->at[u] = p->count;
        p->count +=
            nami_shape_count(&w->model->param[nami_graph_use_param(p->graph, u)].shape);
    }
    for (int k = 0; k <= w->way->window; k++) {
        p->weights[k] = zeroed(p->count, sizeof(double));
        p->m[k] = zeroed(p->count, sizeof(double));
        p->v[k] = zeroed(p->count, sizeof(double));
    }
    double **own[] = {&p->grad, &p->delta, &p->seen};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        *own[i] = zeroed(p->count, sizeof(double));
    for (int u = 0; u < p->uses; u++) {
        int param = nami_graph_use_param(p->graph, u);
        int64_t count = nami_shape_count(&w->model->param[param].shape);
        float *value = zeroed(count, sizeof *value);
        nami_model_init(w->model, param, w->way->seed, 0, count, value);
        for (int64_t e = 0; e < count; e++)
            p->weights[0][p->at[u] + e] = (double)value[e];
        nami_free(value);
    }
}

/* Elements of a unit that enter stage s from the one before. */
static int64_t entering(const machine *w, int s)
{
    const emulate_way *o = w->way;
    if (s == 0 || s == o->stages)
        return 0;
    return w->micro * nami_model_boundary(w->model, o->cut[s], o->time);
}

static void open_part(machine *w, int s)
{
    part *p = &w->part[s];
    const emulate_way *o = w->way;
    assert_ok(nami_model_graph(w->model, o->cut[s], o->cut[s + 1], w->backend, NAMI_F64,
                               w->micro, o->time, &p->graph));
    assert_ok(nami_graph_plan(p->graph, true, false, false));
    const nami_graph_sizes *z = nami_graph_bytes(p->graph);
    p->uses = nami_graph_uses(p->graph);
    open_parameters(w, p);
    p->kept = zeroed((int64_t)z->kept, 1);
    p->transient = zeroed((int64_t)z->transient, 1);
    p->packed = zeroed((int64_t)z->packed, 1);
    p->input = zeroed(entering(w, s), sizeof(double));
    p->output = zeroed(entering(w, s + 1), sizeof(double));
    p->dinput = zeroed(entering(w, s), sizeof(double));
    p->param = zeroed(p->uses, sizeof(void *));
    p->dparam = zeroed(p->uses, sizeof(void *));
    for (int u = 0; u < p->uses; u++)
        p->dparam[u] = p->grad + p->at[u];
}

static void close_part(machine *w, part *p)
{
    void *own[] = {p->at,        p->grad,  p->delta,  p->seen,   p->kept,  p->packed,
                   p->transient, p->input, p->output, p->dinput, p->param, p->dparam};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        nami_free(own[i]);
    for (int k = 0; k <= w->way->window; k++) {
        nami_free(p->weights[k]);
        nami_free(p->m[k]);
        nami_free(p->v[k]);
    }
    nami_graph_free(p->graph);
}

/* One walk of stage s under `weights` for the samples from `first` of the update on. */
static void walk(machine *w, int s, nami_walk_kind kind, const double *weights,
                 int64_t step, int first)
{
    part *p = &w->part[s];
    bool last = s + 1 == w->way->stages;
    for (int u = 0; u < p->uses; u++)
        p->param[u] = (void *)(uintptr_t)(weights + p->at[u]);
    nami_graph_call call = {
        .input =
            s > 0 ? (void *)p->input : (void *)(w->token + first * w->sample.words),
        .output = last ? NULL : p->output,
        .doutput = last ? NULL : w->part[s + 1].dinput,
        .dinput = s > 0 ? p->dinput : NULL,
        .targets = last ? w->target + first * w->sample.targets : NULL,
        .kept = p->kept,
        .transient = p->transient,
        .packed = p->packed,
        .param = p->param,
        .dparam = p->dparam,
        .loss = last ? w->loss : NULL,
        .seed = w->way->seed,
        .step = step,
        .first_sample = first,
        .scale = w->scale};
    const nami_walk_kind both[] = {NAMI_WALK_PACK, kind};
    for (int i = 0; i < 2; i++) {
        nami_walk run = {0};
        nami_walk_begin(&run, p->graph, both[i], &call);
        while (nami_walk_next(&run)) {
        }
    }
    if (kind == NAMI_WALK_F && !last)
        memcpy(w->part[s + 1].input, p->output,
               (size_t)entering(w, s + 1) * sizeof(double));
}

/* Number `number` after `delay` more updates along the direction it has. */
static const double *predicted(machine *w, part *p, int number, int delay,
                               int64_t start)
{
    for (int64_t e = 0; e < p->count; e++)
        p->seen[e] =
            p->weights[number][e] -
            w->way->rate * delay *
                direction(w->way, p->m[number][e], p->v[number][e], start + number);
    return p->seen;
}

/* The weights that the forward of unit u at stage s reads; the window began at step `start`. */
static const double *forward_weights(machine *w, int s, int u, int m, int64_t start,
                                     emulation *out)
{
    part *p = &w->part[s];
    int number = forward_number(w->way, s, u, m), delay = u / m - number;
    out->delay[s] = delay > out->delay[s] ? delay : out->delay[s];
    return w->way->weights == NAMI_WEIGHTS_PREDICT
               ? predicted(w, p, number, delay, start)
               : p->weights[number];
}

/* Those of a forward that runs again right before the backward. */
static const double *again_weights(machine *w, int s, int u, int m, int64_t start)
{
    part *p = &w->part[s];
    int number = forward_number(w->way, s, u, m), group = u / m;
    if (w->way->weights == NAMI_WEIGHTS_PREDICT)
        return predicted(w, p, group, group - number, start);
    return p->weights[w->way->weights == NAMI_WEIGHTS_NEWEST ? group : number];
}

static const double *backward_weights(machine *w, int s, int u, int m)
{
    part *p = &w->part[s];
    int group = u / m, delay = group - forward_number(w->way, s, u, m);
    if (w->way->weights == NAMI_WEIGHTS_PREDICT)
        return p->weights[group];
    if (w->way->weights != NAMI_WEIGHTS_NEWEST)
        return p->weights[forward_number(w->way, s, u, m)];
    for (int64_t e = 0; e < p->count; e++)
        p->seen[e] =
            p->weights[group][e] - (w->way->correction > 0 ? delay * p->delta[e] : 0);
    return p->seen;
}

/* --- a window --- */

/* Read the samples of an update, and count its targets. */
static void read_update(machine *w, emulate_read read, int64_t step)
{
    int64_t words = w->way->batch * w->sample.targets, counted = 0;
    assert_ok(read(NULL, step, 0, w->way->batch, w->token, w->target));
    for (int64_t i = 0; i < words; i++)
        counted += w->target[i] >= 0;
    w->scale = 1.0 / (double)counted;
}

/* Unit `u` of a replica, in update k of the window, whose samples begin at `first`. */
static void unit(machine *w, int u, int m, int k, int64_t start, int first,
                 emulation *out)
{
    int stages = w->way->stages;
    for (int s = 0; s < stages; s++)
        walk(w, s, NAMI_WALK_F, forward_weights(w, s, u, m, start, out), start + k,
             first);
    for (int i = 0; i < w->micro; i++)
        out->loss[start + k] += w->loss[i] * w->scale;
    for (int s = stages - 1; s >= 0; s--) {
        if (w->way->rerun != NULL && w->way->rerun[s])
            walk(w, s, NAMI_WALK_F, again_weights(w, s, u, m, start), start + k, first);
        walk(w, s, NAMI_WALK_B, backward_weights(w, s, u, m), start + k, first);
    }
}

static void one_update(machine *w, int k, int64_t start, emulate_read read,
                       emulation *out)
{
    int m = w->way->units / w->way->replicas;
    read_update(w, read, start + k);
    for (int s = 0; s < w->way->stages; s++)
        memset(w->part[s].grad, 0, (size_t)w->part[s].count * sizeof(double));
    for (int i = 0; i < w->way->units; i++)
        unit(w, k * m + i % m, m, k, start, i * w->micro, out);
    for (int s = 0; s < w->way->stages; s++)
        update(w, s, k, start + k);
}

/* The newest numbers become number 0. */
static void drain(machine *w, int made)
{
    for (int s = 0; s < w->way->stages; s++) {
        part *p = &w->part[s];
        size_t bytes = (size_t)p->count * sizeof(double);
        memcpy(p->weights[0], p->weights[made], bytes);
        memcpy(p->m[0], p->m[made], bytes);
        memcpy(p->v[0], p->v[made], bytes);
    }
}

static void keep_values(machine *w, emulation *out)
{
    for (int s = 0; s < w->way->stages; s++) {
        const part *p = &w->part[s];
        for (int u = 0; u < p->uses; u++) {
            int param = nami_graph_use_param(p->graph, u);
            int64_t count = nami_shape_count(&w->model->param[param].shape);
            out->param[param] = zeroed(count, sizeof(double));
            memcpy(out->param[param], p->weights[0] + p->at[u],
                   (size_t)count * sizeof(double));
        }
    }
}

void emulate(const nami_model *m, const emulate_way *way, int updates,
             emulate_read read, emulation *out)
{
    machine w = {.way = way, .model = m, .micro = way->batch / way->units};
    *out = (emulation){.params = m->params};
    out->param = zeroed(m->params, sizeof *out->param);
    assert_true(way->stages <= EMULATE_STAGES && updates <= EMULATE_UPDATES);
    assert_ok(nami_backend_open("ref", 1, NAMI_F64, &w.backend));
    w.sample = nami_model_sample_of(m, way->time);
    assert_int_equal(w.sample.side, 0); /* which stages would read */
    w.token = zeroed(way->batch * w.sample.words, sizeof *w.token);
    w.target = zeroed(way->batch * w.sample.targets, sizeof *w.target);
    w.loss = zeroed(w.micro, sizeof *w.loss);
    for (int s = 0; s < way->stages; s++)
        open_part(&w, s);
    for (int start = 0; start < updates; start += way->window) {
        int made = updates - start < way->window ? updates - start : way->window;
        for (int k = 0; k < made; k++)
            one_update(&w, k, start, read, out);
        drain(&w, made);
    }
    keep_values(&w, out);
    for (int s = 0; s < way->stages; s++)
        close_part(&w, &w.part[s]);
    nami_free(w.token);
    nami_free(w.target);
    nami_free(w.loss);
    nami_backend_close(w.backend);
}

void emulate_free(emulation *e)
{
    for (int p = 0; p < e->params; p++)
        nami_free(e->param[p]);
    nami_free(e->param);
}
