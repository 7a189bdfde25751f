/* SPDX-License-Identifier: MIT */
/* route_times.c - the walk through all lists from which buffers are chosen. */
#include "exec/route_times.h"

#include "base/memory.h"

/* Unit costs of the walk: a fused backward is two units, a message one, so that a buffer is not wanted
 * again while its message is likely to be on its way. */
static double cost_of(nami_action a)
{
    if (!nami_semantics_of(a.kind)->compute)
        return 0;
    return a.kind == NAMI_B ? 2 : 1;
}

enum { DELAY = 1 };

bool nami_route_remote(const nami_schedule *s, nami_action a, int to)
{
    return to >= 0 && to < s->place.stages &&
           nami_place_of(&s->place, a.copy, to) !=
               nami_place_of(&s->place, a.copy, a.stage);
}

bool nami_route_local(const nami_schedule *s, nami_action a, int to)
{
    return to >= 0 && to < s->place.stages && !nami_route_remote(s, a, to);
}

double nami_route_arrival(const nami_route_times *t, nami_action a, nami_kind kind)
{
    a.kind = (uint8_t)kind;
    int64_t key = nami_action_key(t->s, a);
    double last = t->posted[key] > t->sent[key] ? t->posted[key] : t->sent[key];
    return last + DELAY;
}

static void visit(void *context, int position, int64_t index)
{
    nami_route_times *t = context;
    nami_action a = t->s->list[position].item[index];
    const nami_semantics *is = nami_semantics_of(a.kind);
    double start = t->clock[position], message = 0;
    if (is->needs_input && nami_route_remote(t->s, a, a.stage - 1))
        message = nami_route_arrival(t, a, NAMI_RECV_F);
    else if (is->needs_gradient && nami_route_remote(t->s, a, a.stage + 1))
        message = nami_route_arrival(t, a, NAMI_RECV_B);
    start = message > start ? message : start;
    if (is->sends)
        t->sent[nami_action_key(t->s, a)] = start;
    if (is->receives)
        t->posted[nami_action_key(t->s, a)] = start;
    t->start[position][index] = start;
    t->end[position][index] = t->clock[position] = start + cost_of(a);
}

nami_status nami_route_times_make(const nami_schedule *s, nami_route_times *t)
{
    size_t positions = (size_t)s->place.positions, keys = (size_t)nami_schedule_keys(s);
    *t = (nami_route_times){.s = s};
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

void nami_route_times_free(nami_route_times *t)
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
