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

#endif
