/* SPDX-License-Identifier: MIT */
/* validate.c - prove lists: first each position by itself, then that all of them together finish.
 *
 * The proof covers: each entry belongs where it stands; every (stage, micro-batch, slice) has exactly the
 * actions that the purpose asks for, in the order that data on its own position demands; a message has one
 * sender and one receiver with equal keys; REDUCE and UPDATE follow the last gradient (without a
 * flush: of their group, and none of a later one comes before them); each reader finds in its slot the version that
 * its policy demands; no more activations are in flight than the order promises; and walk.c finds
 * no deadlock, with sends that wait for their receiver's post (nothing is buffered on the way).
 * Time and memory are linear in the number of actions.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "sched/order.h"
#include "sched/version.h"

enum { HAS_REDUCE = 1, HAS_UPDATE = 2, HAS_GATHER = 4, HAS_SCATTER = 8 };

typedef struct proof {
    const nami_schedule *s;
    const nami_place *p;
    bool train;
    uint16_t *seen;  /* [stages][units][slices]: one bit a kind */
    int16_t *owner;  /* [units]: the copy that runs it, -1 before it is known */
    uint8_t *ending; /* [copies][stages]: HAS_..., without a flush of update `made` */
    int32_t *made;   /* [stages]: updates so far, without a flush */
    int32_t *added;  /* [stages]: gradients of update `made` so far */
    int position;    /* being looked at */
    int64_t index;
    nami_action a;
} proof;

#define BIT(kind) (1u << (kind))
enum {
    BACKWARDS = BIT(NAMI_B) | BIT(NAMI_BI),
    MESSAGES = BIT(NAMI_SEND_F) | BIT(NAMI_RECV_F) | BIT(NAMI_SEND_B) | BIT(NAMI_RECV_B)
};

/* Fail at the entry being looked at. */
static nami_status __attribute__((format(printf, 2, 3)))
object(const proof *c, const char *format, ...)
{
    char reason[400];
    nami_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    nami_action_print(c->a, &text);
    nami_status status =
        nami_fail(NAMI_EPLAN, "position %d, entry %lld (%s): %s", c->position,
                  (long long)c->index, nami_text_get(&text), reason);
    nami_text_free(&text);
    return status;
}

static uint16_t *seen_at(const proof *c, int stage, int unit, int slice)
{
    const nami_recipe *r = &c->s->recipe;
    return &c->seen[((int64_t)stage * r->microbatches + unit) * r->slices + slice];
}

/* Whether a message passes between stages `from` and `to` of `copy`. */
static bool crosses(const proof *c, int copy, int from, int to)
{
    return to >= 0 && to < c->p->stages &&
           nami_place_of(c->p, copy, from) != nami_place_of(c->p, copy, to);
}

/* The kinds of messages that each (stage, micro-batch) of `copy` must have. */
static unsigned messages_of(const proof *c, int copy, int stage)
{
    unsigned kinds = 0;
    if (crosses(c, copy, stage, stage - 1))
        kinds |= BIT(NAMI_RECV_F) | (c->train ? BIT(NAMI_SEND_B) : 0);
    if (crosses(c, copy, stage, stage + 1))
        kinds |= BIT(NAMI_SEND_F) | (c->train ? BIT(NAMI_RECV_B) : 0);
    return c->s->communicates ? kinds : 0;
}

static nami_status check_place(const proof *c)
{
    nami_action a = c->a;
    if (a.stage >= c->p->stages)
        return object(c, "there are only stages 0 to %d", c->p->stages - 1);
    if (a.copy >= c->p->copies)
        return object(c, "the model has only %d copy", c->p->copies);
    int place = nami_place_of(c->p, a.copy, a.stage);
    if (place != c->position)
        return object(c, "stage %d lies on position %d", a.stage, place);
    if (!nami_semantics_of(a.kind)->per_unit)
        return a.slice == 0 ? NAMI_OK : object(c, "it has no token slices");
    if (a.unit < 0 || a.unit >= c->s->recipe.microbatches)
        return object(c, "there are only micro-batches 0 to %d",
                      c->s->recipe.microbatches - 1);
    if (a.slice >= c->s->recipe.slices)
        return object(c, "there are only slices 0 to %d", c->s->recipe.slices - 1);
    return NAMI_OK;
}

static nami_status check_forward(const proof *c, unsigned seen)
{
    nami_action a = c->a;
    if ((messages_of(c, a.copy, a.stage) & BIT(NAMI_RECV_F)) &&
        !(seen & BIT(NAMI_RECV_F)))
        return object(c, "its input has not been received: no %dRECV_F%d before it",
                      a.stage, a.unit);
    if (a.slice > 0 && !(*seen_at(c, a.stage, a.unit, a.slice - 1) & BIT(NAMI_F)))
        return object(c, "slice %d must come before it", a.slice - 1);
    return NAMI_OK;
}

static nami_status check_backward(const proof *c, unsigned seen)
{
    nami_action a = c->a;
    if (!(seen & BIT(NAMI_F)))
        return object(c, "its forward has not run");
    if (seen & BACKWARDS)
        return object(c, "the micro-batch has had its backward already");
    if ((messages_of(c, a.copy, a.stage) & BIT(NAMI_RECV_B)) &&
        !(seen & BIT(NAMI_RECV_B)))
        return object(c, "its gradient has not been received: no %dRECV_B%d before it",
                      a.stage, a.unit);
    if (a.slice + 1 < c->s->recipe.slices &&
        !(*seen_at(c, a.stage, a.unit, a.slice + 1) & BACKWARDS))
        return object(c, "slice %d must come before it", a.slice + 1);
    return NAMI_OK;
}

static nami_status check_message(const proof *c, unsigned seen)
{
    nami_action a = c->a;
    if (!(messages_of(c, a.copy, a.stage) & BIT(a.kind)))
        return object(c, "no such message exists between these stages");
    if (a.kind == NAMI_SEND_F && !(seen & BIT(NAMI_F)))
        return object(c, "the output it sends has not been made");
    if (a.kind == NAMI_SEND_B && !(seen & BACKWARDS))
        return object(c, "the gradient it sends has not been made");
    return NAMI_OK;
}

static nami_status check_order(const proof *c, unsigned seen)
{
    switch (c->a.kind) {
    case NAMI_F:
        return check_forward(c, seen);
    case NAMI_B:
    case NAMI_BI:
        return check_backward(c, seen);
    case NAMI_BW:
        return seen & BIT(NAMI_BI) ? NAMI_OK
                                   : object(c, "its input backward (I) has not run");
    case NAMI_R:
        if (c->s->recipe.stage_recompute.count > 0 &&
            c->s->recipe.stage_recompute.item[c->a.stage] == 0)
            return object(c, "stage %d holds its activations", c->a.stage);
        if (!(seen & BIT(NAMI_F)))
            return object(c, "its forward has not run");
        return seen & BACKWARDS ? object(c, "its backward has run already") : NAMI_OK;
    default:
        return check_message(c, seen);
    }
}

/* With a flush nothing follows the sum and the update of the step. */
static nami_status check_before_end(const proof *c)
{
    const nami_semantics *is = nami_semantics_of(c->a.kind);
    uint8_t ended = c->ending[(int64_t)c->a.copy * c->p->stages + c->a.stage];
    if (is->adds_gradient && (ended & HAS_REDUCE))
        return object(c, "the gradients of stage %d have been reduced already",
                      c->a.stage);
    if (is->compute && (ended & HAS_UPDATE))
        return object(c, "stage %d has been updated already", c->a.stage);
    return NAMI_OK;
}

/* Without a flush a gradient belongs to the update that the stage makes next. */
static nami_status check_group(const proof *c)
{
    nami_action a = c->a;
    int group = a.unit / nami_recipe_group(&c->s->recipe), made = c->made[a.stage];
    if (!c->s->updates || !nami_semantics_of(a.kind)->adds_gradient)
        return NAMI_OK;
    if (group < made || (group == made && (c->ending[a.stage] & HAS_REDUCE)))
        return object(c, "the gradients of update %d have been reduced already", group);
    if (group > made)
        return object(c, "it is of update %d, but update %d of stage %d comes first",
                      group, made, a.stage);
    c->added[a.stage]++;
    return NAMI_OK;
}

/* An action that belongs to a micro-batch. */
static nami_status check_unit(proof *c)
{
    nami_action a = c->a;
    const nami_semantics *is = nami_semantics_of(a.kind);
    uint16_t *seen = seen_at(c, a.stage, a.unit, a.slice);
    if (!c->train && (is->closes_saved || is->makes_gradient || a.kind == NAMI_R))
        return object(c, "an evaluation has forwards only");
    if (*seen & BIT(a.kind))
        return object(c, "it stands in the list twice");
    if (c->owner[a.unit] >= 0 && c->owner[a.unit] != a.copy)
        return object(c, "the micro-batch runs in copy %d of the model",
                      c->owner[a.unit]);
    NAMI_TRY(nami_recipe_flushes(&c->s->recipe) ? check_before_end(c) : check_group(c));
    NAMI_TRY(check_order(c, *seen));
    c->owner[a.unit] = a.copy;
    *seen |= (uint16_t)BIT(a.kind);
    return NAMI_OK;
}

/* REDUCE, GATHER, UPDATE of a stage in a schedule with a flush. */
static nami_status check_ending(proof *c)
{
    nami_action a = c->a;
    uint8_t *ended = &c->ending[(int64_t)a.copy * c->p->stages + a.stage];
    uint8_t bit = a.kind == NAMI_UPDATE   ? HAS_UPDATE
                  : a.kind == NAMI_GATHER ? HAS_GATHER
                                          : HAS_REDUCE;
    if (!c->train)
        return object(c, "an evaluation changes no weights");
    if (a.unit >= 0)
        return object(c, "with a flush it belongs to the step, not to a micro-batch");
    if (*ended & bit)
        return object(c, "stage %d has had it already", a.stage);
    if (a.kind == NAMI_UPDATE && !(*ended & HAS_REDUCE))
        return object(c, "the gradients of stage %d have not been reduced", a.stage);
    if (a.kind == NAMI_GATHER && !(*ended & HAS_UPDATE))
        return object(c, "stage %d has not been updated", a.stage);
    if (a.kind == NAMI_GATHER && !(*ended & HAS_SCATTER))
        return object(c, "nothing of stage %d was scattered", a.stage);
    *ended |= bit | (a.kind == NAMI_REDUCE_SCATTER ? HAS_SCATTER : 0);
    return NAMI_OK;
}

/* REDUCE and UPDATE of a stage without a flush: in order of the updates, each behind all its gradients. */
static nami_status check_update(proof *c)
{
    nami_action a = c->a;
    int made = c->made[a.stage], m = nami_recipe_group(&c->s->recipe);
    if (!c->train)
        return object(c, "an evaluation changes no weights");
    if (a.kind != NAMI_REDUCE && a.kind != NAMI_UPDATE)
        return object(c, "without a flush gradients are not scattered");
    if (a.unit != made)
        return object(c, "update %d of stage %d comes next", made, a.stage);
    if (a.kind == NAMI_REDUCE) {
        if (c->ending[a.stage] & HAS_REDUCE)
            return object(c, "stage %d has had it already", a.stage);
        if (c->added[a.stage] != m)
            return object(c, "only %d of the %d gradients of update %d stand before it",
                          c->added[a.stage], m, made);
        c->ending[a.stage] = HAS_REDUCE;
        return NAMI_OK;
    }
    if (!(c->ending[a.stage] & HAS_REDUCE))
        return object(c, "the gradients of stage %d have not been reduced", a.stage);
    c->ending[a.stage] = 0;
    c->added[a.stage] = 0;
    c->made[a.stage]++;
    return NAMI_OK;
}

/* The entry and the next one are a pair: two computations that do not need each other. */
static nami_status check_pair(const proof *c)
{
    const nami_list *l = &c->s->list[c->position];
    if (!nami_list_pair(l, c->index))
        return object(c, "it is marked as the first of a pair, but ends the list");
    nami_action a = c->a, b = l->item[c->index + 1];
    if (b.kind >= NAMI_KINDS || !nami_semantics_of(a.kind)->compute ||
        !nami_semantics_of(b.kind)->compute)
        return object(c, "only two computations can be a pair");
    if (b.flags & NAMI_FLAG_PAIR)
        return object(c, "a pair has two actions, not three");
    bool same = a.stage == b.stage && a.unit == b.unit && a.copy == b.copy;
    if (same && (a.slice == b.slice || a.kind == b.kind))
        return object(c, "the other one of its pair needs it first");
    return NAMI_OK;
}

static nami_status check_entry(proof *c)
{
    if (c->a.kind >= NAMI_KINDS)
        return nami_fail(NAMI_EPLAN,
                         "position %d, entry %lld: unknown kind of action %d",
                         c->position, (long long)c->index, c->a.kind);
    NAMI_TRY(check_place(c));
    if (!nami_versions_kept(c->s) && c->a.version != 0)
        return object(c, "%s",
                      nami_recipe_flushes(&c->s->recipe)
                          ? "with a flush there is only version 0 of the weights"
                          : "versions are given together with the updates");
    if (c->a.flags & NAMI_FLAG_PAIR)
        NAMI_TRY(check_pair(c));
    if (nami_semantics_of(c->a.kind)->per_unit)
        return check_unit(c);
    if (c->a.kind == NAMI_DRAIN)
        return NAMI_OK;
    return nami_recipe_flushes(&c->s->recipe) ? check_ending(c) : check_update(c);
}

static nami_status check_lists(proof *c)
{
    for (c->position = 0; c->position < c->p->positions; c->position++) {
        const nami_list *l = &c->s->list[c->position];
        for (c->index = 0; c->index < l->count; c->index++) {
            c->a = l->item[c->index];
            NAMI_TRY(check_entry(c));
        }
    }
    return NAMI_OK;
}

/* Fail because stage, unit, slice lack one of `kinds`. */
static nami_status lacks(const proof *c, int stage, int64_t unit, int slice,
                         unsigned kinds)
{
    int kind = 0;
    while (!(kinds >> kind & 1u))
        kind++;
    int copy = c->owner[unit] > 0 ? 1 : 0;
    nami_action a = nami_action_of((nami_kind)kind, stage, (int)unit);
    a.slice = (uint16_t)slice;
    a.copy = (uint8_t)copy;
    nami_text text = {0};
    nami_action_print(a, &text);
    nami_status status =
        nami_fail(NAMI_EPLAN, "position %d: %s is missing from its list",
                  nami_place_of(c->p, copy, stage), nami_text_get(&text));
    nami_text_free(&text);
    return status;
}

static nami_status check_complete_unit(const proof *c, int stage, int unit, int slice)
{
    unsigned seen = *seen_at(c, stage, unit, slice);
    unsigned want = BIT(NAMI_F) | messages_of(c, c->owner[unit] > 0, stage);
    if (c->train && (seen & BIT(NAMI_BI)))
        want |= BIT(NAMI_BW);
    else if (c->train)
        want |= BIT(NAMI_B);
    const nami_ints *again = &c->s->recipe.stage_recompute;
    if (c->train && again->count > 0 && again->item[stage] != 0)
        want |= BIT(NAMI_R);
    return (want & ~seen) == 0 ? NAMI_OK : lacks(c, stage, unit, slice, want & ~seen);
}

static nami_status check_made(const proof *c)
{
    int all = nami_recipe_updates(&c->s->recipe);
    for (int s = 0; s < c->p->stages; s++) {
        if (c->made[s] != all)
            return nami_fail(
                NAMI_EPLAN,
                "position %d: UPDATE %d of stage %d is missing from its list",
                c->p->position[s], c->made[s], s);
    }
    return NAMI_OK;
}

static nami_status check_complete(const proof *c)
{
    const nami_recipe *r = &c->s->recipe;
    for (int s = 0; s < c->p->stages; s++) {
        for (int u = 0; u < r->microbatches; u++) {
            for (int k = 0; k < r->slices; k++)
                NAMI_TRY(check_complete_unit(c, s, u, k));
        }
    }
    if (!c->s->updates)
        return NAMI_OK;
    if (!nami_recipe_flushes(r))
        return check_made(c);
    for (int64_t i = 0; i < (int64_t)c->p->copies * c->p->stages; i++) {
        unsigned want = HAS_REDUCE | HAS_UPDATE, has = c->ending[i];
        want |= has & HAS_SCATTER ? HAS_GATHER : 0;
        if ((has & want) != want)
            return nami_fail(
                NAMI_EPLAN, "position %d: %s of stage %d is missing", c->p->position[i],
                has & HAS_SCATTER ? "GATHER or UPDATE" : "REDUCE or UPDATE",
                (int)(i % c->p->stages));
    }
    return NAMI_OK;
}

/* The order's promise about memory. */
static nami_status check_held(const nami_schedule *s)
{
    const nami_order *order = nami_order_find(s->recipe.order);
    for (int p = 0;
         order != NULL && s->purpose == NAMI_PURPOSE_TRAIN && p < s->place.positions;
         p++) {
        int64_t most = nami_schedule_units(s, p), promise = order->held(&s->recipe, p);
        if (most > promise)
            return nami_fail(NAMI_EPLAN,
                             "position %d holds %lld activations of a stage at once, "
                             "but order \"%s\" "
                             "promises at most %lld",
                             p, (long long)most, order->name, (long long)promise);
    }
    return NAMI_OK;
}

/* Sizes first: lists too short to be complete are refused before memory is asked for. */
static nami_status check_sizes(const nami_schedule *s)
{
    const nami_recipe *r = &s->recipe;
    int64_t entries = 0;
    for (int p = 0; p < s->place.positions; p++)
        entries += s->list[p].count;
    if (r->microbatches < 1 || r->slices < 1 || s->place.stages < 1)
        return nami_fail(NAMI_EPLAN, "the schedule is empty");
    NAMI_TRY(nami_recipe_check_updates(r));
    double needed = (double)s->place.stages * r->microbatches * r->slices *
                    (s->purpose == NAMI_PURPOSE_TRAIN ? 2 : 1);
    if ((double)entries < needed)
        return nami_fail(NAMI_EPLAN,
                         "%d stages and %d micro-batches need at least %.0f actions, "
                         "but there are %lld: "
                         "some are missing",
                         s->place.stages, r->microbatches, needed, (long long)entries);
    return NAMI_OK;
}

nami_status nami_schedule_validate(const nami_schedule *s)
{
    NAMI_TRY(check_sizes(s));
    const nami_recipe *r = &s->recipe;
    size_t stages = (size_t)s->place.stages, units = (size_t)r->microbatches;
    proof c = {.s = s, .p = &s->place, .train = s->purpose == NAMI_PURPOSE_TRAIN};
    c.seen =
        nami_calloc(NAMI_MEM_OTHER, stages * units * (size_t)r->slices, sizeof *c.seen);
    c.ending = nami_calloc(NAMI_MEM_OTHER, (size_t)s->place.copies * stages, 1);
    c.owner = nami_alloc(NAMI_MEM_OTHER, units * sizeof *c.owner);
    for (size_t u = 0; u < units; u++)
        c.owner[u] = -1;
    c.made = nami_calloc(NAMI_MEM_OTHER, stages, sizeof *c.made);
    c.added = nami_calloc(NAMI_MEM_OTHER, stages, sizeof *c.added);
    nami_status status = check_lists(&c);
    if (status == NAMI_OK)
        status = check_complete(&c);
    if (status == NAMI_OK)
        status = nami_versions_prove(s);
    nami_free(c.made);
    nami_free(c.added);
    nami_free(c.seen);
    nami_free(c.ending);
    nami_free(c.owner);
    if (status == NAMI_OK)
        status = check_held(s);
    return status == NAMI_OK ? nami_schedule_walk(s, NULL, NULL) : status;
}
