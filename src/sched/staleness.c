/* SPDX-License-Identifier: MIT */
/* staleness.c - delays of the weights, from the version numbers of the lists. */
#include "sched/staleness.h"

#include "sched/version.h"

void nami_schedule_delays(const nami_schedule *s, int stage, int32_t *forward,
                          int32_t *backward)
{
    const nami_list *l = &s->list[nami_place_of(&s->place, 0, stage)];
    const int group = nami_recipe_group(&s->recipe);
    for (int u = 0; u < s->recipe.microbatches; u++)
        forward[u] = backward[u] = 0;
    if (!nami_versions_kept(s))
        return;
    nami_versions v;
    nami_versions_open(&v, s);
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        int number = nami_versions_see(&v, a);
        if (a.stage != stage)
            continue;
        /* update k is applied to version k */
        if (a.kind == NAMI_F)
            forward[a.unit] = a.unit / group - number;
        if (a.kind == NAMI_B || a.kind == NAMI_BI)
            backward[a.unit] = a.unit / group - number;
    }
    nami_versions_close(&v);
}
