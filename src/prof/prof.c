/* SPDX-License-Identifier: MIT */
/* prof.c - timers of the phases, spans of one step. */
#include "prof/prof.h"

#include "base/memory.h"

static const char *const names[NAMI_PHASES] = {
    [NAMI_PHASE_F] = "forward",         [NAMI_PHASE_B] = "backward",
    [NAMI_PHASE_BI] = "backward input", [NAMI_PHASE_BW] = "backward weight",
    [NAMI_PHASE_R] = "recompute",       [NAMI_PHASE_WAIT] = "wait",
    [NAMI_PHASE_REDUCE] = "reduce",     [NAMI_PHASE_UPDATE] = "update",
    [NAMI_PHASE_DATA] = "data",         [NAMI_PHASE_IO] = "input and output",
};

const char *nami_phase_name(nami_phase p)
{
    return names[p];
}

void nami_prof_open(nami_prof *p, int capacity)
{
    *p = (nami_prof){.capacity = capacity};
    p->span = nami_calloc(NAMI_MEM_OTHER, (size_t)capacity + 1, sizeof *p->span);
}

void nami_prof_close(nami_prof *p)
{
    nami_free(p->span);
    *p = (nami_prof){0};
}

void nami_prof_reset(nami_prof *p)
{
    for (int i = 0; i < NAMI_PHASES; i++) {
        p->seconds[i] = 0;
        p->count[i] = 0;
    }
    p->flops = 0;
}

void nami_prof_begin(nami_prof *p)
{
    if (p->record)
        p->spans = 0;
}

int nami_prof_kept(const nami_prof *p)
{
    return p->spans < p->capacity ? p->spans : p->capacity;
}

void nami_prof_add(nami_prof *p, nami_phase phase, double start, double end)
{
    p->seconds[phase] += end - start;
    p->count[phase]++;
}

void nami_prof_mark(nami_prof *p, const nami_prof_span *span)
{
    if (!p->record)
        return;
    if (p->spans < p->capacity)
        p->span[p->spans] = *span;
    p->spans++;
}
