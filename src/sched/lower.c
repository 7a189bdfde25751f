/* SPDX-License-Identifier: MIT */
/* lower.c - turn compute lists into complete lists: add communication, REDUCE and UPDATE.
 *
 * What the added actions mean, for whoever carries lists out:
 * - a SEND starts a non-blocking send directly after the action that made the value; nobody waits for
 *   its end but the owner of the buffer;
 * - a RECV only posts a receive, `ahead` compute actions before the one that needs it; that compute
 *   action waits for the message. So a position waits in compute actions and UPDATE alone, the lists
 *   finish whenever the compute lists do, and they do so even when no byte is buffered on the way: every
 *   send meets a receive that its owner reaches without waiting for this send;
 * - a REDUCE starts the sum of the stage's gradients, directly after the last action that adds to them;
 * - the UPDATEs of all stages of the position end the list; each waits for the REDUCE of its stage;
 * - where replicas update slices, REDUCE is REDUCE_SCATTER, and behind each UPDATE a GATHER starts to collect the slices;
 * - without a flush REDUCE k and its UPDATE k follow the last gradient of update k at once (its SEND_B goes first), and
 *   version.c gives each action the slot of the weights that it reads or makes.
 */
#include "base/memory.h"
#include "sched/version.h"

typedef struct lowering {
    const nami_schedule *in;
    int position;
    int updates; /* of the lists */
    /* [copies][stages][updates]: index of the last action that adds to the gradients, or -1 */
    int64_t *last;
    nami_list *out;
} lowering;

/* Whether stage `to` lies on another position than stage `from`; false beyond the ends. */
static bool remote(const lowering *w, int copy, int from, int to)
{
    const nami_place *p = &w->in->place;
    return to >= 0 && to < p->stages &&
           nami_place_of(p, copy, to) != nami_place_of(p, copy, from);
}

static void add(const lowering *w, nami_kind kind, nami_action a)
{
    a.kind = (uint8_t)kind;
    a.flags = 0;
    a.version = 0;
    nami_list_add(w->out, a);
}

/* Post what compute action `a` needs. */
static void post(const lowering *w, nami_action a)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    if (is->needs_input && remote(w, a.copy, a.stage, a.stage - 1))
        add(w, NAMI_RECV_F, a);
    if (is->needs_gradient && remote(w, a.copy, a.stage, a.stage + 1))
        add(w, NAMI_RECV_B, a);
}

/* Send what compute action `a` made. */
static void dispatch(const lowering *w, nami_action a)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    if (is->makes_output && remote(w, a.copy, a.stage, a.stage + 1))
        add(w, NAMI_SEND_F, a);
    if (is->makes_gradient && remote(w, a.copy, a.stage, a.stage - 1))
        add(w, NAMI_SEND_B, a);
}

/* The last gradient of update `k` of a stage. */
static int64_t *last_of(const lowering *w, int copy, int stage, int k)
{
    return &w->last[((int64_t)copy * w->in->place.stages + stage) * w->updates + k];
}

/* The same of the update that `a` is of. */
static int64_t *last_with(const lowering *w, nami_action a)
{
    return last_of(w, a.copy, a.stage, a.unit / nami_recipe_group(&w->in->recipe));
}

/* The entries of the position's own stages are those of no other position, so one table serves all. */
static void find_last_gradients(const lowering *w)
{
    const nami_list *l = &w->in->list[w->position];
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        if (nami_semantics_of(a.kind)->adds_gradient || a.kind == NAMI_SEND_B)
            *last_with(w, a) = i;
    }
}

/* One action of `kind` for each stage of the position, in every copy; only those without a gradient of their
 * own when `idle`: a copy that ran no micro-batch takes part in the sum and is updated, too. Slices are collected behind
 * their update. */
static void add_to_stages(const lowering *w, nami_kind kind, bool idle)
{
    const nami_place *p = &w->in->place;
    for (int c = 0; c < p->copies; c++) {
        for (int s = 0; s < p->stages; s++) {
            if (nami_place_of(p, c, s) != w->position ||
                (idle && *last_of(w, c, s, 0) >= 0))
                continue;
            nami_list_add(w->out, nami_action_in(kind, c, s, -1));
            if (kind == NAMI_UPDATE && w->in->recipe.zero)
                nami_list_add(w->out, nami_action_in(NAMI_GATHER, c, s, -1));
        }
    }
}

static nami_kind sum_kind(const lowering *w)
{
    return w->in->recipe.zero ? NAMI_REDUCE_SCATTER : NAMI_REDUCE;
}

/* Behind action `i`: what it made is sent, and its stage's sum begins after its last gradient; without a flush the
 * update follows. */
static void follow(const lowering *w, int64_t i, bool communicate, bool updates)
{
    nami_action a = w->in->list[w->position].item[i];
    if (communicate)
        dispatch(w, a);
    if (!updates || !nami_semantics_of(a.kind)->per_unit || *last_with(w, a) != i)
        return;
    bool flush = w->in->recipe.weights == NAMI_WEIGHTS_FLUSH;
    int update = flush ? -1 : a.unit / nami_recipe_group(&w->in->recipe);
    nami_list_add(w->out, nami_action_in(sum_kind(w), a.copy, a.stage, update));
    if (!flush)
        nami_list_add(w->out, nami_action_in(NAMI_UPDATE, a.copy, a.stage, update));
}

/* Nothing comes between the two actions of a pair. */
static void lower_position(lowering *w, int64_t ahead, bool updates)
{
    const nami_list *l = &w->in->list[w->position];
    bool communicate = !w->in->communicates;
    int64_t posted = 0; /* receives of the actions before this one are posted */
    find_last_gradients(w);
    for (int64_t i = 0; i < l->count; i++) {
        bool first = nami_list_pair(l, i), second = nami_list_pair(l, i - 1);
        int64_t reach = i + ahead + (first ? 1 : 0);
        while (communicate && !second && posted < l->count && posted <= reach)
            post(w, l->item[posted++]);
        nami_list_add(w->out, l->item[i]);
        if (second)
            follow(w, i - 1, communicate, updates);
        if (!first)
            follow(w, i, communicate, updates);
    }
    if (updates && w->in->recipe.weights == NAMI_WEIGHTS_FLUSH) {
        add_to_stages(w, sum_kind(w), true);
        add_to_stages(w, NAMI_UPDATE, false);
    }
}

static void copy_place(const nami_place *in, nami_place *out)
{
    size_t entries = (size_t)in->copies * (size_t)in->stages;
    *out = *in;
    out->position = nami_alloc(NAMI_MEM_OTHER, entries * sizeof(int));
    out->replicas = nami_alloc(NAMI_MEM_OTHER, (size_t)in->positions * sizeof(int));
    for (size_t i = 0; i < entries; i++)
        out->position[i] = in->position[i];
    for (int i = 0; i < in->positions; i++)
        out->replicas[i] = in->replicas[i];
}

nami_status nami_schedule_lower(const nami_schedule *in, int ahead, nami_schedule *out)
{
    if (ahead < 0)
        return nami_fail(NAMI_EINPUT, "a receive cannot be posted %d actions ahead",
                         ahead);
    *out = (nami_schedule){
        .recipe = in->recipe, .purpose = in->purpose, .communicates = true};
    bool updates = in->purpose == NAMI_PURPOSE_TRAIN && !in->updates;
    out->updates = in->purpose == NAMI_PURPOSE_TRAIN;
    copy_place(&in->place, &out->place);
    out->list =
        nami_calloc(NAMI_MEM_OTHER, (size_t)in->place.positions, sizeof *out->list);
    lowering w = {.in = in, .updates = nami_recipe_updates(&in->recipe)};
    size_t sums =
        (size_t)in->place.copies * (size_t)in->place.stages * (size_t)w.updates;
    w.last = nami_alloc(NAMI_MEM_OTHER, sums * sizeof *w.last);
    for (size_t i = 0; i < sums; i++)
        w.last[i] = -1;
    for (w.position = 0; w.position < in->place.positions; w.position++) {
        w.out = &out->list[w.position];
        lower_position(&w, ahead, updates);
    }
    nami_free(w.last);
    return updates && nami_versions_kept(out) ? nami_versions_assign(out) : NAMI_OK;
}
