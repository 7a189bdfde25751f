/* SPDX-License-Identifier: MIT */
/* walk.c - go through all lists in an order that respects every dependency, in linear time.
 *
 * Each position advances until it must wait; whoever makes what it waits for wakes it up. When nobody can
 * advance and a list is not at its end, that is a deadlock, and it is explained.
 */
#include "base/memory.h"
#include "sched/schedule.h"

enum { OUTPUT = 1, GRADIENT = 2 };

typedef struct walk {
    const nami_schedule *s;
    /* [stages][units][slices]: OUTPUT, GRADIENT of the stage is on its way */
    uint8_t *left;
    uint8_t *reduced; /* [stages]: one bit a copy */
    int64_t *next;    /* [positions]: the entry a position stands at */
    bool *asleep;     /* [positions] */
    int *awake;       /* [awakes]: positions to go on with */
    int awakes;
} walk;

static uint8_t *left_of(const walk *w, nami_action a, int stage)
{
    const nami_recipe *r = &w->s->recipe;
    return &w->left[((int64_t)stage * r->microbatches + a.unit) * r->slices + a.slice];
}

static bool fits(const nami_schedule *s, nami_action a, int position)
{
    bool known = a.kind < NAMI_KINDS && a.stage < s->place.stages &&
                 a.copy < s->place.copies &&
                 nami_place_of(&s->place, a.copy, a.stage) == position;
    if (!known || !nami_semantics_of(a.kind)->per_unit)
        return known;
    return a.unit >= 0 && a.unit < s->recipe.microbatches && a.slice < s->recipe.slices;
}

/* The value that `a` waits for: its stage into *stage, 0 when it waits for none. */
static int waits_for(const walk *w, nami_action a, int *stage)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    if (is->needs_input && a.stage > 0) {
        *stage = a.stage - 1;
        return OUTPUT;
    }
    if (is->needs_gradient && a.stage + 1 < w->s->place.stages) {
        *stage = a.stage + 1;
        return GRADIENT;
    }
    return 0;
}

static bool can_run(const walk *w, nami_action a)
{
    int stage, what = waits_for(w, a, &stage);
    if (what != 0)
        return *left_of(w, a, stage) & what;
    if (a.kind == NAMI_UPDATE && w->s->recipe.weights == NAMI_WEIGHTS_FLUSH)
        return w->reduced[a.stage] == (1u << w->s->place.copies) - 1u;
    return true;
}

static void wake(walk *w, int copy, int stage)
{
    if (stage < 0 || stage >= w->s->place.stages)
        return;
    int position = nami_place_of(&w->s->place, copy, stage);
    if (w->asleep[position]) {
        w->asleep[position] = false;
        w->awake[w->awakes++] = position;
    }
}

/* Whether a value that stage `from` made needs a SEND to reach stage `to`. */
static bool needs_send(const walk *w, int copy, int from, int to)
{
    const nami_place *p = &w->s->place;
    return w->s->communicates && to >= 0 && to < p->stages &&
           nami_place_of(p, copy, from) != nami_place_of(p, copy, to);
}

/* Take note of what `a` made available. */
static void finish(walk *w, nami_action a)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    if (a.kind == NAMI_SEND_F ||
        (is->makes_output && !needs_send(w, a.copy, a.stage, a.stage + 1))) {
        *left_of(w, a, a.stage) |= OUTPUT;
        wake(w, a.copy, a.stage + 1);
    }
    if (a.kind == NAMI_SEND_B ||
        (is->makes_gradient && !needs_send(w, a.copy, a.stage, a.stage - 1))) {
        *left_of(w, a, a.stage) |= GRADIENT;
        wake(w, a.copy, a.stage - 1);
    }
    if (a.kind == NAMI_REDUCE || a.kind == NAMI_REDUCE_SCATTER) {
        w->reduced[a.stage] |= (uint8_t)(1u << a.copy);
        for (int c = 0; c < w->s->place.copies; c++)
            wake(w, c, a.stage);
    }
}

/* What keeps `position` from going on, as a failed status. */
static nami_status explain(const walk *w, int position)
{
    int stage = 0;
    nami_text text = {0}, cause = {0};
    nami_action a = w->s->list[position].item[w->next[position]];
    nami_action_print(a, &text);
    if (can_run(w, a)) /* then it waits with the other one of its pair */
        a = w->s->list[position].item[w->next[position] + 1];
    int what = waits_for(w, a, &stage);
    if (what == 0) {
        nami_text_add(&cause, "the REDUCE of every copy of stage %d", a.stage);
    } else {
        int other = nami_place_of(&w->s->place, a.copy, stage);
        const nami_list *l = &w->s->list[other];
        nami_text_add(&cause,
                      "the %s of stage %d, micro-batch %d, from position %d, which ",
                      what == OUTPUT ? "output" : "gradient", stage, a.unit, other);
        if (w->next[other] < l->count) {
            nami_text_add(&cause, "stands at entry %lld, ", (long long)w->next[other]);
            nami_action_print(l->item[w->next[other]], &cause);
        } else {
            nami_text_add(&cause, "is at its end");
        }
    }
    nami_status status = nami_fail(
        NAMI_EPLAN, "position %d, entry %lld (%s) waits for ever for %s", position,
        (long long)w->next[position], nami_text_get(&text), nami_text_get(&cause));
    nami_text_free(&text);
    nami_text_free(&cause);
    return status;
}

/* Advance `position` until it must wait or ends. */
static nami_status advance(walk *w, int position, void (*visit)(void *, int, int64_t),
                           void *context)
{
    const nami_list *l = &w->s->list[position];
    for (; w->next[position] < l->count; w->next[position]++) {
        nami_action a = l->item[w->next[position]];
        if (!fits(w->s, a, position))
            return nami_fail(
                NAMI_EPLAN,
                "position %d, entry %lld: an action of stage %d that is not here",
                position, (long long)w->next[position], a.stage);
        if (nami_list_pair(l, w->next[position]) &&
            !fits(w->s, l->item[w->next[position] + 1], position))
            return nami_fail(NAMI_EPLAN,
                             "position %d, entry %lld: pairs with nothing that is here",
                             position, (long long)w->next[position]);
        if (!can_run(w, a) || (nami_list_pair(l, w->next[position]) &&
                               !can_run(w, l->item[w->next[position] + 1]))) {
            w->asleep[position] = true;
            return NAMI_OK;
        }
        if (visit != NULL)
            visit(context, position, w->next[position]);
        finish(w, a);
    }
    return NAMI_OK;
}

static nami_status go(walk *w, void (*visit)(void *, int, int64_t), void *context)
{
    int positions = w->s->place.positions;
    for (int i = positions - 1; i >= 0; i--)
        w->awake[w->awakes++] = i;
    while (w->awakes > 0)
        NAMI_TRY(advance(w, w->awake[--w->awakes], visit, context));
    for (int i = 0; i < positions; i++) {
        if (w->asleep[i])
            return explain(w, i);
    }
    return NAMI_OK;
}

nami_status nami_schedule_walk(const nami_schedule *s,
                               void (*visit)(void *, int, int64_t), void *context)
{
    size_t positions = (size_t)s->place.positions, stages = (size_t)s->place.stages;
    size_t units = (size_t)s->recipe.microbatches * (size_t)s->recipe.slices;
    walk w = {.s = s};
    w.left = nami_calloc(NAMI_MEM_OTHER, stages * units, 1);
    w.reduced = nami_calloc(NAMI_MEM_OTHER, stages, 1);
    w.next = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *w.next);
    w.asleep = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *w.asleep);
    w.awake = nami_alloc(NAMI_MEM_OTHER, positions * sizeof *w.awake);
    nami_status status = go(&w, visit, context);
    nami_free(w.left);
    nami_free(w.reduced);
    nami_free(w.next);
    nami_free(w.asleep);
    nami_free(w.awake);
    return status;
}
