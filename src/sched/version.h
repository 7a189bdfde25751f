/* SPDX-License-Identifier: MIT */
/* version.h - which version of the weights each action reads or makes, as the lists of a position are read.
 *
 * Version number 0 of a window is what the drain before left; UPDATE k of a stage makes number k + 1. What a
 * policy lets a forward and a backward read is said here once; slots of a ring follow from it.
 */
#ifndef NAMI_SCHED_VERSION_H
#define NAMI_SCHED_VERSION_H

#include "sched/schedule.h"

/* What is known while lists are read. */
typedef struct nami_versions {
    const nami_schedule *s;
    int32_t *newest;  /* [stages]: number of the newest version so far */
    int32_t *forward; /* [stages][units]: number that the forward read */
    int32_t *entry;   /* [units]: number that the forward of stage 0 read */
} nami_versions;

/* Whether the lists have versions at all: they train, without a flush, and their updates are in them. Local. */
bool nami_versions_kept(const nami_schedule *s);

/* Begin: number 0 is the newest everywhere. Lists must be in range (each action is one of the placement). Local;
 * closed with nami_versions_close. */
void nami_versions_open(nami_versions *v, const nami_schedule *s);
void nami_versions_close(nami_versions *v);

/* The number that the next action of its position has to read, or that it makes (UPDATE); -1: neither. It may be
 * above newest[stage], then it does not exist yet. Local. */
int nami_versions_see(nami_versions *v, nami_action a);

/* Versions that each stage needs at once, into ring[stages]; lists must be in range. Local. */
void nami_versions_count(const nami_schedule *s, int *ring);

/* Give each action of complete lists the slot of its version.
 * Local. Status: NAMI_EPLAN when a version is read before it is made, or more are kept than an action can name. */
nami_status nami_versions_assign(nami_schedule *s);

/* Prove that each action of complete lists, which are in range, finds in its slot the version that it must read, and
 * each update fills the slot of its version. Local. Status: NAMI_EPLAN naming position, entry and reason. */
nami_status nami_versions_prove(const nami_schedule *s);

/* "weights = 2bw: unit 6 is of update 3 and must read version 2, but only 1 update stands before it", appended to
 * `out`: why `a`, which must read `number`, cannot. Local. */
void nami_versions_explain(const nami_versions *v, nami_action a, int number,
                           nami_text *out);

#endif
