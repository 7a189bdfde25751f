/* SPDX-License-Identifier: MIT */
/* version.h - which versions of the weights exist, as the lists of a position are read. */
#ifndef NAMI_SCHED_VERSION_H
#define NAMI_SCHED_VERSION_H

#include "sched/schedule.h"

/* What is known while lists are read; {0} when nothing is kept (flush). */
typedef struct nami_versions {
    uint8_t *made;    /* [copies][stages][256]: the version exists */
    uint8_t *forward; /* [stages][units][slices]: version that the forward read */
} nami_versions;

/* Begin: version 0 exists everywhere. Local; closed with nami_versions_close. */
void nami_versions_open(nami_versions *v, const nami_schedule *s);
void nami_versions_close(nami_versions *v);

/* The next action of a position, whose stage, unit and copy are in range. With flush every action reads and
 * makes version 0. Else a version must have been made by an UPDATE before it is read, and, except with the
 * policies newest and predict, a backward reads the version that its forward read.
 * Local. Returns NULL, or what is wrong. */
const char *nami_versions_see(nami_versions *v, const nami_schedule *s, nami_action a);

#endif
