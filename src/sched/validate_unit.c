/* SPDX-License-Identifier: MIT */
/* validate_unit.c - prove an action that belongs to a micro-batch: what must stand before it does. */
#include "sched/validate.h"

static nami_status check_forward(const nami_proof *c, unsigned seen)
{
    nami_action a = c->a;
    if ((nami_proof_messages(c, a.copy, a.stage) & NAMI_BIT(NAMI_RECV_F)) &&
        !(seen & NAMI_BIT(NAMI_RECV_F)))
        return nami_proof_object(
            c, "its input has not been received: no %dRECV_F%d before it", a.stage,
            a.unit);
    if (a.slice > 0 &&
        !(*nami_proof_seen(c, a.stage, a.unit, a.slice - 1) & NAMI_BIT(NAMI_F)))
        return nami_proof_object(c, "slice %d must come before it", a.slice - 1);
    return NAMI_OK;
}

static nami_status check_backward(const nami_proof *c, unsigned seen)
{
    nami_action a = c->a;
    if (!(seen & NAMI_BIT(NAMI_F)))
        return nami_proof_object(c, "its forward has not run");
    if (seen & NAMI_PROOF_BACKWARDS)
        return nami_proof_object(c, "the micro-batch has had its backward already");
    if ((nami_proof_messages(c, a.copy, a.stage) & NAMI_BIT(NAMI_RECV_B)) &&
        !(seen & NAMI_BIT(NAMI_RECV_B)))
        return nami_proof_object(
            c, "its gradient has not been received: no %dRECV_B%d before it", a.stage,
            a.unit);
    if (a.slice + 1 < c->s->recipe.slices &&
        !(*nami_proof_seen(c, a.stage, a.unit, a.slice + 1) & NAMI_PROOF_BACKWARDS))
        return nami_proof_object(c, "slice %d must come before it", a.slice + 1);
    return NAMI_OK;
}

static nami_status check_message(const nami_proof *c, unsigned seen)
{
    nami_action a = c->a;
    if (!(nami_proof_messages(c, a.copy, a.stage) & NAMI_BIT(a.kind)))
        return nami_proof_object(c, "no such message exists between these stages");
    if (a.kind == NAMI_SEND_F && !(seen & NAMI_BIT(NAMI_F)))
        return nami_proof_object(c, "the output it sends has not been made");
    if (a.kind == NAMI_SEND_B && !(seen & NAMI_PROOF_BACKWARDS))
        return nami_proof_object(c, "the gradient it sends has not been made");
    return NAMI_OK;
}

static nami_status check_order(const nami_proof *c, unsigned seen)
{
    switch (c->a.kind) {
    case NAMI_F:
        return check_forward(c, seen);
    case NAMI_B:
    case NAMI_BI:
        return check_backward(c, seen);
    case NAMI_BW:
        return seen & NAMI_BIT(NAMI_BI)
                   ? NAMI_OK
                   : nami_proof_object(c, "its input backward (I) has not run");
    case NAMI_R:
        if (c->s->recipe.stage_recompute.count > 0 &&
            c->s->recipe.stage_recompute.item[c->a.stage] == 0)
            return nami_proof_object(c, "stage %d holds its activations", c->a.stage);
        if (!(seen & NAMI_BIT(NAMI_F)))
            return nami_proof_object(c, "its forward has not run");
        return seen & NAMI_PROOF_BACKWARDS
                   ? nami_proof_object(c, "its backward has run already")
                   : NAMI_OK;
    default:
        return check_message(c, seen);
    }
}

/* With a flush nothing follows the sum and the update of the step. */
static nami_status check_before_end(const nami_proof *c)
{
    const nami_semantics *is = nami_semantics_of(c->a.kind);
    uint8_t ended = c->ending[(int64_t)c->a.copy * c->p->stages + c->a.stage];
    if (is->adds_gradient && (ended & NAMI_PROOF_REDUCE))
        return nami_proof_object(
            c, "the gradients of stage %d have been reduced already", c->a.stage);
    if (is->compute && (ended & NAMI_PROOF_UPDATE))
        return nami_proof_object(c, "stage %d has been updated already", c->a.stage);
    return NAMI_OK;
}

/* Without a flush a gradient belongs to the update that the stage makes next. */
static nami_status check_group(const nami_proof *c)
{
    nami_action a = c->a;
    int group = a.unit / nami_recipe_group(&c->s->recipe), made = c->made[a.stage];
    if (!c->s->updates || !nami_semantics_of(a.kind)->adds_gradient)
        return NAMI_OK;
    if (group < made || (group == made && (c->ending[a.stage] & NAMI_PROOF_REDUCE)))
        return nami_proof_object(
            c, "the gradients of update %d have been reduced already", group);
    if (group > made)
        return nami_proof_object(
            c, "it is of update %d, but update %d of stage %d comes first", group, made,
            a.stage);
    c->added[a.stage]++;
    return NAMI_OK;
}

nami_status nami_prove_unit(nami_proof *c)
{
    nami_action a = c->a;
    const nami_semantics *is = nami_semantics_of(a.kind);
    uint16_t *seen = nami_proof_seen(c, a.stage, a.unit, a.slice);
    if (!c->train && (is->closes_saved || is->makes_gradient || a.kind == NAMI_R))
        return nami_proof_object(c, "an evaluation has forwards only");
    if (*seen & NAMI_BIT(a.kind))
        return nami_proof_object(c, "it stands in the list twice");
    if (c->owner[a.unit] >= 0 && c->owner[a.unit] != a.copy)
        return nami_proof_object(c, "the micro-batch runs in copy %d of the model",
                                 c->owner[a.unit]);
    NAMI_TRY(nami_recipe_flushes(&c->s->recipe) ? check_before_end(c) : check_group(c));
    NAMI_TRY(check_order(c, *seen));
    c->owner[a.unit] = a.copy;
    *seen |= (uint16_t)NAMI_BIT(a.kind);
    return NAMI_OK;
}
