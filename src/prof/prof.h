/* SPDX-License-Identifier: MIT */
/* prof.h - what each action costs: timers, spans for the timeline, counters. The only folder with papi.h. */
#ifndef NAMI_PROF_PROF_H
#define NAMI_PROF_PROF_H

#include <stdbool.h>
#include <stdint.h>

typedef enum nami_phase {
    NAMI_PHASE_F,
    NAMI_PHASE_B,
    NAMI_PHASE_BI,
    NAMI_PHASE_BW,
    NAMI_PHASE_R,
    NAMI_PHASE_WAIT,   /* nothing to do until a message arrives */
    NAMI_PHASE_REDUCE, /* not hidden behind compute */
    NAMI_PHASE_UPDATE,
    NAMI_PHASE_DATA,
    NAMI_PHASE_IO,
    NAMI_PHASES
} nami_phase;

/* "forward". Local. */
const char *nami_phase_name(nami_phase p);

/* One recorded interval; kind, copy, stage, slice and unit as in nami_action (-1: none). */
typedef struct nami_prof_span {
    double start, end; /* seconds, nami_now */
    int32_t unit;
    uint16_t stage, slice;
    uint8_t kind, copy;
} nami_prof_span;

typedef struct nami_prof {
    double seconds[NAMI_PHASES]; /* since reset */
    int64_t count[NAMI_PHASES];
    double flops;         /* executed since reset */
    nami_prof_span *span; /* [min(spans, capacity)] of the last recorded step */
    int spans, capacity;  /* spans > capacity: that many were not kept */
    bool record;          /* record spans of the coming step */
} nami_prof;

/* `capacity` spans are allocated once; more are dropped and counted in `spans`. Local. */
void nami_prof_open(nami_prof *p, int capacity);
void nami_prof_close(nami_prof *p);

/* Forget times and counts, keep spans. Local. */
void nami_prof_reset(nami_prof *p);

/* A recorded step begins: forget spans. Local. */
void nami_prof_begin(nami_prof *p);

/* Spans kept: min(spans, capacity). Local. */
int nami_prof_kept(const nami_prof *p);

/* Add an interval to a phase. Local; no allocation. */
void nami_prof_add(nami_prof *p, nami_phase phase, double start, double end);

/* Add a span when recording. Local; no allocation. */
void nami_prof_mark(nami_prof *p, const nami_prof_span *span);

#endif
