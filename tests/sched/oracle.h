/* SPDX-License-Identifier: MIT */
/* oracle.h - judge lists a second time, by another road than the product's: the explicit graph of all actions.
 *
 * Every rule is an edge "this before that"; lists are right when each expected action is there once, on its
 * position, and the graph has no cycle. The longest path gives the makespan, in whole numbers. Slow and plain.
 */
#ifndef NAMI_TEST_ORACLE_H
#define NAMI_TEST_ORACLE_H

#include <stdlib.h>

#include "sched/order.h"

typedef struct oracle_edge {
    int to, next;
    int64_t weight; /* from the end of one to the start of the other */
} oracle_edge;

typedef struct oracle {
    const nami_schedule *s;
    int nodes, edges, room;
    nami_action *action; /* [nodes] */
    int *position;       /* [nodes] */
    int *head, *waits;   /* [nodes] */
    int64_t *start, *cost;
    oracle_edge *edge;
    int *id; /* [NAMI_KINDS][stages][units or 1], -1 */
    bool twice;
} oracle;

/* Whole-number costs: of a stage each, and of a message. */
typedef struct oracle_costs {
    const int64_t *f, *bi, *bw; /* [stages] */
    int64_t latency;
} oracle_costs;

static inline int *oracle_id(const oracle *o, int kind, int stage, int unit)
{
    return &o->id[((int64_t)kind * o->s->place.stages + stage) *
                      o->s->recipe.microbatches +
                  (unit > 0 ? unit : 0)];
}

static inline void oracle_before(oracle *o, int from, int to, int64_t weight)
{
    if (from < 0 || to < 0)
        return;
    if (o->edges == o->room) {
        o->room = o->room ? 2 * o->room : 64;
        o->edge = realloc(o->edge, (size_t)o->room * sizeof *o->edge);
    }
    o->edge[o->edges] =
        (oracle_edge){.to = to, .next = o->head[from], .weight = weight};
    o->head[from] = o->edges++;
    o->waits[to]++;
}

/* Number the actions; false when one cannot belong to the schedule. */
static inline bool oracle_number(oracle *o)
{
    const nami_schedule *s = o->s;
    for (int p = 0; p < s->place.positions; p++) {
        for (int64_t i = 0; i < s->list[p].count; i++) {
            nami_action a = s->list[p].item[i];
            bool whole = a.kind == NAMI_REDUCE || a.kind == NAMI_UPDATE;
            if (a.kind >= NAMI_KINDS || a.stage >= s->place.stages || a.copy != 0 ||
                a.version != 0)
                return false;
            if (whole ? a.unit != -1 : a.unit < 0 || a.unit >= s->recipe.microbatches)
                return false;
            if (s->place.position[a.stage] != p ||
                *oracle_id(o, a.kind, a.stage, a.unit) >= 0)
                return false;
            *oracle_id(o, a.kind, a.stage, a.unit) = o->nodes;
            o->action[o->nodes] = a;
            o->position[o->nodes] = p;
            o->head[o->nodes] = -1;
            o->nodes++;
        }
    }
    return true;
}

/* Whether exactly the expected actions of a stage and unit are there. */
static inline bool oracle_expected(const oracle *o, int stage, int unit)
{
    const nami_schedule *s = o->s;
    const int *at = s->place.position;
    bool train = s->purpose == NAMI_PURPOSE_TRAIN, talk = s->communicates;
    bool before = stage > 0 && at[stage - 1] != at[stage];
    bool behind = stage + 1 < s->place.stages && at[stage + 1] != at[stage];
    bool split = *oracle_id(o, NAMI_BI, stage, unit) >= 0;
    const bool want[NAMI_KINDS] = {
        [NAMI_F] = true,
        [NAMI_B] = train && !split,
        [NAMI_BI] = train && split,
        [NAMI_BW] = train && split,
        [NAMI_R] = *oracle_id(o, NAMI_R, stage, unit) >= 0 && train,
        [NAMI_SEND_F] = talk && behind,
        [NAMI_RECV_F] = talk && before,
        [NAMI_SEND_B] = talk && before && train,
        [NAMI_RECV_B] = talk && behind && train,
    };
    for (int kind = 0; kind <= NAMI_RECV_B; kind++) {
        if ((*oracle_id(o, kind, stage, unit) >= 0) != want[kind])
            return false;
    }
    return true;
}

static inline bool oracle_complete(const oracle *o)
{
    const nami_schedule *s = o->s;
    for (int stage = 0; stage < s->place.stages; stage++) {
        for (int unit = 0; unit < s->recipe.microbatches; unit++) {
            if (!oracle_expected(o, stage, unit))
                return false;
        }
        for (int kind = NAMI_REDUCE; kind < NAMI_KINDS; kind++) {
            bool want = (kind == NAMI_REDUCE || kind == NAMI_UPDATE) && s->updates;
            if ((*oracle_id(o, kind, stage, -1) >= 0) != want)
                return false;
        }
    }
    return true;
}

/* The rules of one stage and unit. */
static inline void oracle_unit(oracle *o, int stage, int unit, int64_t latency)
{
    const int *at = o->s->place.position;
    int stages = o->s->place.stages;
#define ID(kind, stage) (*oracle_id(o, kind, stage, unit))
    int f = ID(NAMI_F, stage), w = ID(NAMI_BW, stage);
    int b = ID(NAMI_B, stage) >= 0 ? ID(NAMI_B, stage) : ID(NAMI_BI, stage);
    oracle_before(o, f, b, 0);
    oracle_before(o, f, ID(NAMI_R, stage), 0);
    oracle_before(o, ID(NAMI_R, stage), b, 0);
    oracle_before(o, b, w, 0);
    oracle_before(o, f, ID(NAMI_SEND_F, stage), 0);
    oracle_before(o, b, ID(NAMI_SEND_B, stage), 0);
    oracle_before(o, ID(NAMI_RECV_F, stage), f, latency);
    oracle_before(o, ID(NAMI_RECV_B, stage), b, latency);
    if (stage + 1 < stages) {
        int after =
            ID(NAMI_B, stage + 1) >= 0 ? ID(NAMI_B, stage + 1) : ID(NAMI_BI, stage + 1);
        bool apart = at[stage] != at[stage + 1], talk = apart && o->s->communicates;
        oracle_before(o, talk ? ID(NAMI_SEND_F, stage) : f, ID(NAMI_F, stage + 1),
                      apart ? latency : 0);
        oracle_before(o, talk ? ID(NAMI_SEND_B, stage + 1) : after, b,
                      apart ? latency : 0);
    }
    for (int k = 0; k < 3; k++) {
        const int compute[3] = {f, b, w};
        if (k > 0)
            oracle_before(o, compute[k], *oracle_id(o, NAMI_REDUCE, stage, -1), 0);
        oracle_before(o, compute[k], *oracle_id(o, NAMI_UPDATE, stage, -1), 0);
    }
#undef ID
}

static inline void oracle_edges(oracle *o, int64_t latency)
{
    for (int n = 1; n < o->nodes; n++) {
        if (o->position[n] == o->position[n - 1])
            oracle_before(o, n - 1, n, 0);
    }
    for (int stage = 0; stage < o->s->place.stages; stage++) {
        for (int unit = 0; unit < o->s->recipe.microbatches; unit++)
            oracle_unit(o, stage, unit, latency);
        oracle_before(o, *oracle_id(o, NAMI_REDUCE, stage, -1),
                      *oracle_id(o, NAMI_UPDATE, stage, -1), 0);
    }
}

static inline int64_t oracle_cost(nami_action a, const oracle_costs *c)
{
    switch (a.kind) {
    case NAMI_F:
    case NAMI_R:
        return c->f[a.stage];
    case NAMI_B:
        return c->bi[a.stage] + c->bw[a.stage];
    case NAMI_BI:
        return c->bi[a.stage];
    case NAMI_BW:
        return c->bw[a.stage];
    default:
        return 0;
    }
}

/* Longest path; -1 when the graph has a cycle. */
static inline int64_t oracle_longest(oracle *o, const oracle_costs *c)
{
    int *queue = malloc(((size_t)o->nodes + 1) * sizeof *queue), done = 0, queued = 0;
    int64_t last = 0;
    for (int n = 0; n < o->nodes; n++) {
        if (o->waits[n] == 0)
            queue[queued++] = n;
    }
    for (; done < queued; done++) {
        int n = queue[done];
        int64_t end = o->start[n] + oracle_cost(o->action[n], c);
        last = end > last ? end : last;
        for (int e = o->head[n]; e >= 0; e = o->edge[e].next) {
            int to = o->edge[e].to;
            if (end + o->edge[e].weight > o->start[to])
                o->start[to] = end + o->edge[e].weight;
            if (--o->waits[to] == 0)
                queue[queued++] = to;
        }
    }
    free(queue);
    return done == o->nodes ? last : -1;
}

/* Units of stages held at once on a position, counted action by action. */
static inline bool oracle_held(const nami_schedule *s)
{
    const nami_order *order = nami_order_find(s->recipe.order);
    for (int p = 0; p < s->place.positions && order && s->purpose == NAMI_PURPOSE_TRAIN;
         p++) {
        int64_t held = 0;
        for (int64_t i = 0; i < s->list[p].count; i++) {
            int kind = s->list[p].item[i].kind;
            held += kind == NAMI_F;
            if (held > order->held(&s->recipe, p))
                return false;
            held -= kind == NAMI_B || kind == NAMI_BW;
        }
    }
    return true;
}

/* Makespan of the lists with whole-number costs, or -1 when the lists are wrong. */
static inline int64_t oracle_makespan(const nami_schedule *s, const oracle_costs *c)
{
    oracle o = {.s = s};
    size_t nodes = 1, ids = (size_t)NAMI_KINDS * (size_t)s->place.stages *
                            (size_t)s->recipe.microbatches;
    for (int p = 0; p < s->place.positions; p++)
        nodes += (size_t)s->list[p].count;
    o.action = calloc(nodes, sizeof *o.action);
    o.position = calloc(nodes, sizeof *o.position);
    o.head = calloc(nodes, sizeof *o.head);
    o.waits = calloc(nodes, sizeof *o.waits);
    o.start = calloc(nodes, sizeof *o.start);
    o.id = malloc(ids * sizeof *o.id);
    for (size_t i = 0; i < ids; i++)
        o.id[i] = -1;
    int64_t makespan = -1;
    if (oracle_number(&o) && oracle_complete(&o) && oracle_held(s)) {
        oracle_edges(&o, c->latency);
        makespan = oracle_longest(&o, c);
    }
    free(o.action);
    free(o.position);
    free(o.head);
    free(o.waits);
    free(o.start);
    free(o.edge);
    free(o.id);
    return makespan;
}

/* The same with equal stages. */
static inline int64_t oracle_uniform(const nami_schedule *s, int64_t f, int64_t bi,
                                     int64_t bw)
{
    size_t stages = (size_t)s->place.stages;
    int64_t *cost = malloc(3 * stages * sizeof *cost);
    for (size_t i = 0; i < stages; i++) {
        cost[i] = f;
        cost[stages + i] = bi;
        cost[2 * stages + i] = bw;
    }
    const oracle_costs c = {.f = cost, .bi = cost + stages, .bw = cost + 2 * stages};
    int64_t makespan = oracle_makespan(s, &c);
    free(cost);
    return makespan;
}

/* Whether lists are right. */
static inline bool oracle_valid(const nami_schedule *s)
{
    return oracle_uniform(s, 1, 1, 1) >= 0;
}

/* A recipe of a preset. */
static inline nami_recipe oracle_recipe(const char *name, int positions,
                                        int microbatches, int chunks)
{
    nami_recipe r = {.positions = positions, .microbatches = microbatches, .slices = 1};
    r.waves = chunks;
    r.chunks = chunks;
    if (nami_recipe_preset(&r, name) != NAMI_OK)
        abort();
    return r;
}

/* Whether the order takes these counts; those that it refuses have tests of their own. */
static inline bool oracle_admits(const nami_recipe *r)
{
    bool admits = nami_recipe_check(r) == NAMI_OK;
    nami_fail_clear();
    return admits;
}

/* Whether W or V changes anything. */
static inline bool oracle_chunked(const nami_recipe *r)
{
    return r->placement == NAMI_PLACE_WAVE || r->placement == NAMI_PLACE_LOOPING;
}

#endif
