/* SPDX-License-Identifier: MIT */
/* cost.c - how long an action takes by the costs that were given. */
#include "sim/inner.h"

static double own(const double *table, double uniform, int stage)
{
    return table != NULL ? table[stage] : uniform;
}

double nami_sim_duration(const nami_sim *m, nami_action a)
{
    const nami_cost *c = m->cost;
    double slices = m->s->recipe.slices;
    double shares = slices * nami_sim_ranks(m, a.copy, a.stage);
    double stage = m->uniform ? slices /* a stage of the whole micro-batch */
                              : (double)m->s->place.positions / m->s->place.stages;
    double f = own(c->stage_f, c->tf * stage, a.stage) / shares;
    double bi = own(c->stage_bi, c->tbi * stage, a.stage) / shares;
    double bw = own(c->stage_bw, c->tbw * stage, a.stage) / shares;
    double again = c->tr > 0.0 ? c->tr * stage / shares : f;
    again = m->s->recipe.recompute ? again : 0.0;
    switch (a.kind) {
    case NAMI_F:
        return f;
    case NAMI_R:
        return c->tr > 0.0 ? c->tr * stage / shares : f;
    case NAMI_B:
        return bi + bw + again;
    case NAMI_BI:
        return bi + again;
    case NAMI_BW:
        return bw;
    case NAMI_UPDATE:
        return c->update * stage;
    case NAMI_REDUCE:
    case NAMI_REDUCE_SCATTER:
    case NAMI_GATHER: /* a rank alone, where ranks were given, has nothing to sum */
        if (m->s->recipe.stage_replicas.count > 0 &&
            m->s->place.replicas[nami_place_of(&m->s->place, a.copy, a.stage)] == 1)
            return 0.0;
        return c->reduce * stage * (a.kind == NAMI_REDUCE ? 1.0 : 0.5);
    default:
        return 0.0;
    }
}
