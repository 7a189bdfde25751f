/* SPDX-License-Identifier: MIT */
/* route.c - choose buffers and slots. */
#include "exec/route.h"

#include "base/memory.h"
#include "sched/staleness.h"

/* Unit costs of the walk: a fused backward is two units, a message one, so that a buffer is not wanted
 * again while its message is likely to be on its way. */
static double cost_of(nami_action a)
{
    if (!nami_semantics_of(a.kind)->compute)
        return 0;
    return a.kind == NAMI_B ? 2 : 1;
}

enum { DELAY = 1 };

/* Times of all actions and messages in the walk. */
typedef struct timing {
    const nami_schedule *s;
    double *clock;         /* [positions] */
    double **start, **end; /* [positions][count] */
    double *posted, *sent; /* [keys] */
} timing;

static double arrival(const timing *t, int64_t key)
{
    double last = t->posted[key] > t->sent[key] ? t->posted[key] : t->sent[key];
    return last + DELAY;
}

/* The key of the message of `kind` that stage and unit of `a` send or receive. */
static int64_t key_of(const nami_schedule *s, nami_action a, nami_kind kind)
{
    a.kind = (uint8_t)kind;
    return nami_action_key(s, a);
}

/* Whether stage `to` exists and lies on another position than the stage of `a`. */
static bool remote(const nami_schedule *s, nami_action a, int to)
{
    return to >= 0 && to < s->place.stages &&
           nami_place_of(&s->place, a.copy, to) !=
               nami_place_of(&s->place, a.copy, a.stage);
}

static bool local(const nami_schedule *s, nami_action a, int to)
{
    return to >= 0 && to < s->place.stages && !remote(s, a, to);
}

static void visit(void *context, int position, int64_t index)
{
    timing *t = context;
    nami_action a = t->s->list[position].item[index];
    const nami_semantics *is = nami_semantics_of(a.kind);
    double start = t->clock[position], message = 0;
    if (is->needs_input && remote(t->s, a, a.stage - 1))
        message = arrival(t, key_of(t->s, a, NAMI_RECV_F));
    else if (is->needs_gradient && remote(t->s, a, a.stage + 1))
        message = arrival(t, key_of(t->s, a, NAMI_RECV_B));
    start = message > start ? message : start;
    if (is->sends)
        t->sent[nami_action_key(t->s, a)] = start;
    if (is->receives)
        t->posted[nami_action_key(t->s, a)] = start;
    t->start[position][index] = start;
    t->end[position][index] = t->clock[position] = start + cost_of(a);
}

static nami_status timing_make(const nami_schedule *s, timing *t)
{
    size_t positions = (size_t)s->place.positions, keys = (size_t)nami_schedule_keys(s);
    *t = (timing){.s = s};
    t->clock = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *t->clock);
    t->start = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *t->start);
    t->end = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *t->end);
    t->posted = nami_calloc(NAMI_MEM_OTHER, keys, sizeof *t->posted);
    t->sent = nami_calloc(NAMI_MEM_OTHER, keys, sizeof *t->sent);
    for (size_t p = 0; p < positions; p++) {
        size_t count = (size_t)s->list[p].count + 1;
        t->start[p] = nami_calloc(NAMI_MEM_OTHER, count, sizeof(double));
        t->end[p] = nami_calloc(NAMI_MEM_OTHER, count, sizeof(double));
    }
    return nami_schedule_walk(s, visit, t);
}

static void timing_free(timing *t)
{
    for (int p = 0; p < t->s->place.positions; p++) {
        nami_free(t->start[p]);
        nami_free(t->end[p]);
    }
    nami_free(t->clock);
    nami_free(t->start);
    nami_free(t->end);
    nami_free(t->posted);
    nami_free(t->sent);
}

/* Choosing for one position. Tables are [stages * units * slices]: a unit runs in one copy of the model. */
typedef struct chooser {
    const timing *t;
    const nami_schedule *s;
    int position;
    nami_route *route;
    double *closed;             /* end of the last backward (evaluate: forward) */
    int *in, *out, *dout, *din; /* buffers */
    int *kept, *held; /* slots; kept, data, opened, shut: of a unit, at its slice 0 */
    int *data;
    int *opened, *shut; /* how many slices have been opened and closed */
    int *local;         /* [copies * stages] index among the position's */
    double *idle;       /* [buffers] from when each buffer is free */
    int capacity;
    bool **busy; /* [3 * route stages] slots in use: kept, then held, then data */
    int *room;   /* [3 * route stages] length of busy */
} chooser;

static int64_t cell(const chooser *c, int stage, nami_action a)
{
    const nami_recipe *r = &c->s->recipe;
    return ((int64_t)stage * r->microbatches + a.unit) * r->slices + a.slice;
}

/* A buffer for [from, to]: of those free by then the one that is free longest; else a new one. */
static int take(chooser *c, double from, double to)
{
    int best = -1;
    for (int b = 0; b < c->route->buffers; b++) {
        if (c->idle[b] <= from && (best < 0 || c->idle[b] < c->idle[best]))
            best = b;
    }
    if (best < 0) {
        best = c->route->buffers++;
        if (best == c->capacity) {
            c->capacity = 2 * c->capacity + 8;
            c->idle = nami_realloc(NAMI_MEM_OTHER, c->idle,
                                   (size_t)c->capacity * sizeof *c->idle);
        }
    }
    c->idle[best] = to;
    return best;
}

/* The lowest free slot of pool `pool`, counting the largest number ever used into *most. */
static int open_slot(chooser *c, int pool, int *most)
{
    int slot = 0;
    while (slot < c->room[pool] && c->busy[pool][slot])
        slot++;
    if (slot == c->room[pool]) {
        c->busy[pool] = nami_realloc(NAMI_MEM_OTHER, c->busy[pool],
                                     (size_t)(slot + 1) * sizeof(bool));
        c->room[pool]++;
    }
    c->busy[pool][slot] = true;
    *most = slot + 1 > *most ? slot + 1 : *most;
    return slot;
}

/* Slots of saved values: kept and data from the first F of a unit's slices to their last backward, held from BI to BW.
 * Where the forward runs again, what it saves lies in the only slot of the stage until the backward behind it. */
static void choose_slots(chooser *c, nami_task *task)
{
    nami_action a = task->action;
    int64_t at = cell(c, a.stage, a), unit = at - a.slice;
    int keeps = task->local, holds = c->route->stages + task->local;
    int data = holds + c->route->stages;
    const nami_semantics *is = nami_semantics_of(a.kind);
    bool train = c->s->purpose == NAMI_PURPOSE_TRAIN;
    if (is->opens_saved && c->opened[unit]++ == 0) {
        c->data[unit] = open_slot(c, data, &c->route->data[task->local]);
        if (c->route->again[task->local])
            c->route->kept[task->local] = 1;
        else
            c->kept[unit] = open_slot(c, keeps, &c->route->kept[task->local]);
    }
    if (a.kind == NAMI_BI)
        c->held[at] = open_slot(c, holds, &c->route->held[task->local]);
    task->kept = c->kept[unit];
    task->data = c->data[unit];
    if (a.kind == NAMI_BI || a.kind == NAMI_BW)
        task->held = c->held[at];
    if (is->closes_saved || (!train && is->opens_saved))
        c->shut[unit]++;
    if (c->shut[unit] == c->s->recipe.slices) {
        c->busy[data][task->data] = false;
        if (!c->route->again[task->local])
            c->busy[keeps][task->kept] = false;
    }
    if (a.kind == NAMI_BW)
        c->busy[holds][task->held] = false;
}

/* Buffer of what `a` makes, at `start`: the neighbour's own when it is here, else a message to send. */
static int made(chooser *c, nami_action a, int to, double start, int *here, int *away,
                nami_kind send)
{
    if (local(c->s, a, to)) {
        int64_t there = cell(c, to, a);
        return here[there] = take(c, start, c->closed[there]);
    }
    if (!remote(c->s, a, to))
        return -1;
    int64_t at = cell(c, a.stage, a);
    return away[at] = take(c, start, arrival(c->t, key_of(c->s, a, send)));
}

static void choose_compute(chooser *c, nami_task *task, double start)
{
    nami_action a = task->action;
    const nami_semantics *is = nami_semantics_of(a.kind);
    int64_t at = cell(c, a.stage, a);
    choose_slots(c, task);
    if (is->makes_output)
        task->out = made(c, a, a.stage + 1, start, c->in, c->out, NAMI_SEND_F);
    if (is->makes_gradient)
        task->din = made(c, a, a.stage - 1, start, c->dout, c->din, NAMI_SEND_B);
    task->in = a.stage > 0 ? c->in[at] : -1;
    bool forward = a.kind == NAMI_F || a.kind == NAMI_R;
    task->dout = forward || a.stage + 1 == c->s->place.stages ? -1 : c->dout[at];
}

static void choose_message(chooser *c, nami_task *task, double start)
{
    nami_action a = task->action;
    int64_t at = cell(c, a.stage, a);
    task->peer = nami_action_peer(c->s, a);
    task->tag = (int)nami_action_key(c->s, a);
    if (a.kind == NAMI_RECV_F)
        task->in = c->in[at] = take(c, start, c->closed[at]);
    else if (a.kind == NAMI_RECV_B)
        task->dout = c->dout[at] = take(c, start, c->closed[at]);
    else if (a.kind == NAMI_SEND_F)
        task->out = c->out[at];
    else
        task->din = c->din[at];
}

/* When each value of the position is last read: the end of the last backward, or of F in an evaluation. */
static void note_closings(chooser *c)
{
    const nami_list *l = &c->s->list[c->position];
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        const nami_semantics *is = nami_semantics_of(a.kind);
        if (is->closes_saved ||
            (c->s->purpose == NAMI_PURPOSE_EVALUATE && is->opens_saved))
            c->closed[cell(c, a.stage, a)] = c->t->end[c->position][i];
    }
}

static void choose(chooser *c)
{
    const nami_list *l = &c->s->list[c->position];
    note_closings(c);
    for (int64_t i = 0; i < l->count; i++) {
        nami_task *task = &c->route->task[i];
        nami_action a = l->item[i];
        const nami_semantics *is = nami_semantics_of(a.kind);
        *task = (nami_task){.action = a,
                            .local = c->local[a.copy * c->s->place.stages + a.stage]};
        task->in = task->out = task->dout = task->din = -1;
        task->kept = task->held = task->data = task->peer = task->tag = -1;
        task->dies = -1;
        task->group = a.unit < 0     ? 0
                      : is->per_unit ? a.unit / nami_recipe_group(&c->s->recipe)
                                     : a.unit;
        if (a.kind == NAMI_UPDATE)
            task->from = task->group % c->route->versions[task->local];
        if (a.kind == NAMI_BI)
            c->route->split[task->local] = true;
        if (is->compute)
            choose_compute(c, task, c->t->start[c->position][i]);
        else if (is->sends || is->receives)
            choose_message(c, task, c->t->start[c->position][i]);
    }
}

/* What a list says of each stage beforehand. */
static void note_stages(chooser *c)
{
    const nami_schedule *s = c->s;
    nami_route *r = c->route;
    const nami_list *l = &s->list[c->position];
    for (int i = 0; i < r->stages; i++)
        r->versions[i] = nami_schedule_versions(s, r->copy[i], r->stage[i]);
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        if (a.kind == NAMI_R)
            r->again[c->local[a.copy * s->place.stages + a.stage]] = true;
    }
}

/* From the end of the list on: which action is the last of a group to add to its stage's gradients, and which is the last
 * to read a version. */
static void note_last(chooser *c)
{
    enum { SLOTS = 256 };
    nami_route *r = c->route;
    bool *ends = nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *ends);
    bool *needed =
        nami_calloc(NAMI_MEM_OTHER, ((size_t)r->stages + 1) * SLOTS, sizeof *needed);
    for (int i = 0; i < r->stages; i++)
        needed[i * SLOTS + nami_recipe_updates(&c->s->recipe) % r->versions[i]] = true;
    for (int64_t i = r->count - 1; i >= 0; i--) {
        nami_task *t = &r->task[i];
        const nami_semantics *is = nami_semantics_of(t->action.kind);
        bool updates = t->action.kind == NAMI_UPDATE;
        bool *need = needed + t->local * SLOTS;
        int read = updates ? t->from : t->action.version;
        if (t->action.kind == NAMI_REDUCE || t->action.kind == NAMI_REDUCE_SCATTER)
            ends[t->local] = true;
        if (is->adds_gradient) {
            t->completes = ends[t->local];
            ends[t->local] = false;
        }
        if (updates && read != t->action.version)
            need[t->action.version] = false;
        if (!updates && !is->compute)
            continue;
        t->dies = need[read] ? -1 : read;
        need[read] = true;
    }
    nami_free(ends);
    nami_free(needed);
}

/* Delays of units and their means for updates, as the policies need them that keep no versions. */
static void note_delays(chooser *c)
{
    nami_route *r = c->route;
    const int units = c->s->recipe.microbatches, m = nami_recipe_group(&c->s->recipe);
    int32_t *forward = nami_alloc(NAMI_MEM_OTHER, 2 * (size_t)units * sizeof *forward);
    int32_t *backward = forward + units;
    for (int i = 0; i < r->stages; i++) {
        nami_schedule_delays(c->s, r->stage[i], forward, backward);
        for (int64_t k = 0; k < r->count; k++) {
            nami_task *t = &r->task[k];
            bool updates = t->action.kind == NAMI_UPDATE;
            if (t->local != i ||
                (!updates && !nami_semantics_of(t->action.kind)->compute))
                continue;
            int first = updates ? t->group * m : t->action.unit, n = updates ? m : 1;
            for (int u = first; u < first + n; u++) {
                t->late += (double)forward[u] / n;
                t->gap += (double)(forward[u] - backward[u]) / n;
            }
        }
    }
    nami_free(forward);
}

static void route_open(chooser *c, const nami_schedule *s, nami_route *r)
{
    size_t most = (size_t)s->place.copies * (size_t)s->place.stages;
    r->stage = nami_calloc(NAMI_MEM_OTHER, most, sizeof *r->stage);
    r->copy = nami_calloc(NAMI_MEM_OTHER, most, sizeof *r->copy);
    for (int copy = 0; copy < s->place.copies; copy++) {
        int n = nami_place_local(&s->place, c->position, copy, r->stage + r->stages);
        for (int i = 0; i < n; i++)
            r->copy[r->stages++] = copy;
    }
    r->kept = nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *r->kept);
    r->held = nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *r->held);
    r->split = nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *r->split);
    r->again = nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *r->again);
    r->data = nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *r->data);
    r->versions =
        nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *r->versions);
    r->count = s->list[c->position].count;
    r->task = nami_calloc(NAMI_MEM_OTHER, (size_t)r->count + 1, sizeof *r->task);
}

static void route_position(const timing *t, int position, nami_route *r)
{
    const nami_schedule *s = t->s;
    size_t cells = (size_t)s->place.stages * (size_t)s->recipe.microbatches *
                   (size_t)s->recipe.slices;
    chooser c = {.t = t, .s = s, .position = position, .route = r};
    route_open(&c, s, r);
    size_t pools = 3 * (size_t)r->stages + 1;
    int *table = nami_calloc(NAMI_MEM_OTHER, 9 * cells, sizeof *table);
    c.in = table, c.out = table + cells, c.dout = table + 2 * cells;
    c.din = table + 3 * cells, c.kept = table + 4 * cells, c.held = table + 5 * cells;
    c.opened = table + 6 * cells, c.shut = table + 7 * cells;
    c.data = table + 8 * cells;
    c.closed = nami_calloc(NAMI_MEM_OTHER, cells, sizeof *c.closed);
    c.busy = nami_calloc(NAMI_MEM_OTHER, pools, sizeof *c.busy);
    c.room = nami_calloc(NAMI_MEM_OTHER, pools, sizeof *c.room);
    c.local =
        nami_calloc(NAMI_MEM_OTHER, (size_t)s->place.copies * (size_t)s->place.stages,
                    sizeof *c.local);
    for (int i = 0; i < r->stages; i++)
        c.local[r->copy[i] * s->place.stages + r->stage[i]] = i;
    note_stages(&c);
    choose(&c);
    note_last(&c);
    if (s->recipe.weights == NAMI_WEIGHTS_PREDICT ||
        s->recipe.weights == NAMI_WEIGHTS_NEWEST)
        note_delays(&c);
    for (size_t i = 0; i < pools; i++)
        nami_free(c.busy[i]);
    nami_free(table);
    nami_free(c.closed);
    nami_free(c.busy);
    nami_free(c.room);
    nami_free(c.local);
    nami_free(c.idle);
}

/* What the executor carries out so far; the rest is refused here, not ignored there. */
static nami_status check_known(const nami_schedule *s)
{
    const unsigned sliced = 1u << NAMI_REDUCE_SCATTER | 1u << NAMI_GATHER;
    const unsigned known = 1u << NAMI_F | 1u << NAMI_B | 1u << NAMI_BI | 1u << NAMI_BW |
                           1u << NAMI_SEND_F | 1u << NAMI_RECV_F | 1u << NAMI_SEND_B |
                           1u << NAMI_RECV_B | 1u << NAMI_REDUCE | 1u << NAMI_UPDATE |
                           1u << NAMI_R | sliced;
    const unsigned other = s->recipe.zero ? 1u << NAMI_REDUCE : sliced;
    bool flushes = nami_recipe_flushes(&s->recipe);
    for (int p = 0; p < s->place.positions; p++) {
        bool updating = false; /* one norm over all gradients comes before any update */
        for (int64_t i = 0; i < s->list[p].count; i++) {
            nami_action a = s->list[p].item[i];
            if (flushes && updating && a.kind != NAMI_UPDATE && a.kind != NAMI_GATHER)
                return nami_fail(
                    NAMI_EPLAN,
                    "position %d, entry %lld: %s comes after an UPDATE, but "
                    "updates end a step",
                    p, (long long)i, nami_semantics_of(a.kind)->name);
            updating = a.kind == NAMI_UPDATE || a.kind == NAMI_GATHER;
            if (!(known >> a.kind & 1u))
                return nami_fail(
                    NAMI_EPLAN,
                    "position %d, entry %lld: an action %s cannot be run yet", p,
                    (long long)i, nami_semantics_of(a.kind)->name);
            if (other >> a.kind & 1u)
                return nami_fail(NAMI_EPLAN,
                                 "position %d, entry %lld: %s does not go with "
                                 "pipeline.zero = %d",
                                 p, (long long)i, nami_semantics_of(a.kind)->name,
                                 s->recipe.zero);
        }
    }
    return NAMI_OK;
}

nami_status nami_routes_make(const nami_schedule *s, nami_route *out)
{
    timing t;
    for (int p = 0; p < s->place.positions; p++)
        out[p] = (nami_route){0};
    NAMI_TRY(check_known(s));
    nami_status status = timing_make(s, &t);
    for (int p = 0; status == NAMI_OK && p < s->place.positions; p++)
        route_position(&t, p, &out[p]);
    timing_free(&t);
    return status;
}

void nami_routes_free(nami_route *route, int positions)
{
    for (int p = 0; p < positions; p++) {
        nami_free(route[p].task);
        nami_free(route[p].stage);
        nami_free(route[p].copy);
        nami_free(route[p].kept);
        nami_free(route[p].held);
        nami_free(route[p].split);
        nami_free(route[p].again);
        nami_free(route[p].data);
        nami_free(route[p].versions);
        route[p] = (nami_route){0};
    }
}
