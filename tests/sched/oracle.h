/* SPDX-License-Identifier: MIT */
/* oracle.h - judge lists a second time, by another road than the product's: the explicit graph of all actions.
 *
 * Every rule is an edge "this before that"; lists are right when each expected action is there once, on its
 * position, and the graph has no cycle. The longest path gives the makespan, in whole numbers. Without a flush
 * the version that each action reads is looked up by counting updates in the list. Slow and plain.
 */
#ifndef NAMI_TEST_ORACLE_H
#define NAMI_TEST_ORACLE_H

#include <stdlib.h>
#include <string.h>

#include "sched/order.h"

typedef struct oracle_edge {
    int to, next;
    int64_t weight; /* from the end of one to the start of the other */
} oracle_edge;

typedef struct oracle {
    const nami_schedule *s;
    int nodes, edges, room;
    /* [nodes] the actions of a node: one, or the two of a pair */
    nami_action *action[2];
    int *actions;      /* [nodes] */
    int *position;     /* [nodes] */
    int *head, *waits; /* [nodes] */
    oracle_edge *edge;
    int *id; /* [NAMI_KINDS][copies][stages][units][slices], -1; unit 0 for those
                without, the number of the update for those of a window */
} oracle;

/* Whole-number costs: of a stage (and slice) each, and of a message. */
typedef struct oracle_costs {
    const int64_t *f, *bi, *bw; /* [stages] */
    int64_t latency;
} oracle_costs;

/* A stage's work on a slice of a micro-batch in a copy of the model. */
typedef struct oracle_item {
    int copy, stage, unit, slice;
} oracle_item;

static inline int *oracle_id(const oracle *o, int kind, oracle_item x)
{
    const nami_schedule *s = o->s;
    int64_t at = (int64_t)kind * s->place.copies + x.copy;
    at = at * s->place.stages + x.stage;
    at = at * s->recipe.microbatches + (x.unit > 0 ? x.unit : 0);
    return &o->id[at * s->recipe.slices + x.slice];
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

/* Updates of a stage in the lists. */
static inline int oracle_updates(const nami_schedule *s)
{
    const nami_recipe *r = &s->recipe;
    return r->weights == NAMI_WEIGHTS_FLUSH ? 1 : r->microbatches / r->per_update;
}

/* The unit that REDUCE and UPDATE of the group of `unit` carry. */
static inline int oracle_group(const nami_schedule *s, int unit)
{
    const nami_recipe *r = &s->recipe;
    return r->weights == NAMI_WEIGHTS_FLUSH ? -1 : unit / r->per_update;
}

/* Whether an action can belong to the schedule, on position `p`. */
static inline bool oracle_belongs(const oracle *o, nami_action a, int p)
{
    const nami_schedule *s = o->s;
    bool whole = a.kind == NAMI_REDUCE || a.kind == NAMI_UPDATE;
    if (a.kind >= NAMI_KINDS || a.stage >= s->place.stages || a.copy >= s->place.copies)
        return false;
    bool flush = s->recipe.weights == NAMI_WEIGHTS_FLUSH;
    if (a.version != 0 && (flush || !s->updates))
        return false;
    if (whole ? (flush ? a.unit != -1 : a.unit < 0 || a.unit >= oracle_updates(s)) ||
                    a.slice != 0
              : a.unit < 0 || a.unit >= s->recipe.microbatches ||
                    a.slice >= s->recipe.slices)
        return false;
    return s->place.position[a.copy * s->place.stages + a.stage] == p;
}

/* Number the actions, the two of a pair as one; false when one cannot belong to the schedule. */
static inline bool oracle_number(oracle *o)
{
    const nami_schedule *s = o->s;
    for (int p = 0; p < s->place.positions; p++) {
        bool second = false;
        for (int64_t i = 0; i < s->list[p].count; i++) {
            nami_action a = s->list[p].item[i];
            bool first = a.flags & NAMI_FLAG_PAIR;
            if (!oracle_belongs(o, a, p))
                return false;
            oracle_item x = {a.copy, a.stage, a.unit, a.slice};
            bool computes = a.kind <= NAMI_R;
            if (*oracle_id(o, a.kind, x) >= 0 || (first && second) ||
                ((first || second) && !computes))
                return false;
            int node = second ? o->nodes - 1 : o->nodes++;
            *oracle_id(o, a.kind, x) = node;
            o->action[o->actions[node]++][node] = a;
            o->position[node] = p;
            o->head[node] = second ? o->head[node] : -1;
            second = first;
        }
        if (second)
            return false;
    }
    return true;
}

/* Whether exactly the expected actions are there, all in the copy that runs the micro-batch. */
static inline bool oracle_expected(const oracle *o, oracle_item x, int owner)
{
    const nami_schedule *s = o->s;
    const int *at = s->place.position + (int64_t)x.copy * s->place.stages;
    bool train = s->purpose == NAMI_PURPOSE_TRAIN, talk = s->communicates;
    bool before = x.stage > 0 && at[x.stage - 1] != at[x.stage];
    bool behind = x.stage + 1 < s->place.stages && at[x.stage + 1] != at[x.stage];
    bool split = *oracle_id(o, NAMI_BI, x) >= 0;
    const bool want[NAMI_KINDS] = {
        [NAMI_F] = true,
        [NAMI_B] = train && !split,
        [NAMI_BI] = train && split,
        [NAMI_BW] = train && split,
        [NAMI_R] = train && (s->recipe.stage_recompute.count > 0
                                 ? s->recipe.stage_recompute.item[x.stage] == 1
                                 : *oracle_id(o, NAMI_R, x) >= 0),
        [NAMI_SEND_F] = talk && behind,
        [NAMI_RECV_F] = talk && before,
        [NAMI_SEND_B] = talk && before && train,
        [NAMI_RECV_B] = talk && behind && train,
    };
    for (int kind = 0; kind <= NAMI_RECV_B; kind++) {
        if ((*oracle_id(o, kind, x) >= 0) != (want[kind] && x.copy == owner))
            return false;
    }
    return true;
}

/* The copy in which a micro-batch starts. */
static inline int oracle_owner(const oracle *o, int unit)
{
    for (int c = 0; c < o->s->place.copies; c++) {
        if (*oracle_id(o, NAMI_F, (oracle_item){c, 0, unit, 0}) >= 0)
            return c;
    }
    return -1;
}

static inline bool oracle_complete_stage(const oracle *o, int copy, int stage)
{
    const nami_schedule *s = o->s;
    for (int unit = 0; unit < s->recipe.microbatches; unit++) {
        int owner = oracle_owner(o, unit);
        for (int slice = 0; slice < s->recipe.slices; slice++) {
            if (!oracle_expected(o, (oracle_item){copy, stage, unit, slice}, owner))
                return false;
        }
    }
    for (int kind = NAMI_REDUCE; kind < NAMI_KINDS; kind++) {
        bool want = (kind == NAMI_REDUCE || kind == NAMI_UPDATE) && s->updates;
        for (int k = 0; k < oracle_updates(s); k++) {
            if ((*oracle_id(o, kind, (oracle_item){copy, stage, k, 0}) >= 0) != want)
                return false;
        }
    }
    return true;
}

static inline bool oracle_complete(const oracle *o)
{
    for (int unit = 0; unit < o->s->recipe.microbatches; unit++) {
        if (oracle_owner(o, unit) < 0)
            return false;
    }
    for (int copy = 0; copy < o->s->place.copies; copy++) {
        for (int stage = 0; stage < o->s->place.stages; stage++) {
            if (!oracle_complete_stage(o, copy, stage))
                return false;
        }
    }
    return true;
}

static inline int oracle_backward(const oracle *o, oracle_item x)
{
    int b = *oracle_id(o, NAMI_B, x);
    return b >= 0 ? b : *oracle_id(o, NAMI_BI, x);
}

/* The rules of a slice in the stages next to it. */
static inline void oracle_neighbours(oracle *o, oracle_item x, int64_t latency)
{
    const int *at = o->s->place.position + (int64_t)x.copy * o->s->place.stages;
    oracle_item y = x;
    y.stage++;
    if (y.stage < o->s->place.stages) {
        bool apart = at[x.stage] != at[y.stage], talk = apart && o->s->communicates;
        oracle_before(o, *oracle_id(o, talk ? NAMI_SEND_F : NAMI_F, x),
                      *oracle_id(o, NAMI_F, y), apart ? latency : 0);
        oracle_before(o, talk ? *oracle_id(o, NAMI_SEND_B, y) : oracle_backward(o, y),
                      oracle_backward(o, x), apart ? latency : 0);
    }
    y = x;
    y.slice++;
    if (y.slice < o->s->recipe.slices) {
        oracle_before(o, *oracle_id(o, NAMI_F, x), *oracle_id(o, NAMI_F, y), 0);
        oracle_before(o, oracle_backward(o, y), oracle_backward(o, x), 0);
    }
}

/* The rules of one stage and slice. */
static inline void oracle_unit(oracle *o, oracle_item x, int64_t latency)
{
    int f = *oracle_id(o, NAMI_F, x), w = *oracle_id(o, NAMI_BW, x);
    int b = oracle_backward(o, x), again = *oracle_id(o, NAMI_R, x);
    oracle_before(o, f, b, 0);
    oracle_before(o, f, again, 0);
    oracle_before(o, again, b, 0);
    oracle_before(o, b, w, 0);
    oracle_before(o, f, *oracle_id(o, NAMI_SEND_F, x), 0);
    oracle_before(o, b, *oracle_id(o, NAMI_SEND_B, x), 0);
    oracle_before(o, *oracle_id(o, NAMI_RECV_F, x), f, latency);
    oracle_before(o, *oracle_id(o, NAMI_RECV_B, x), b, latency);
    oracle_neighbours(o, x, latency);
    oracle_item whole = {x.copy, x.stage, oracle_group(o->s, x.unit), 0};
    for (int k = 0; k < 3; k++) {
        const int compute[3] = {f, b, w};
        if (k > 0)
            oracle_before(o, compute[k], *oracle_id(o, NAMI_REDUCE, whole), 0);
        oracle_before(o, compute[k], *oracle_id(o, NAMI_UPDATE, whole), 0);
    }
    if (whole.unit > 0) { /* sums of two updates do not mix */
        whole.unit--;
        oracle_before(o, *oracle_id(o, NAMI_UPDATE, whole), w >= 0 ? w : b, 0);
    }
}

static inline void oracle_edges(oracle *o, int64_t latency)
{
    const nami_schedule *s = o->s;
    for (int n = 1; n < o->nodes; n++) {
        if (o->position[n] == o->position[n - 1])
            oracle_before(o, n - 1, n, 0);
    }
    for (int copy = 0; copy < s->place.copies; copy++) {
        for (int stage = 0; stage < s->place.stages; stage++) {
            for (int unit = 0; unit < s->recipe.microbatches; unit++) {
                for (int slice = 0; slice < s->recipe.slices; slice++)
                    oracle_unit(o, (oracle_item){copy, stage, unit, slice}, latency);
            }
            for (int i = 0; i < s->place.copies * oracle_updates(s); i++) {
                int other = i % s->place.copies, k = i / s->place.copies;
                oracle_before(
                    o, *oracle_id(o, NAMI_REDUCE, (oracle_item){other, stage, k, 0}),
                    *oracle_id(o, NAMI_UPDATE, (oracle_item){copy, stage, k, 0}), 0);
            }
        }
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
static inline int64_t oracle_longest(const oracle *o, const oracle_costs *c)
{
    const size_t nodes = (size_t)o->nodes + 1;
    int *queue = malloc(nodes * sizeof *queue), *waits = malloc(nodes * sizeof *waits);
    int64_t *start = calloc(nodes, sizeof *start), last = 0;
    int done = 0, queued = 0;
    memcpy(waits, o->waits, (size_t)o->nodes * sizeof *waits);
    for (int n = 0; n < o->nodes; n++) {
        if (waits[n] == 0)
            queue[queued++] = n;
    }
    for (; done < queued; done++) {
        int n = queue[done];
        int64_t end = start[n];
        for (int i = 0; i < o->actions[n]; i++)
            end += oracle_cost(o->action[i][n], c);
        last = end > last ? end : last;
        for (int e = o->head[n]; e >= 0; e = o->edge[e].next) {
            int to = o->edge[e].to;
            if (end + o->edge[e].weight > start[to])
                start[to] = end + o->edge[e].weight;
            if (--waits[to] == 0)
                queue[queued++] = to;
        }
    }
    free(queue);
    free(waits);
    free(start);
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

/* Updates of `stage` before entry `end` of its list. */
static inline int oracle_made(const nami_schedule *s, int stage, int64_t end)
{
    const nami_list *l = &s->list[s->place.position[stage]];
    int made = 0;
    for (int64_t i = 0; i < end; i++)
        made += l->item[i].stage == stage && l->item[i].kind == NAMI_UPDATE;
    return made;
}

/* The entry of the forward of `unit` in the list of `stage`. */
static inline int64_t oracle_forward(const nami_schedule *s, int stage, int unit)
{
    const nami_list *l = &s->list[s->place.position[stage]];
    int64_t i = 0;
    while (l->item[i].stage != stage || l->item[i].kind != NAMI_F ||
           l->item[i].unit != unit)
        i++;
    return i;
}

/* The version that entry `at` of a position's list must read (or makes); -1: none. */
static inline int oracle_version(const nami_schedule *s, int position, int64_t at)
{
    nami_action a = s->list[position].item[at];
    int stage = a.stage, now = oracle_made(s, stage, at);
    if (a.kind == NAMI_UPDATE)
        return now + 1;
    if (a.kind > NAMI_R)
        return -1;
    int batch = a.unit / s->recipe.per_update, older = batch > 0 ? batch - 1 : 0;
    switch (s->recipe.weights) {
    case NAMI_WEIGHTS_STASH:
        return oracle_made(s, stage, oracle_forward(s, stage, a.unit));
    case NAMI_WEIGHTS_VERTICAL:
        return oracle_made(s, 0, oracle_forward(s, 0, a.unit));
    case NAMI_WEIGHTS_2BW:
        return older;
    case NAMI_WEIGHTS_GROUPED:
        return stage < s->place.stages / 2 ? older : batch;
    default:
        return now;
    }
}

/* The slots that a stage needs: the longest range from the newest version down to one still to be read. */
static inline int oracle_ring(const nami_schedule *s, int stage)
{
    int position = s->place.position[stage], most = 1;
    const nami_list *l = &s->list[position];
    for (int64_t i = 0; i < l->count; i++) {
        if (l->item[i].stage != stage || l->item[i].kind != NAMI_UPDATE)
            continue;
        int newest = oracle_version(s, position, i);
        for (int64_t k = i + 1; k < l->count; k++) {
            int read = oracle_version(s, position, k);
            if (l->item[k].stage == stage && l->item[k].kind != NAMI_UPDATE &&
                read >= 0 && newest - read + 1 > most)
                most = newest - read + 1;
        }
    }
    return most;
}

/* Whether every reader finds its version in its slot; each update fills the slot of its number. */
static inline bool oracle_versions(const nami_schedule *s)
{
    if (s->recipe.weights == NAMI_WEIGHTS_FLUSH || !s->updates ||
        s->purpose != NAMI_PURPOSE_TRAIN)
        return true;
    for (int stage = 0; stage < s->place.stages; stage++) {
        int position = s->place.position[stage], ring = oracle_ring(s, stage);
        const nami_list *l = &s->list[position];
        int *slot = calloc((size_t)ring, sizeof *slot);
        bool good = true;
        for (int i = 1; i < ring; i++)
            slot[i] = -1;
        for (int64_t i = 0; i < l->count && good; i++) {
            nami_action a = l->item[i];
            int version = a.stage == stage ? oracle_version(s, position, i) : -1;
            if (a.stage == stage && version < 0)
                good = a.version == 0;
            if (version < 0)
                continue;
            good = a.version == version % ring;
            if (a.kind == NAMI_UPDATE)
                slot[version % ring] = version;
            else
                good = good && slot[version % ring] == version;
        }
        free(slot);
        if (!good)
            return false;
    }
    return true;
}

/* Make the graph of the lists; false when they are wrong. Freed with oracle_close in either case. */
static inline bool oracle_open(oracle *o, const nami_schedule *s, int64_t latency)
{
    size_t nodes = 1, ids = (size_t)NAMI_KINDS * (size_t)s->place.copies *
                            (size_t)s->place.stages * (size_t)s->recipe.microbatches *
                            (size_t)s->recipe.slices;
    for (int p = 0; p < s->place.positions; p++)
        nodes += (size_t)s->list[p].count;
    *o = (oracle){.s = s};
    for (int i = 0; i < 2; i++)
        o->action[i] = calloc(nodes, sizeof *o->action[i]);
    o->actions = calloc(nodes, sizeof *o->actions);
    o->position = calloc(nodes, sizeof *o->position);
    o->head = calloc(nodes, sizeof *o->head);
    o->waits = calloc(nodes, sizeof *o->waits);
    o->id = malloc(ids * sizeof *o->id);
    for (size_t i = 0; i < ids; i++)
        o->id[i] = -1;
    if (!oracle_number(o) || !oracle_complete(o) || !oracle_held(s) ||
        !oracle_versions(s))
        return false;
    oracle_edges(o, latency);
    return true;
}

static inline void oracle_close(oracle *o)
{
    for (int i = 0; i < 2; i++)
        free(o->action[i]);
    free(o->actions);
    free(o->position);
    free(o->head);
    free(o->waits);
    free(o->edge);
    free(o->id);
}

/* Makespan of the lists with whole-number costs, or -1 when the lists are wrong. */
static inline int64_t oracle_makespan(const nami_schedule *s, const oracle_costs *c)
{
    oracle o;
    int64_t makespan = oracle_open(&o, s, c->latency) ? oracle_longest(&o, c) : -1;
    oracle_close(&o);
    return makespan;
}

/* The longest path with equal stages. */
static inline int64_t oracle_longest_uniform(const oracle *o, int64_t f, int64_t bi,
                                             int64_t bw)
{
    size_t stages = (size_t)o->s->place.stages;
    int64_t *cost = malloc(3 * stages * sizeof *cost);
    for (size_t i = 0; i < stages; i++) {
        cost[i] = f;
        cost[stages + i] = bi;
        cost[2 * stages + i] = bw;
    }
    const oracle_costs c = {.f = cost, .bi = cost + stages, .bw = cost + 2 * stages};
    int64_t makespan = oracle_longest(o, &c);
    free(cost);
    return makespan;
}

/* Makespan with equal stages and no latency, or -1 when the lists are wrong. */
static inline int64_t oracle_uniform(const nami_schedule *s, int64_t f, int64_t bi,
                                     int64_t bw)
{
    oracle o;
    int64_t makespan =
        oracle_open(&o, s, 0) ? oracle_longest_uniform(&o, f, bi, bw) : -1;
    oracle_close(&o);
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
    r.slices = strcmp(name, "terapipe") == 0 ? chunks : 1;
    r.chunks = strcmp(name, "wpipe") == 0 ? 2 : chunks;
    r.per_update = microbatches % 3 == 0 ? 3 : microbatches % 2 == 0 ? 2 : 1;
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

/* The same with the first counts from these on that the order takes. */
static inline nami_recipe oracle_smallest(const char *name, int positions,
                                          int microbatches, int chunks)
{
    nami_recipe r = oracle_recipe(name, positions, microbatches, chunks);
    if (strcmp(name, "zb-v") == 0 || strcmp(name, "dualpipev") == 0)
        r.waves = 1;
    for (r.positions = positions;; r.positions++) {
        for (r.microbatches = microbatches; r.microbatches <= 4 * r.positions;
             r.microbatches++) {
            if (r.weights == NAMI_WEIGHTS_2BW)
                r.per_update = r.positions;
            if (oracle_admits(&r))
                return r;
        }
    }
}

/* Whether W, V or K changes anything. */
static inline bool oracle_chunked(const nami_recipe *r)
{
    return r->placement == NAMI_PLACE_WAVE || r->placement == NAMI_PLACE_LOOPING ||
           r->slices > 1;
}

#endif
