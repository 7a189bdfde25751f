/* SPDX-License-Identifier: MIT */
/* route_choose.c - buffers and slots of the tasks of one position. */
#include "exec/route_choose.h"

#include "base/memory.h"

/* Choosing for one position. Tables are [stages * units * slices]: a unit runs in one copy of the model. */
typedef struct chooser {
    const nami_route_times *t;
    const nami_schedule *s;
    int position;
    nami_route *route;
    double *closed;             /* end of the last backward (evaluate: forward) */
    int *in, *out, *dout, *din; /* buffers */
    int *kept, *held; /* slots; kept, data, opened, shut: of a unit, at its slice 0 */
    int *data;
    int *opened, *shut; /* how many slices have been opened and closed */
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
    NAMI_CHECK(c->idle || c->route->buffers == 0);
    for (int b = 0; b < c->route->buffers; b++) {
        if (c->idle[b] <= from && (best < 0 || c->idle[b] < c->idle[best]))
            best = b;
    }
    if (best < 0) {
        best = c->route->buffers++;
        if (best >= c->capacity) {
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
    if (nami_route_local(c->s, a, to)) {
        int64_t there = cell(c, to, a);
        return here[there] = take(c, start, c->closed[there]);
    }
    if (!nami_route_remote(c->s, a, to))
        return -1;
    int64_t at = cell(c, a.stage, a);
    return away[at] = take(c, start, nami_route_arrival(c->t, a, send));
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
    note_closings(c);
    for (int64_t i = 0; i < c->route->count; i++) {
        nami_task *task = &c->route->task[i];
        const nami_semantics *is = nami_semantics_of(task->action.kind);
        if (is->compute)
            choose_compute(c, task, c->t->start[c->position][i]);
        else if (is->sends || is->receives)
            choose_message(c, task, c->t->start[c->position][i]);
    }
}

void nami_route_choose(const nami_route_times *t, int position, nami_route *r)
{
    const nami_schedule *s = t->s;
    size_t cells = (size_t)s->place.stages * (size_t)s->recipe.microbatches *
                   (size_t)s->recipe.slices;
    chooser c = {.t = t, .s = s, .position = position, .route = r};
    size_t pools = 3 * (size_t)r->stages + 1;
    int *table = nami_calloc(NAMI_MEM_OTHER, 9 * cells, sizeof *table);
    c.in = table, c.out = table + cells, c.dout = table + 2 * cells;
    c.din = table + 3 * cells, c.kept = table + 4 * cells, c.held = table + 5 * cells;
    c.opened = table + 6 * cells, c.shut = table + 7 * cells;
    c.data = table + 8 * cells;
    c.closed = nami_calloc(NAMI_MEM_OTHER, cells, sizeof *c.closed);
    c.busy = nami_calloc(NAMI_MEM_OTHER, pools, sizeof *c.busy);
    c.room = nami_calloc(NAMI_MEM_OTHER, pools, sizeof *c.room);
    choose(&c);
    for (size_t i = 0; i < pools; i++)
        nami_free(c.busy[i]);
    nami_free(table);
    nami_free(c.closed);
    nami_free(c.busy);
    nami_free(c.room);
    nami_free(c.idle);
}
