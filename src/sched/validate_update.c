/* SPDX-License-Identifier: MIT */
/* validate_update.c - prove sums and updates of a stage: each once, each behind all its gradients. */
#include "sched/validate.h"

/* REDUCE, GATHER, UPDATE of a stage in a schedule with a flush. */
static nami_status check_step(nami_proof *c)
{
    nami_action a = c->a;
    uint8_t *ended = &c->ending[(int64_t)a.copy * c->p->stages + a.stage];
    uint8_t bit = a.kind == NAMI_UPDATE   ? NAMI_PROOF_UPDATE
                  : a.kind == NAMI_GATHER ? NAMI_PROOF_GATHER
                                          : NAMI_PROOF_REDUCE;
    if (!c->train)
        return nami_proof_object(c, "an evaluation changes no weights");
    if (a.unit >= 0)
        return nami_proof_object(
            c, "with a flush it belongs to the step, not to a micro-batch");
    if (*ended & bit)
        return nami_proof_object(c, "stage %d has had it already", a.stage);
    if (a.kind == NAMI_UPDATE && !(*ended & NAMI_PROOF_REDUCE))
        return nami_proof_object(c, "the gradients of stage %d have not been reduced",
                                 a.stage);
    if (a.kind == NAMI_GATHER && !(*ended & NAMI_PROOF_UPDATE))
        return nami_proof_object(c, "stage %d has not been updated", a.stage);
    if (a.kind == NAMI_GATHER && !(*ended & NAMI_PROOF_SCATTER))
        return nami_proof_object(c, "nothing of stage %d was scattered", a.stage);
    *ended |= bit | (a.kind == NAMI_REDUCE_SCATTER ? NAMI_PROOF_SCATTER : 0);
    return NAMI_OK;
}

/* REDUCE and UPDATE of a stage without a flush: in order of the updates, each behind all its gradients. */
static nami_status check_group(nami_proof *c)
{
    nami_action a = c->a;
    int made = c->made[a.stage], m = nami_recipe_group(&c->s->recipe);
    if (!c->train)
        return nami_proof_object(c, "an evaluation changes no weights");
    if (a.kind != NAMI_REDUCE && a.kind != NAMI_UPDATE)
        return nami_proof_object(c, "without a flush gradients are not scattered");
    if (a.unit != made)
        return nami_proof_object(c, "update %d of stage %d comes next", made, a.stage);
    if (a.kind == NAMI_REDUCE) {
        if (c->ending[a.stage] & NAMI_PROOF_REDUCE)
            return nami_proof_object(c, "stage %d has had it already", a.stage);
        if (c->added[a.stage] != m)
            return nami_proof_object(
                c, "only %d of the %d gradients of update %d stand before it",
                c->added[a.stage], m, made);
        c->ending[a.stage] = NAMI_PROOF_REDUCE;
        return NAMI_OK;
    }
    if (!(c->ending[a.stage] & NAMI_PROOF_REDUCE))
        return nami_proof_object(c, "the gradients of stage %d have not been reduced",
                                 a.stage);
    c->ending[a.stage] = 0;
    c->added[a.stage] = 0;
    c->made[a.stage]++;
    return NAMI_OK;
}

nami_status nami_prove_update(nami_proof *c)
{
    return nami_recipe_flushes(&c->s->recipe) ? check_step(c) : check_group(c);
}
