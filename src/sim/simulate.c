/* SPDX-License-Identifier: MIT */
/* simulate.c - when each action runs, if positions do their lists in order and wait for data only. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/sim.h"

/* Where one position is. */
typedef struct place_state {
    double clock;       /* it computes up to here */
    double lane;        /* its REDUCEs run up to here */
    double first, last; /* start of its first and end of its last action */
    double busy;
} place_state;

typedef struct simulation {
    const nami_schedule *s;
    const nami_cost *cost;
    double
        scale; /* times are kept in units of 1/scale: S K/P for uniform costs, else 1 */
    bool uniform;    /* all stages cost the same */
    double *left[2]; /* [stages][units][slices] when output, gradient left its stage */
    double *posted
        [2]; /* the same: when the receive of it was posted; NULL without communication */
    double *reduced;     /* [copies][stages] end of its REDUCE */
    place_state *place;  /* [positions] */
    nami_timeline *line; /* NULL when not asked for */
} simulation;

static int64_t at(const simulation *m, nami_action a, int stage)
{
    const nami_recipe *r = &m->s->recipe;
    return ((int64_t)stage * r->microbatches + a.unit) * r->slices + a.slice;
}

static double own(const double *table, double uniform, int stage)
{
    return table != NULL ? table[stage] : uniform;
}

/* Compute time of one action, in scaled units. */
static double duration(const simulation *m, nami_action a)
{
    const nami_cost *c = m->cost;
    double slices = m->s->recipe.slices;
    double stage = m->uniform ? slices /* a stage of the whole micro-batch */
                              : (double)m->s->place.positions / m->s->place.stages;
    double f = own(c->stage_f, c->tf * stage, a.stage) / slices;
    double bi = own(c->stage_bi, c->tbi * stage, a.stage) / slices;
    double bw = own(c->stage_bw, c->tbw * stage, a.stage) / slices;
    double again = m->s->recipe.recompute ? f : 0.0;
    switch (a.kind) {
    case NAMI_F:
    case NAMI_R:
        return f;
    case NAMI_B:
        return bi + bw + again;
    case NAMI_BI:
        return bi + again;
    case NAMI_BW:
        return bw;
    case NAMI_UPDATE:
        return c->update * stage;
    case NAMI_REDUCE:
    case NAMI_REDUCE_SCATTER:
    case NAMI_GATHER:
        return c->reduce * stage;
    default:
        return 0.0;
    }
}

/* Travel time of a message across the boundary behind stage `b`. */
static double travel(const simulation *m, int b)
{
    const nami_cost *c = m->cost;
    double bytes = c->bytes != NULL ? c->bytes[b] : 0.0;
    return (c->latency + (c->bandwidth > 0.0 ? bytes / c->bandwidth : 0.0)) * m->scale;
}

static void record(const simulation *m, int position, nami_action a, double start,
                   double end)
{
    if (m->line == NULL)
        return;
    int64_t *count = &m->line->count[position];
    m->line->span[position][(*count)++] =
        (nami_span){.action = a, .start = start, .end = end};
}

/* When what stage `from` made (0: output, 1: gradient) is there for action `a`. */
static double arrival(const simulation *m, nami_action a, int from, int direction,
                      int position)
{
    double left = m->left[direction][at(m, a, from)];
    if (nami_place_of(&m->s->place, a.copy, from) == position)
        return left;
    if (m->posted[direction] != NULL)
        left = fmax(left, m->posted[direction][at(m, a, a.stage)]);
    double end = left + travel(m, direction == 0 ? from : a.stage);
    if (end > left) {
        a.kind = direction == 0 ? NAMI_RECV_F : NAMI_RECV_B;
        record(m, position, a, left, end);
    }
    return end;
}

static double ready(const simulation *m, nami_action a, int position)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    double when = m->place[position].clock;
    if (is->needs_input && a.stage > 0)
        when = fmax(when, arrival(m, a, a.stage - 1, 0, position));
    if (is->needs_gradient && a.stage + 1 < m->s->place.stages)
        when = fmax(when, arrival(m, a, a.stage + 1, 1, position));
    for (int c = 0; a.kind == NAMI_UPDATE && c < m->s->place.copies; c++)
        when = fmax(when, m->reduced[(int64_t)c * m->s->place.stages + a.stage]);
    return when;
}

static void note(place_state *p, double start, double end)
{
    if (start < p->first)
        p->first = start;
    if (end > p->last)
        p->last = end;
}

/* A sum of gradients runs beside the computation. */
static void reduce(simulation *m, int position, nami_action a)
{
    place_state *p = &m->place[position];
    double start = fmax(p->clock, p->lane);
    p->lane = start + duration(m, a);
    m->reduced[(int64_t)a.copy * m->s->place.stages + a.stage] = p->lane;
    note(p, start, p->lane);
    record(m, position, a, start, p->lane);
}

/* Run `a` from `start` on; what it makes leaves at `leaves`. */
static void run(simulation *m, int position, nami_action a, double start, double leaves)
{
    place_state *p = &m->place[position];
    const nami_semantics *is = nami_semantics_of(a.kind);
    double end = start + duration(m, a);
    p->clock = end;
    p->busy += end - start;
    note(p, start, end);
    record(m, position, a, start, end);
    if (is->makes_output)
        m->left[0][at(m, a, a.stage)] = leaves;
    if (is->makes_gradient)
        m->left[1][at(m, a, a.stage)] = leaves;
}

static void compute(simulation *m, int position, int64_t index)
{
    const nami_list *l = &m->s->list[position];
    nami_action a = l->item[index];
    if (nami_list_pair(l, index - 1))
        return; /* ran with the first of its pair */
    double start = ready(m, a, position);
    if (!nami_list_pair(l, index)) {
        run(m, position, a, start, start + duration(m, a));
        return;
    }
    nami_action b = l->item[index + 1];
    start = fmax(start, ready(m, b, position));
    double middle = start + duration(m, a), end = middle + duration(m, b);
    run(m, position, a, start, end);
    run(m, position, b, middle, end);
}

static void visit(void *context, int position, int64_t index)
{
    simulation *m = context;
    nami_action a = m->s->list[position].item[index];
    double clock = m->place[position].clock;
    switch (a.kind) {
    case NAMI_SEND_F:
    case NAMI_SEND_B:
        m->left[a.kind == NAMI_SEND_B][at(m, a, a.stage)] = clock;
        return;
    case NAMI_RECV_F:
    case NAMI_RECV_B:
        m->posted[a.kind == NAMI_RECV_B][at(m, a, a.stage)] = clock;
        return;
    case NAMI_REDUCE:
    case NAMI_REDUCE_SCATTER:
    case NAMI_GATHER:
        reduce(m, position, a);
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

static void close_timeline(const simulation *m)
{
    for (int p = 0; p < m->line->positions; p++) {
        for (int64_t i = 0; i < m->line->count[p]; i++) {
            m->line->span[p][i].start /= m->scale;
            m->line->span[p][i].end /= m->scale;
        }
        qsort(m->line->span[p], (size_t)m->line->count[p], sizeof(nami_span), by_start);
    }
}

static double weights_on(const nami_place *p, int position)
{
    int held = 0;
    for (int64_t i = 0; i < (int64_t)p->copies * p->stages; i++)
        held += p->position[i] == position;
    return (double)held;
}

/* Turn what was simulated into the prediction. */
static void summarise(const simulation *m, nami_prediction *out)
{
    int positions = m->s->place.positions;
    double first = INFINITY, last = 0.0, idle = 0.0;
    double chunks = (double)m->s->place.stages / positions;
    for (int p = 0; p < positions; p++) {
        first = fmin(first, m->place[p].first);
        last = fmax(last, m->place[p].last);
    }
    double makespan = last > first ? last - first : 0.0;
    for (int p = 0; p < positions; p++) {
        const place_state *q = &m->place[p];
        double span = q->last > q->first ? q->last - q->first : 0.0;
        idle += makespan - q->busy;
        out->idle[p] = (makespan - q->busy) / m->scale;
        out->busy[p] = q->busy / m->scale;
        if (span > 0.0)
            out->span_bubble = fmax(out->span_bubble, (span - q->busy) / span);
        out->peak[p] =
            (double)nami_schedule_held(m->s, p) / (chunks * m->s->recipe.slices);
        out->weights[p] = weights_on(&m->s->place, p) / chunks;
    }
    out->makespan = makespan / m->scale;
    out->bubble = makespan > 0.0 ? idle / (positions * makespan) : 0.0;
    out->messages = nami_schedule_messages(m->s);
}

static void open_prediction(int positions, nami_prediction *out)
{
    size_t n = (size_t)positions;
    *out = (nami_prediction){0};
    out->idle = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->busy = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->peak = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->weights = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
}

static void open_simulation(simulation *m)
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
    for (size_t p = 0; p < positions; p++)
        m->place[p].first = INFINITY;
}

static void close_simulation(simulation *m)
{
    for (int d = 0; d < 2; d++) {
        nami_free(m->left[d]);
        nami_free(m->posted[d]);
    }
    nami_free(m->reduced);
    nami_free(m->place);
}

nami_status nami_simulate(const nami_schedule *s, const nami_cost *cost,
                          bool want_timeline, nami_prediction *out)
{
    simulation m = {.s = s, .cost = cost};
    open_simulation(&m);
    open_prediction(s->place.positions, out);
    if (want_timeline) {
        open_timeline(s, &out->timeline);
        m.line = &out->timeline;
    }
    nami_status status = nami_schedule_walk(s, visit, &m);
    if (status == NAMI_OK) {
        summarise(&m, out);
        if (want_timeline)
            close_timeline(&m);
    }
    close_simulation(&m);
    return status;
}

void nami_prediction_free(nami_prediction *p)
{
    nami_free(p->idle);
    nami_free(p->busy);
    nami_free(p->peak);
    nami_free(p->weights);
    nami_timeline_free(&p->timeline);
    *p = (nami_prediction){0};
}
