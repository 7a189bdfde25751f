/* SPDX-License-Identifier: MIT */
/* staleness.h - how old the weights are that a gradient was computed with, counted from the lists. */
#ifndef NAMI_SCHED_STALENESS_H
#define NAMI_SCHED_STALENESS_H

#include "sched/schedule.h"

/* Delays of every unit of stage `stage`: into forward[units] and backward[units] the updates of the stage between the
 * version that the forward (backward) of a unit reads and the version that its own update is applied to; 0 with
 * a flush and in an evaluation. Lists must be valid. Local. */
void nami_schedule_delays(const nami_schedule *s, int stage, int32_t *forward,
                          int32_t *backward);

/* When a unit runs, seen from its stage. */
typedef enum nami_window_phase {
    NAMI_WINDOW_FILL,   /* its forward reads version 0, what the drain before left */
    NAMI_WINDOW_STEADY, /* neither */
    NAMI_WINDOW_DRAIN,  /* its backward comes after the last forward of the stage */
    NAMI_WINDOW_PHASES
} nami_window_phase;

/* Delays of some units. */
typedef struct nami_spread {
    int units; /* 0: the rest is 0, too */
    int least, most;
    double mean;
} nami_spread;

/* How stale a stage's gradients are, in updates of the stage. */
typedef struct nami_staleness {
    nami_spread forward[NAMI_WINDOW_PHASES], backward[NAMI_WINDOW_PHASES];
    int versions; /* slots of its ring */
} nami_staleness;

/* The delays of stage `stage` by phase. Lists must be valid. Local. */
void nami_schedule_staleness(const nami_schedule *s, int stage, nami_staleness *out);

/* "steady". Local. */
const char *nami_window_phase_name(nami_window_phase phase);

#endif
