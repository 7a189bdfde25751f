/* SPDX-License-Identifier: MIT */
/* share.c - lay out what one position holds. */
#include "exec/share.h"

#include "base/memory.h"

int nami_share_leaves(const nami_layout *l)
{
    return l->train.place.copies > 1 ? 1 : l->partials / l->replicas;
}

bool nami_share_moves(const nami_blueprint *p)
{
    const nami_weights weights = p->layout->recipe.weights;
    return weights == NAMI_WEIGHTS_PREDICT ||
           (weights == NAMI_WEIGHTS_NEWEST && p->optim->correct);
}

int nami_share_levels(int leaves)
{
    int most = 1;
    for (int done = 0; done < leaves; done++) {
        int complete =
            0; /* sums that wait while the next one grows: the ones in the binary form */
        for (int bits = done; bits > 0; bits &= bits - 1)
            complete++;
        most = complete + 1 > most ? complete + 1 : most;
    }
    return most;
}

/* --- parameters of a position --- */

static nami_share_param *param_find(nami_share *s, int param)
{
    for (int i = 0; i < s->params; i++) {
        if (s->param[i].param == param)
            return &s->param[i];
    }
    return NULL;
}

static nami_share_param *param_add(nami_share *s, int local, int param)
{
    nami_share_param *h = &s->param[s->params++];
    *h = (nami_share_param){.param = param, .local = local};
    h->count = nami_shape_count(&s->blueprint->model->param[param].shape);
    h->own = nami_slice_of(s->blueprint, s->position, s->replica, param);
    h->at = s->state;
    s->state += nami_share_round((size_t)h->own.count * s->wide);
    h->whole = s->whole;
    s->whole += nami_share_round((size_t)h->count * s->wide);
    h->square = s->square;
    s->square += (int)(s->blueprint->square[param + 1] - s->blueprint->square[param]);
    return h;
}

/* The weights that came with stage `local`, parameters from `first` on: statistics, then the ring. */
static void place_weights(nami_share *s, int local, int first)
{
    nami_share_stage *t = &s->stage[local];
    const nami_param *param = s->blueprint->model->param;
    for (int ring = 0; ring < 2; ring++) {
        size_t start = s->parameter;
        for (int i = first; i < s->params; i++) {
            nami_share_param *h = &s->param[i];
            if (param[h->param].statistic == (ring == 1))
                continue;
            h->weight = s->parameter;
            s->parameter += nami_share_round((size_t)h->count * s->wide);
        }
        t->weights = s->parameter - start;
    }
    s->parameter += (size_t)(t->slots - 1) * t->weights;
    for (int i = first; i < s->params; i++)
        s->param[i].stride = param[s->param[i].param].statistic ? 0 : t->weights;
}

/* The uses of one stage: a gradient sum each, a parameter where it is new here. */
static void stage_uses(nami_share *s, int local)
{
    nami_share_stage *t = &s->stage[local];
    int first = s->params;
    t->uses = nami_graph_uses(t->train);
    t->param = nami_calloc(NAMI_MEM_OTHER, (size_t)t->uses + 1, sizeof *t->param);
    t->sum = nami_calloc(NAMI_MEM_OTHER, (size_t)t->uses + 1, sizeof *t->sum);
    t->sum_at = s->gradient;
    for (int u = 0; u < t->uses; u++) {
        int param = nami_graph_use_param(t->train, u);
        nami_share_param *h = param_find(s, param);
        if (h == NULL)
            h = param_add(s, local, param);
        t->param[u] = (int)(h - s->param);
        t->sum[u] = s->gradient;
        s->gradient += nami_share_round((size_t)h->count * s->wide);
    }
    t->sum_count = (int64_t)((s->gradient - t->sum_at) / s->wide);
    place_weights(s, local, first);
}

/* --- memory of a position --- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes of a state on the fullest replica: all of a position need the same memory. */
static size_t fullest(const nami_share *s)
{
    const nami_blueprint *p = s->blueprint;
    size_t most = 0;
    for (int r = 0; r < nami_layout_replicas(p->layout, s->position); r++) {
        size_t bytes = 0;
        for (int i = 0; i < s->params; i++)
            bytes += nami_share_round(
                (size_t)nami_slice_of(p, s->position, r, s->param[i].param).count *
                s->wide);
        most = larger(most, bytes);
    }
    return most;
}

/* Refuse `slots` slots of `kept` bytes whose sum over stages could not be counted. */
static nami_status check_slots(const nami_share *s, int slots, size_t kept)
{
    const double bytes = (double)s->activation + (double)slots * (double)kept;
    if (bytes <= 0x1p60)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "position %d holds %.3g bytes of activations, too many for any "
                     "memory",
                     s->position, bytes);
}

/* Plan both graphs of a stage and place its slots and packed weights. */
static nami_status stage_plan(nami_share *s, int local)
{
    const nami_blueprint *p = s->blueprint;
    nami_share_stage *t = &s->stage[local];
    t->stage = s->train->stage[local];
    t->copy = s->train->copy[local];
    NAMI_TRY(nami_blueprint_graph(p, t->stage, s->samples.micro, &t->train));
    NAMI_TRY(nami_blueprint_graph(p, t->stage, s->samples.micro, &t->evaluate));
    NAMI_TRY(
        nami_graph_plan(t->train, true, s->train->split[local], p->layout->recompute));
    NAMI_TRY(nami_graph_plan(t->evaluate, false, false, false));
    const nami_graph_sizes *a = nami_graph_bytes(t->train),
                           *e = nami_graph_bytes(t->evaluate);
    NAMI_CHECK(a->packed == e->packed); /* one packed copy serves both */
    t->kept = nami_share_round(larger(a->kept, e->kept));
    t->held = nami_share_round(a->held);
    size_t slices = (size_t)nami_layout_slices(p->layout);
    int slots = s->train->kept[local] > s->evaluate->kept[local]
                    ? s->train->kept[local]
                    : s->evaluate->kept[local];
    NAMI_TRY(
        check_slots(s, slots + s->train->held[local], slices * (t->kept + t->held)));
    t->kept_at = s->activation;
    t->held_at = t->kept_at + (size_t)slots * slices * t->kept;
    s->activation = t->held_at + (size_t)s->train->held[local] * t->held;
    t->output_at = s->activation;
    if (s->train->again[local])
        s->activation += nami_share_round(s->crossing[t->stage + 1]);
    t->versions = s->train->versions[local];
    t->slots = t->versions + nami_share_moves(p);
    t->packed = nami_share_round(a->packed);
    t->packed_at = s->packed;
    s->packed += (size_t)t->slots * t->packed;
    s->transient = larger(s->transient, larger(a->transient, e->transient));
    s->shared = larger(s->shared, (size_t)nami_graph_shared(t->train) * sizeof(double));
    return NAMI_OK;
}

/* Messages are as large as what crosses their boundary, buffers as the largest of them. */
static void find_crossings(nami_share *s)
{
    const nami_layout *l = s->blueprint->layout;
    const int stages = l->train.place.stages;
    s->crossing = nami_calloc(NAMI_MEM_OTHER, (size_t)stages + 1, sizeof *s->crossing);
    for (int i = 1; i < stages; i++) {
        s->crossing[i] = (size_t)s->samples.micro *
                         (size_t)nami_model_boundary(s->blueprint->model, l->cut[i],
                                                     l->time / nami_layout_slices(l)) *
                         nami_dtype_size(l->act);
        s->boundary = larger(s->boundary, nami_share_round(s->crossing[i]));
    }
}

static void find_parts(nami_share *s)
{
    const nami_layout *l = s->blueprint->layout;
    const int positions = l->train.place.positions;
    s->parts_most = nami_layout_replicas_most(l);
    s->parts = nami_calloc(NAMI_MEM_OTHER, (size_t)positions, sizeof *s->parts);
    s->part = nami_calloc(NAMI_MEM_OTHER, (size_t)(positions * s->parts_most),
                          sizeof *s->part);
    for (int p = 0; p < positions; p++)
        s->parts[p] = nami_layout_parts(l, s->position, s->replica, p,
                                        s->part + (size_t)p * s->parts_most);
}

static int more(int a, int b)
{
    return a > b ? a : b;
}

/* Samples whose tokens or targets stage `stage` of `copy`, which is here, holds at once. */
static size_t samples_held(const nami_share *s, int copy, int stage)
{
    int units = s->samples.units;
    for (int i = 0; s->rolling && i < s->stages; i++) {
        if (s->stage[i].stage == stage && s->stage[i].copy == copy)
            units = more(s->train->data[i], s->evaluate->data[i]);
    }
    return (size_t)units * (size_t)s->samples.micro;
}

/* Each stage reads the side words of the units it holds; with a flush all share those of the step. */
static void side_memory(nami_share *s)
{
    const size_t words = (size_t)s->sample.side * sizeof(int32_t);
    for (int i = 0; i < s->stages && words > 0; i++) {
        nami_share_stage *t = &s->stage[i];
        const size_t bytes = samples_held(s, t->copy, t->stage) * words;
        t->side_at = s->rolling ? s->side : 0;
        s->side = s->rolling ? s->side + bytes : bytes;
    }
    if (words > 0)
        s->reading =
            (size_t)s->samples.micro * (size_t)s->sample.words * sizeof(int32_t);
}

/* Samples, losses and messages. */
static void outer_memory(nami_share *s)
{
    const nami_layout *l = s->blueprint->layout;
    const nami_place *place = &l->train.place;
    size_t slices = (size_t)nami_layout_slices(l), last = (size_t)place->stages - 1;
    s->sample = nami_model_sample_of(s->blueprint->model, l->time);
    s->rolling = !nami_recipe_flushes(&l->recipe);
    s->units = more(l->train.recipe.microbatches, l->evaluate.recipe.microbatches);
    const size_t rows = 3 * (size_t)s->sample.losses;
    size_t words = (size_t)s->sample.words * sizeof(int32_t);
    size_t targets = (size_t)s->sample.targets * sizeof(int32_t);
    for (int c = 0; c < place->copies; c++) {
        if (nami_place_of(place, c, 0) == s->position)
            s->tokens = samples_held(s, c, 0) * words;
        if (nami_place_of(place, c, (int)last) == s->position) {
            s->targets = samples_held(s, c, (int)last) * targets;
            s->losses = rows * (size_t)s->units * (size_t)s->samples.micro * slices *
                        sizeof(double);
            s->tally = s->rolling ? (size_t)l->micro * targets : 0;
        }
    }
    side_memory(s);
    if (s->rolling)
        s->history = (size_t)l->window * (size_t)s->params * sizeof(double);
    if (slices > 1 && s->tokens + s->targets > 0)
        s->arrange = (size_t)s->samples.micro * (size_t)l->time * sizeof(int32_t);
    find_parts(s);
    s->squares = (size_t)s->square * sizeof(double);
    s->buffers = s->train->buffers > s->evaluate->buffers ? s->train->buffers
                                                          : s->evaluate->buffers;
    s->merge = ((size_t)l->window *
                    (rows * (size_t)l->batch +
                     (size_t)s->blueprint->square[s->blueprint->model->params] +
                     (size_t)s->sample.losses) +
                (size_t)(s->sample.losses * nami_layout_replicas_most(l))) *
               sizeof(double);
}

/* Bytes by tag, exactly as new.c asks for them. A device's memory is mirrored on the host where MPI, I/O
 * and the source need it. */
static void count_bytes(nami_share *s)
{
    size_t mirror = s->blueprint->backend->host ? 1 : 2;
    s->bytes[NAMI_MEM_PARAMETER] = s->parameter;
    s->bytes[NAMI_MEM_OPTIMIZER] = (size_t)s->states * s->state;
    s->bytes[NAMI_MEM_GRADIENT] = (size_t)s->levels * s->gradient + s->exchange;
    s->bytes[NAMI_MEM_PACKED] = s->packed;
    s->bytes[NAMI_MEM_ACTIVATION] = s->activation;
    s->bytes[NAMI_MEM_TRANSIENT] = s->transient;
    s->bytes[NAMI_MEM_MESSAGE] =
        mirror * ((size_t)s->buffers * s->boundary + s->losses + s->squares) +
        s->merge + s->history;
    if (mirror == 2)
        s->bytes[NAMI_MEM_MESSAGE] += s->gradient + s->exchange + s->shared;
    s->bytes[NAMI_MEM_DATA] = mirror * (s->tokens + s->targets + s->side) + s->arrange +
                              s->tally + s->reading;
}

nami_status nami_share_make(const nami_blueprint *p, int position, int replica,
                            nami_share *out)
{
    const nami_layout *l = p->layout;
    *out = (nami_share){.blueprint = p,
                        .position = position,
                        .replica = replica,
                        .samples = nami_layout_samples_of(l, position, replica)};
    out->train = &p->train[position];
    out->evaluate = &p->evaluate[position];
    out->stages = out->train->stages;
    out->levels = nami_share_levels(nami_share_leaves(l));
    out->states = nami_optim_states(p->optim);
    out->wide = nami_dtype_size(l->wide);
    out->stage =
        nami_calloc(NAMI_MEM_OTHER, (size_t)out->stages + 1, sizeof *out->stage);
    out->param =
        nami_calloc(NAMI_MEM_OTHER, (size_t)p->model->params + 1, sizeof *out->param);
    find_crossings(out);
    for (int i = 0; i < out->stages; i++) {
        NAMI_TRY(stage_plan(out, i));
        stage_uses(out, i);
    }
    out->state = fullest(out);
    NAMI_TRY(nami_share_exchange(out));
    outer_memory(out);
    count_bytes(out);
    return NAMI_OK;
}

void nami_share_free(nami_share *s)
{
    for (int i = 0; i < s->stages && s->stage != NULL; i++) {
        if (s->stage[i].train != NULL)
            nami_graph_free(s->stage[i].train);
        if (s->stage[i].evaluate != NULL)
            nami_graph_free(s->stage[i].evaluate);
        nami_free(s->stage[i].param);
        nami_free(s->stage[i].sum);
    }
    nami_free(s->stage);
    nami_free(s->param);
    nami_free(s->move);
    nami_free(s->crossing);
    nami_free(s->part);
    nami_free(s->parts);
    *s = (nami_share){0};
}
