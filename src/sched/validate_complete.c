/* SPDX-License-Identifier: MIT */
/* validate_complete.c - prove that nothing is missing, when all lists have been read. */
#include "sched/validate.h"

/* Fail because stage, unit, slice lack one of `kinds`. */
static nami_status lacks(const nami_proof *c, int stage, int64_t unit, int slice,
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

static nami_status check_unit(const nami_proof *c, int stage, int unit, int slice)
{
    unsigned seen = *nami_proof_seen(c, stage, unit, slice);
    unsigned want =
        NAMI_BIT(NAMI_F) | nami_proof_messages(c, c->owner[unit] > 0, stage);
    if (c->train && (seen & NAMI_BIT(NAMI_BI)))
        want |= NAMI_BIT(NAMI_BW);
    else if (c->train)
        want |= NAMI_BIT(NAMI_B);
    const nami_ints *again = &c->s->recipe.stage_recompute;
    if (c->train && again->count > 0 && again->item[stage] != 0)
        want |= NAMI_BIT(NAMI_R);
    return (want & ~seen) == 0 ? NAMI_OK : lacks(c, stage, unit, slice, want & ~seen);
}

static nami_status check_updates(const nami_proof *c)
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

nami_status nami_prove_complete(const nami_proof *c)
{
    const nami_recipe *r = &c->s->recipe;
    for (int s = 0; s < c->p->stages; s++) {
        for (int u = 0; u < r->microbatches; u++) {
            for (int k = 0; k < r->slices; k++)
                NAMI_TRY(check_unit(c, s, u, k));
        }
    }
    if (!c->s->updates)
        return NAMI_OK;
    if (!nami_recipe_flushes(r))
        return check_updates(c);
    for (int64_t i = 0; i < (int64_t)c->p->copies * c->p->stages; i++) {
        unsigned want = NAMI_PROOF_REDUCE | NAMI_PROOF_UPDATE, has = c->ending[i];
        want |= has & NAMI_PROOF_SCATTER ? NAMI_PROOF_GATHER : 0;
        if ((has & want) != want)
            return nami_fail(
                NAMI_EPLAN, "position %d: %s of stage %d is missing", c->p->position[i],
                has & NAMI_PROOF_SCATTER ? "GATHER or UPDATE" : "REDUCE or UPDATE",
                (int)(i % c->p->stages));
    }
    return NAMI_OK;
}
