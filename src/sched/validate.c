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
#include "sched/validate.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "sched/order.h"
#include "sched/version.h"

nami_status nami_proof_object(const nami_proof *c, const char *format, ...)
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

uint16_t *nami_proof_seen(const nami_proof *c, int stage, int unit, int slice)
{
    const nami_recipe *r = &c->s->recipe;
    return &c->seen[((int64_t)stage * r->microbatches + unit) * r->slices + slice];
}

/* Whether a message passes between stages `from` and `to` of `copy`. */
static bool crosses(const nami_proof *c, int copy, int from, int to)
{
    return to >= 0 && to < c->p->stages &&
           nami_place_of(c->p, copy, from) != nami_place_of(c->p, copy, to);
}

unsigned nami_proof_messages(const nami_proof *c, int copy, int stage)
{
    unsigned kinds = 0;
    if (crosses(c, copy, stage, stage - 1))
        kinds |= NAMI_BIT(NAMI_RECV_F) | (c->train ? NAMI_BIT(NAMI_SEND_B) : 0);
    if (crosses(c, copy, stage, stage + 1))
        kinds |= NAMI_BIT(NAMI_SEND_F) | (c->train ? NAMI_BIT(NAMI_RECV_B) : 0);
    return c->s->communicates ? kinds : 0;
}

static nami_status check_place(const nami_proof *c)
{
    nami_action a = c->a;
    if (a.stage >= c->p->stages)
        return nami_proof_object(c, "there are only stages 0 to %d", c->p->stages - 1);
    if (a.copy >= c->p->copies)
        return nami_proof_object(c, "the model has only %d cop%s", c->p->copies,
                                 c->p->copies == 1 ? "y" : "ies");
    int place = nami_place_of(c->p, a.copy, a.stage);
    if (place != c->position)
        return nami_proof_object(c, "stage %d lies on position %d", a.stage, place);
    if (!nami_semantics_of(a.kind)->per_unit)
        return a.slice == 0 ? NAMI_OK : nami_proof_object(c, "it has no token slices");
    if (a.unit < 0 || a.unit >= c->s->recipe.microbatches)
        return nami_proof_object(c, "there are only micro-batches 0 to %d",
                                 c->s->recipe.microbatches - 1);
    if (a.slice >= c->s->recipe.slices)
        return nami_proof_object(c, "there are only slices 0 to %d",
                                 c->s->recipe.slices - 1);
    return NAMI_OK;
}

/* The entry and the next one are a pair: two computations that do not need each other. */
static nami_status check_pair(const nami_proof *c)
{
    const nami_list *l = &c->s->list[c->position];
    if (!nami_list_pair(l, c->index))
        return nami_proof_object(
            c, "it is marked as the first of a pair, but ends the list");
    nami_action a = c->a, b = l->item[c->index + 1];
    if (b.kind >= NAMI_KINDS || !nami_semantics_of(a.kind)->compute ||
        !nami_semantics_of(b.kind)->compute)
        return nami_proof_object(c, "only two computations can be a pair");
    if (b.flags & NAMI_FLAG_PAIR)
        return nami_proof_object(c, "a pair has two actions, not three");
    bool same = a.stage == b.stage && a.unit == b.unit && a.copy == b.copy;
    if (same && (a.slice == b.slice || a.kind == b.kind))
        return nami_proof_object(c, "the other one of its pair needs it first");
    return NAMI_OK;
}

static nami_status check_entry(nami_proof *c)
{
    if (c->a.kind >= NAMI_KINDS)
        return nami_fail(NAMI_EPLAN,
                         "position %d, entry %lld: unknown kind of action %d",
                         c->position, (long long)c->index, c->a.kind);
    NAMI_TRY(check_place(c));
    if (!nami_versions_kept(c->s) && c->a.version != 0)
        return nami_proof_object(
            c, "%s",
            nami_recipe_flushes(&c->s->recipe)
                ? "with a flush there is only version 0 of the weights"
                : "versions are given together with the updates");
    if (c->a.flags & NAMI_FLAG_PAIR)
        NAMI_TRY(check_pair(c));
    if (nami_semantics_of(c->a.kind)->per_unit)
        return nami_prove_unit(c);
    if (c->a.kind == NAMI_DRAIN)
        return NAMI_OK;
    return nami_prove_update(c);
}

static nami_status check_lists(nami_proof *c)
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
    nami_proof c = {.s = s, .p = &s->place, .train = s->purpose == NAMI_PURPOSE_TRAIN};
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
        status = nami_prove_complete(&c);
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
