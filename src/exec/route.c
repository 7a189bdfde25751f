/* SPDX-License-Identifier: MIT */
/* route.c - tasks of all positions: which stage, which update, which weights, and where their values lie. */
#include "exec/route.h"

#include "base/memory.h"
#include "exec/route_choose.h"
#include "exec/route_times.h"
#include "sched/staleness.h"

static void route_open(const nami_schedule *s, int position, nami_route *r)
{
    size_t most = (size_t)s->place.copies * (size_t)s->place.stages;
    r->stage = nami_calloc(NAMI_MEM_OTHER, most, sizeof *r->stage);
    r->copy = nami_calloc(NAMI_MEM_OTHER, most, sizeof *r->copy);
    for (int copy = 0; copy < s->place.copies; copy++) {
        int n = nami_place_local(&s->place, position, copy, r->stage + r->stages);
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
    for (int i = 0; i < r->stages; i++)
        r->versions[i] = nami_schedule_versions(s, r->copy[i], r->stage[i]);
    r->count = s->list[position].count;
    r->task = nami_calloc(NAMI_MEM_OTHER, (size_t)r->count + 1, sizeof *r->task);
}

/* Index of the stage of `a` among those of the position. */
static int local_of(const nami_route *r, nami_action a)
{
    int i = 0;
    while (i < r->stages && (r->copy[i] != a.copy || r->stage[i] != a.stage))
        i++;
    NAMI_CHECK(i < r->stages);
    return i;
}

/* What the list says of each action and stage, before any place is chosen. */
static void open_tasks(const nami_schedule *s, int position, nami_route *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        nami_action a = s->list[position].item[i];
        const nami_semantics *is = nami_semantics_of(a.kind);
        nami_task *task = &r->task[i];
        *task = (nami_task){.action = a, .local = local_of(r, a)};
        task->in = task->out = task->dout = task->din = -1;
        task->kept = task->held = task->data = task->peer = task->tag = -1;
        task->dies = -1;
        task->group = a.unit < 0     ? 0
                      : is->per_unit ? a.unit / nami_recipe_group(&s->recipe)
                                     : a.unit;
        if (a.kind == NAMI_UPDATE)
            task->from = task->group % r->versions[task->local];
        if (a.kind == NAMI_BI)
            r->split[task->local] = true;
        if (a.kind == NAMI_R)
            r->again[task->local] = true;
    }
}

/* From the end of the list on: which action is the last of a group to add to its stage's gradients, and which is the last
 * to read a version. */
static void note_last(const nami_recipe *recipe, nami_route *r)
{
    enum { SLOTS = 256 };
    bool *ends = nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *ends);
    bool(*needed)[SLOTS] =
        nami_calloc(NAMI_MEM_OTHER, (size_t)r->stages + 1, sizeof *needed);
    for (int i = 0; i < r->stages; i++)
        needed[i][nami_recipe_updates(recipe) % r->versions[i]] = true;
    for (int64_t i = r->count - 1; i >= 0; i--) {
        nami_task *t = &r->task[i];
        const nami_semantics *is = nami_semantics_of(t->action.kind);
        bool updates = t->action.kind == NAMI_UPDATE;
        bool *need = needed[t->local];
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
static void note_delays(const nami_schedule *s, nami_route *r)
{
    const int units = s->recipe.microbatches, m = nami_recipe_group(&s->recipe);
    int32_t *forward = nami_alloc(NAMI_MEM_OTHER, 2 * (size_t)units * sizeof *forward);
    int32_t *backward = forward + units;
    for (int i = 0; i < r->stages; i++) {
        nami_schedule_delays(s, r->stage[i], forward, backward);
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

static void route_position(const nami_route_times *t, int position, nami_route *r)
{
    const nami_recipe *recipe = &t->s->recipe;
    route_open(t->s, position, r);
    open_tasks(t->s, position, r);
    nami_route_choose(t, position, r);
    note_last(recipe, r);
    if (recipe->weights == NAMI_WEIGHTS_PREDICT ||
        recipe->weights == NAMI_WEIGHTS_NEWEST)
        note_delays(t->s, r);
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
    nami_route_times t;
    for (int p = 0; p < s->place.positions; p++)
        out[p] = (nami_route){0};
    NAMI_TRY(check_known(s));
    nami_status status = nami_route_times_make(s, &t);
    for (int p = 0; status == NAMI_OK && p < s->place.positions; p++)
        route_position(&t, p, &out[p]);
    nami_route_times_free(&t);
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
