/* SPDX-License-Identifier: MIT */
/* ring.c - versions of the weights: which slot holds which, and what was really read. */
#include "base/memory.h"
#include "exec/state.h"

void nami_rings_open(nami_exec *e)
{
    const nami_share *s = &e->share;
    size_t units = (size_t)s->units;
    size_t most = 0;
    e->ring = nami_calloc(NAMI_MEM_OTHER, (size_t)s->stages + 1, sizeof *e->ring);
    for (int i = 0; i < s->stages; i++) {
        const nami_share_stage *t = &s->stage[i];
        nami_ring *r = &e->ring[i];
        r->number = nami_calloc(NAMI_MEM_OTHER, (size_t)t->versions, sizeof *r->number);
        r->early = nami_calloc(NAMI_MEM_OTHER, units, sizeof *r->early);
        for (int k = 0; k < 2; k++)
            r->read[k] = nami_calloc(NAMI_MEM_OTHER, units, sizeof *r->read[k]);
        r->seen = (nami_exec_staleness){.stage = t->stage, .versions = 1};
        r->moved_made = -1;
        most = t->weights > most ? t->weights : most;
        most = t->packed > most ? t->packed : most;
    }
    if (e->config.poison && most > 0) {
        e->nan = nami_alloc(NAMI_MEM_OTHER, most);
        memset(e->nan, 0xff, most);
    }
}

void nami_rings_close(nami_exec *e)
{
    for (int i = 0; e->ring != NULL && i < e->share.stages; i++) {
        nami_free(e->ring[i].number);
        nami_free(e->ring[i].early);
        nami_free(e->ring[i].read[0]);
        nami_free(e->ring[i].read[1]);
    }
    nami_free(e->ring);
    nami_free(e->nan);
}

/* --- packed copies --- */

void nami_ring_pack(nami_exec *e, int local, int slot)
{
    nami_graph_call call = nami_exec_call(e, local, slot, NULL);
    nami_walk w;
    nami_walk_begin(&w, e->share.stage[local].train, NAMI_WALK_PACK, &call);
    while (nami_walk_next(&w))
        nami_exec_progress(e);
}

void nami_exec_pack(nami_exec *e)
{
    for (int i = 0; i < e->share.stages; i++)
        nami_ring_pack(e, i, e->ring[i].base);
    nami_exec_finish_lane(e);
}

/* --- windows --- */

/* What lies in `slot` must not be read any more. */
static void poison(nami_exec *e, int local, int slot)
{
    const nami_share_stage *t = &e->share.stage[local];
    nami_backend *b = e->config.backend;
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        if (h->local == local && h->stride > 0)
            nami_backend_copy(b, NAMI_LANE_COMPUTE, nami_ring_weight(e, i, slot),
                              e->nan, (size_t)h->count * e->share.wide);
    }
    if (t->packed > 0)
        nami_backend_copy(b, NAMI_LANE_COMPUTE,
                          e->packed + t->packed_at + (size_t)slot * t->packed, e->nan,
                          t->packed);
}

void nami_rings_begin(nami_exec *e)
{
    for (int i = 0; i < e->share.stages; i++) {
        nami_ring *r = &e->ring[i];
        r->made = r->forwards = 0;
        r->moved_made = -1;
        r->number[r->base] = 0;
        for (int v = 1; e->nan != NULL && v < e->share.stage[i].slots; v++)
            poison(e, i, (r->base + v) % e->share.stage[i].slots);
    }
}

void nami_rings_turn(nami_exec *e, const nami_route *route)
{
    for (int i = 0; i < e->share.stages; i++)
        e->ring[i].base = nami_ring_slot(e, i, e->ring[i].made % route->versions[i]);
}

/* --- moved weights --- */

static nami_optim_item item_of(nami_exec *e, int i, int slot)
{
    const nami_share_param *h = &e->share.param[i];
    nami_optim_item item = {.count = h->count, .w = nami_ring_weight(e, i, slot)};
    nami_optim_place(e->config.optim, e->state + h->at, e->share.state, &item);
    return item;
}

/* Whether parameter `i` is one of stage `local` that has versions. */
static bool versioned(const nami_exec *e, int i, int local)
{
    return e->share.param[i].local == local && e->share.param[i].stride > 0;
}

/* The moved weights of a stage are those of `slot`, moved by `by` updates: forward along the optimiser's direction, or
 * back along the mean of updates. */
static void move(nami_exec *e, int local, int slot, double by, double rate)
{
    nami_ring *r = &e->ring[local];
    nami_backend *b = e->config.backend;
    const int moved = e->share.stage[local].versions;
    const nami_dtype wide = e->config.layout->wide;
    if (r->moved_by == by && r->moved_made == r->made && r->moved_rate == rate)
        return;
    r->moved_by = by;
    r->moved_made = r->made;
    r->moved_rate = rate;
    for (int i = 0; i < e->share.params; i++) {
        if (!versioned(e, i, local))
            continue;
        const nami_optim_item item = item_of(e, i, slot);
        void *out = nami_ring_weight(e, i, moved);
        if (e->moves[i].predict != NULL)
            nami_predict_weights(e->config.optim, b, NAMI_LANE_COMPUTE, &e->moves[i],
                                 wide, &item, rate, by, e->step + r->made, out);
        else
            nami_predict_correct(b, NAMI_LANE_COMPUTE, &e->moves[i], wide, &item, by,
                                 out);
        nami_exec_progress(e);
    }
    nami_ring_pack(e, local, moved);
}

int nami_ring_use(nami_exec *e, const nami_task *task)
{
    int slot = nami_ring_slot(e, task->local, task->action.version);
    bool forward = task->action.kind == NAMI_F || task->action.kind == NAMI_R;
    bool predicts = e->config.layout->recipe.weights == NAMI_WEIGHTS_PREDICT;
    if (!e->train || !nami_share_moves(&e->blueprint) || forward != predicts)
        return slot;
    if (predicts)
        move(e, task->local, slot, task->late, e->rate[task->group]);
    else
        move(e, task->local, slot, task->gap, 0);
    return e->share.stage[task->local].versions;
}

void nami_ring_before(nami_exec *e, const nami_update *u)
{
    const int moved = e->share.stage[u->local].versions;
    for (int i = 0; e->config.optim->correct && i < e->share.params; i++) {
        if (versioned(e, i, u->local))
            nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE,
                              nami_ring_weight(e, i, moved),
                              nami_ring_weight(e, i, u->from),
                              (size_t)e->share.param[i].count * e->share.wide);
    }
}

void nami_ring_behind(nami_exec *e, const nami_update *u)
{
    const int moved = e->share.stage[u->local].versions;
    const nami_optim_options *o = e->config.optim;
    const double gamma = nami_predict_gamma(o->correct_decay, u->gap);
    for (int i = 0; o->correct && i < e->share.params; i++) {
        if (!versioned(e, i, u->local))
            continue;
        const nami_optim_item item = item_of(e, i, u->to);
        nami_predict_drift(e->config.backend, NAMI_LANE_COMPUTE, &e->moves[i],
                           e->config.layout->wide, &item, nami_ring_weight(e, i, moved),
                           item.w, gamma);
    }
}

/* --- what was read --- */

static void count(nami_exec_delays *d, int32_t delay)
{
    d->least = d->units == 0 || delay < d->least ? delay : d->least;
    d->most = d->units == 0 || delay > d->most ? delay : d->most;
    d->sum += delay;
    d->units++;
}

void nami_ring_used(nami_exec *e, const nami_task *task)
{
    nami_ring *r = &e->ring[task->local];
    int slot = nami_ring_slot(e, task->local, task->action.version);
    int32_t number = r->number[slot];
    bool forward = task->action.kind == NAMI_F;
    if (task->action.kind != NAMI_R)
        r->read[forward ? 0 : 1][task->action.unit] = number;
    if (forward) {
        r->forwards++;
        r->early[task->action.unit] = r->made == 0;
    }
    if (r->made - number + 1 > r->seen.versions)
        r->seen.versions = r->made - number + 1;
    if (e->nan != NULL && task->dies >= 0)
        poison(e, task->local, slot);
}

void nami_ring_made(nami_exec *e, const nami_task *task)
{
    nami_ring *r = &e->ring[task->local];
    nami_exec_staleness *s = &r->seen;
    int from = nami_ring_slot(e, task->local, task->from);
    int to = nami_ring_slot(e, task->local, task->action.version);
    int m = nami_recipe_group(&e->config.layout->recipe), k = task->action.unit;
    bool drains = r->forwards == e->units;
    for (int u = k * m; u < (k + 1) * m; u++) {
        nami_exec_delays *d = r->early[u] ? s->fill : drains ? s->drain : s->steady;
        for (int pass = 0; pass < 2; pass++)
            count(&d[pass], r->number[from] - r->read[pass][u]);
    }
    r->number[to] = ++r->made;
    if (e->nan != NULL && task->dies >= 0)
        poison(e, task->local, from);
}

int nami_exec_stages(const nami_exec *e, int most, nami_exec_staleness *out)
{
    int n = 0;
    for (; n < e->share.stages && n < most; n++)
        out[n] = e->ring[n].seen;
    return n;
}
