/* SPDX-License-Identifier: MIT */
/* simulate.c - when each action runs, if positions do their lists in order and wait for data only. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/inner.h"

static void record(const nami_sim *m, int position, nami_action a, double start,
                   double end)
{
    if (m->line == NULL)
        return;
    int64_t *count = &m->line->count[position];
    m->line->span[position][(*count)++] =
        (nami_span){.action = a, .start = start, .end = end};
}

/* The latest of what an action waits for. */
typedef struct wait {
    double until;
    int cause; /* nami_cause */
} wait;

static void wait_for(wait *w, double until, int cause)
{
    if (until <= w->until)
        return;
    w->until = until;
    w->cause = cause;
}

/* Wait for what stage `from` made (0: output, 1: gradient) and action `a` needs. */
static void wait_for_value(const nami_sim *m, nami_action a, int from, int direction,
                           int position, wait *w)
{
    double left = m->left[direction][nami_sim_at(m, a, from)];
    int cause = direction == 0 ? NAMI_CAUSE_OUTPUT : NAMI_CAUSE_GRADIENT;
    int maker = nami_place_of(&m->s->place, a.copy, from);
    if (maker == position) {
        wait_for(w, left, cause);
        return;
    }
    if (m->posted[direction] != NULL) {
        double posted = m->posted[direction][nami_sim_at(m, a, a.stage)];
        cause = posted > left ? NAMI_CAUSE_POSTED : cause;
        left = fmax(left, posted);
    }
    double end =
        left + nami_sim_travel(m, direction == 0 ? from : a.stage, maker, position);
    wait_for(w, end, cause);
    if (end > left) {
        a.kind = direction == 0 ? NAMI_RECV_F : NAMI_RECV_B;
        record(m, position, a, left, end);
    }
}

static wait ready(const nami_sim *m, nami_action a, int position)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    wait w = {.until = m->place[position].clock, .cause = NAMI_CAUSE_OWN};
    if (is->needs_input && a.stage > 0)
        wait_for_value(m, a, a.stage - 1, 0, position, &w);
    if (is->needs_gradient && a.stage + 1 < m->s->place.stages)
        wait_for_value(m, a, a.stage + 1, 1, position, &w);
    for (int c = 0; a.kind == NAMI_UPDATE && c < m->s->place.copies; c++)
        wait_for(&w, m->reduced[(int64_t)c * m->s->place.stages + a.stage],
                 NAMI_CAUSE_COPY + c);
    return w;
}

static void note(nami_sim_place *p, int64_t index, double start, double end)
{
    if (start < p->first)
        p->first = start;
    if (end < p->last)
        return;
    p->last = end;
    p->ending = index;
}

/* A sum of gradients runs beside the computation, or alone. */
static void reduce(nami_sim *m, int position, int64_t index)
{
    nami_sim_place *p = &m->place[position];
    nami_action a = m->s->list[position].item[index];
    double start = fmax(p->clock, p->lane);
    m->cause[position][index] = p->lane > p->clock ? NAMI_CAUSE_LANE : NAMI_CAUSE_OWN;
    p->lane = start + nami_sim_duration(m, a);
    if (m->cost->reduce_alone)
        p->clock = p->lane;
    m->reduced[(int64_t)a.copy * m->s->place.stages + a.stage] = p->lane;
    note(p, index, start, p->lane);
    record(m, position, a, start, p->lane);
}

/* What stage `a.stage` made leaves it at `when`, as soon as the link to stage `to` is free. */
static void leave(nami_sim *m, int position, nami_action a, int to, double when)
{
    bool gradient = to < a.stage;
    if (to >= 0 && to < m->s->place.stages) {
        int peer = nami_place_of(&m->s->place, a.copy, to);
        if (peer != position)
            when = nami_sim_depart(m, gradient ? to : a.stage, position, peer, when);
    }
    m->left[gradient][nami_sim_at(m, a, a.stage)] = when;
}

/* The value that `a` makes for stage `to` is there at `when`; where lists communicate, a SEND lets it leave. */
static void make(nami_sim *m, int position, nami_action a, int to, double when)
{
    if (m->s->communicates)
        m->left[to < a.stage][nami_sim_at(m, a, a.stage)] = when;
    else
        leave(m, position, a, to, when);
}

/* Run entry `index` from `start` on; what it makes leaves at `leaves`, unless a SEND says when. */
static void run(nami_sim *m, int position, int64_t index, double start, double leaves)
{
    nami_sim_place *p = &m->place[position];
    nami_action a = m->s->list[position].item[index];
    const nami_semantics *is = nami_semantics_of(a.kind);
    double end = start + nami_sim_duration(m, a);
    p->clock = end;
    p->busy += end - start;
    m->start[position][index] = start;
    if (a.stage == 0 && a.kind == NAMI_F)
        m->emptying = end;
    if (a.stage == 0 && is->makes_gradient && m->full < 0.0)
        m->full = end;
    note(p, index, start, end);
    record(m, position, a, start, end);
    if (is->makes_output)
        make(m, position, a, a.stage + 1, leaves);
    if (is->makes_gradient)
        make(m, position, a, a.stage - 1, leaves);
}

static void compute(nami_sim *m, int position, int64_t index)
{
    const nami_list *l = &m->s->list[position];
    nami_action a = l->item[index];
    if (nami_sim_pair(m, l, index - 1))
        return; /* ran with the first of its pair */
    wait w = ready(m, a, position);
    m->cause[position][index] = (uint8_t)w.cause;
    if (!nami_sim_pair(m, l, index)) {
        run(m, position, index, w.until, w.until + nami_sim_duration(m, a));
        return;
    }
    nami_action b = l->item[index + 1];
    wait other = ready(m, b, position);
    if (other.until > w.until) {
        w.until = other.until;
        m->cause[position][index] = (uint8_t)(other.cause | NAMI_CAUSE_OTHER);
    }
    m->cause[position][index + 1] = NAMI_CAUSE_OWN;
    double middle = w.until + nami_sim_duration(m, a);
    double end = middle + nami_sim_duration(m, b);
    run(m, position, index, w.until, end);
    run(m, position, index + 1, middle, end);
}

static void visit(void *context, int position, int64_t index)
{
    nami_sim *m = context;
    nami_action a = m->s->list[position].item[index];
    double clock = m->place[position].clock;
    switch (a.kind) {
    case NAMI_SEND_F:
        leave(m, position, a, a.stage + 1, clock);
        return;
    case NAMI_SEND_B:
        leave(m, position, a, a.stage - 1, clock);
        return;
    case NAMI_RECV_F:
    case NAMI_RECV_B:
        m->posted[a.kind == NAMI_RECV_B][nami_sim_at(m, a, a.stage)] = clock;
        return;
    case NAMI_REDUCE:
    case NAMI_REDUCE_SCATTER:
    case NAMI_GATHER:
        reduce(m, position, index);
        return;
    case NAMI_DRAIN:
        return;
    default:
        compute(m, position, index);
    }
}

static int by_start(const void *a, const void *b)
{
    double x = ((const nami_span *)a)->start, y = ((const nami_span *)b)->start;
    return (x > y) - (x < y);
}

static void open_timeline(const nami_schedule *s, nami_timeline *t)
{
    size_t positions = (size_t)s->place.positions;
    t->positions = s->place.positions;
    t->span = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *t->span);
    t->count = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *t->count);
    for (size_t p = 0; p < positions; p++) /* a message for each action at most */
        t->span[p] = nami_alloc(NAMI_MEM_OTHER,
                                2 * (size_t)s->list[p].count * sizeof(nami_span));
}

static void close_timeline(const nami_sim *m)
{
    for (int p = 0; p < m->line->positions; p++) {
        for (int64_t i = 0; i < m->line->count[p]; i++) {
            m->line->span[p][i].start /= m->scale;
            m->line->span[p][i].end /= m->scale;
        }
        qsort(m->line->span[p], (size_t)m->line->count[p], sizeof(nami_span), by_start);
    }
}

static void open_simulation(nami_sim *m)
{
    const nami_schedule *s = m->s;
    const nami_cost *c = m->cost;
    size_t stages = (size_t)s->place.stages, positions = (size_t)s->place.positions;
    size_t values = stages * (size_t)s->recipe.microbatches * (size_t)s->recipe.slices;
    m->uniform = c->stage_f == NULL && c->stage_bi == NULL && c->stage_bw == NULL;
    m->scale = m->uniform ? (double)stages * s->recipe.slices / (double)positions : 1.0;
    for (int d = 0; d < 2; d++) {
        m->left[d] = nami_alloc(NAMI_MEM_OTHER, values * sizeof(double));
        if (s->communicates)
            m->posted[d] = nami_calloc(NAMI_MEM_OTHER, values, sizeof(double));
    }
    m->reduced =
        nami_calloc(NAMI_MEM_OTHER, (size_t)s->place.copies * stages, sizeof(double));
    m->place = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *m->place);
    m->cause = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *m->cause);
    m->start = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *m->start);
    m->full = m->emptying = -1.0;
    for (size_t p = 0; p < positions; p++) {
        m->start[p] =
            nami_alloc(NAMI_MEM_OTHER, ((size_t)s->list[p].count + 1) * sizeof(double));
        m->place[p].first = INFINITY;
        m->cause[p] = nami_alloc(NAMI_MEM_OTHER, (size_t)s->list[p].count + 1);
    }
}

static void close_simulation(nami_sim *m)
{
    for (int d = 0; d < 2; d++) {
        nami_free(m->left[d]);
        nami_free(m->posted[d]);
    }
    for (int p = 0; p < m->s->place.positions; p++) {
        nami_free(m->cause[p]);
        nami_free(m->start[p]);
        nami_free(m->place[p].peer);
        nami_free(m->place[p].free);
    }
    nami_free(m->cause);
    nami_free(m->start);
    nami_free(m->reduced);
    nami_free(m->place);
}

nami_status nami_simulate(const nami_schedule *s, const nami_cost *cost,
                          bool want_timeline, nami_prediction *out)
{
    nami_sim m = {.s = s, .cost = cost, .out = out};
    open_simulation(&m);
    nami_prediction_open(s->place.positions, out);
    if (want_timeline) {
        open_timeline(s, &out->timeline);
        m.line = &out->timeline;
    }
    nami_status status = nami_schedule_walk(s, visit, &m);
    if (status == NAMI_OK) {
        nami_sim_summarise(&m, out);
        if (want_timeline)
            close_timeline(&m);
    }
    close_simulation(&m);
    return status;
}
