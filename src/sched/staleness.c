/* SPDX-License-Identifier: MIT */
/* staleness.c - delays of the weights, from the version numbers of the lists. */
#include "sched/staleness.h"

#include "base/memory.h"
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

const char *nami_window_phase_name(nami_window_phase phase)
{
    static const char *const names[] = {"fill", "steady", "drain"};
    return names[phase];
}

static void spread_add(nami_spread *s, int delay)
{
    s->least = s->units == 0 || delay < s->least ? delay : s->least;
    s->most = delay > s->most ? delay : s->most;
    s->mean = (s->mean * s->units + delay) / (s->units + 1);
    s->units++;
}

/* The phase of each unit of a stage, whose forward delays are known. */
static void find_phases(const nami_schedule *s, int stage, const int32_t *delay,
                        nami_window_phase *phase)
{
    const nami_list *l = &s->list[nami_place_of(&s->place, 0, stage)];
    const int group = nami_recipe_group(&s->recipe);
    int64_t last = -1;
    for (int64_t i = 0; i < l->count; i++) {
        if (l->item[i].stage == stage && l->item[i].kind == NAMI_F)
            last = i;
    }
    for (int u = 0; u < s->recipe.microbatches; u++)
        phase[u] = u / group == delay[u] ? NAMI_WINDOW_FILL : NAMI_WINDOW_STEADY;
    for (int64_t i = last + 1; i < l->count; i++) {
        nami_action a = l->item[i];
        bool backward = a.kind == NAMI_B || a.kind == NAMI_BI;
        if (a.stage == stage && backward && phase[a.unit] == NAMI_WINDOW_STEADY)
            phase[a.unit] = NAMI_WINDOW_DRAIN;
    }
}

void nami_schedule_staleness(const nami_schedule *s, int stage, nami_staleness *out)
{
    size_t units = (size_t)s->recipe.microbatches;
    int32_t *forward = nami_alloc(NAMI_MEM_OTHER, units * sizeof *forward);
    int32_t *backward = nami_alloc(NAMI_MEM_OTHER, units * sizeof *backward);
    nami_window_phase *phase = nami_alloc(NAMI_MEM_OTHER, units * sizeof *phase);
    *out = (nami_staleness){.versions = nami_schedule_versions(s, 0, stage)};
    nami_schedule_delays(s, stage, forward, backward);
    find_phases(s, stage, forward, phase);
    for (size_t u = 0; u < units; u++) {
        spread_add(&out->forward[phase[u]], forward[u]);
        spread_add(&out->backward[phase[u]], backward[u]);
    }
    nami_free(forward);
    nami_free(backward);
    nami_free(phase);
}
