/* SPDX-License-Identifier: MIT */
/* critical.c - the chain of actions that decides the makespan, found by following causes back.
 *
 * Each action's start has one cause that came last. Going back from the last end, the entries met on one position
 * only descend, so one cursor a position finds them all in time linear in the lists.
 */
#include <string.h>

#include "base/memory.h"
#include "sim/inner.h"

typedef struct trail {
    const nami_sim *m;
    nami_critical *out;
    int64_t *cursor; /* [positions] entries at or behind it have been passed */
    int position;
    int64_t index;
} trail;

/* Go to the entry of `position` before the cursor that is (kind or its twin, copy, stage, unit, slice). */
static bool go_to(trail *t, int position, nami_action a, nami_kind kind, nami_kind twin)
{
    const nami_list *l = &t->m->s->list[position];
    for (int64_t i = t->cursor[position] - 1; i >= 0; i--) {
        nami_action b = l->item[i];
        if ((b.kind == kind || b.kind == twin) && b.stage == a.stage &&
            b.copy == a.copy && b.unit == a.unit && b.slice == a.slice) {
            t->cursor[position] = i + 1;
            t->position = position;
            t->index = i;
            return true;
        }
    }
    return false;
}

/* Go back to the nearest computation, or with `lane` to the nearest REDUCE, of the same position. */
static bool go_back(trail *t, bool lane)
{
    const nami_list *l = &t->m->s->list[t->position];
    for (int64_t i = t->index - 1; i >= 0; i--) {
        nami_kind kind = l->item[i].kind;
        bool reduces =
            kind == NAMI_REDUCE || kind == NAMI_REDUCE_SCATTER || kind == NAMI_GATHER;
        if (lane ? reduces
                 : nami_semantics_of(kind)->compute || kind == NAMI_UPDATE ||
                       (reduces && t->m->cost->reduce_alone)) {
            t->index = i;
            return true;
        }
    }
    return false;
}

/* Go to the action that made what `a` waited for: a value of stage `from`. */
static bool go_to_maker(trail *t, nami_action a, int from, nami_kind kind,
                        nami_kind twin)
{
    int position = nami_place_of(&t->m->s->place, a.copy, from);
    t->out->messages += position != t->position;
    a.stage = (uint16_t)from;
    if (!go_to(t, position, a, kind, twin))
        return false;
    t->index += nami_sim_pair(t->m, &t->m->s->list[position], t->index);
    return true;
}

/* One step back; false at the beginning. */
static bool step_back(trail *t)
{
    const nami_list *l = &t->m->s->list[t->position];
    int cause = t->m->cause[t->position][t->index];
    nami_action a = l->item[t->index];
    t->cursor[t->position] = t->index;
    if (cause & NAMI_CAUSE_OTHER)
        a = l->item[t->index + 1];
    cause &= ~NAMI_CAUSE_OTHER;
    if (cause >= NAMI_CAUSE_COPY) {
        a.copy = (uint8_t)(cause - NAMI_CAUSE_COPY);
        return go_to(t, nami_place_of(&t->m->s->place, a.copy, a.stage), a, NAMI_REDUCE,
                     NAMI_REDUCE_SCATTER);
    }
    switch ((nami_cause)cause) {
    case NAMI_CAUSE_OUTPUT:
        return go_to_maker(t, a, a.stage - 1, NAMI_F, NAMI_F);
    case NAMI_CAUSE_GRADIENT:
        return go_to_maker(t, a, a.stage + 1, NAMI_B, NAMI_BI);
    case NAMI_CAUSE_POSTED:
        t->out->messages++;
        return go_to(t, t->position, a, a.kind == NAMI_F ? NAMI_RECV_F : NAMI_RECV_B,
                     NAMI_RECV_B) &&
               go_back(t, false);
    default:
        return go_back(t, cause == NAMI_CAUSE_LANE);
    }
}

void nami_sim_critical(const nami_sim *m, nami_critical *out)
{
    int positions = m->s->place.positions;
    trail t = {.m = m, .out = out};
    memset(out, 0, sizeof *out);
    t.cursor = nami_alloc(NAMI_MEM_OTHER, (size_t)positions * sizeof *t.cursor);
    for (int p = 0; p < positions; p++) {
        t.cursor[p] = m->s->list[p].count;
        if (m->place[p].last > m->place[t.position].last)
            t.position = p;
    }
    out->last = t.position;
    t.index = m->place[t.position].ending;
    double spent = 0.0;
    if (m->s->list[t.position].count > 0) {
        do {
            nami_action a = m->s->list[t.position].item[t.index];
            double took = nami_sim_duration(m, a);
            out->kind[a.kind] += took / m->scale;
            out->actions++;
            spent += took;
        } while (step_back(&t));
        out->first = t.position;
        double end = m->place[out->last].last, left = end - spent;
        out->message =
            left > 1e-12 * end ? left / m->scale : 0.0; /* sums are rounded */
    }
    nami_free(t.cursor);
}
