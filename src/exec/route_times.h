/* SPDX-License-Identifier: MIT */
/* route_times.h - when actions and messages are, in a walk through all lists with unit costs.
 *
 * Times are in units: of a forward, of half a backward in one piece, of a message. All local.
 */
#ifndef NAMI_EXEC_ROUTE_TIMES_H
#define NAMI_EXEC_ROUTE_TIMES_H

#include "sched/schedule.h"

typedef struct nami_route_times {
    const nami_schedule *s;
    double *clock;         /* [positions] */
    double **start, **end; /* [positions][count] of each action */
    double *posted, *sent; /* [keys] of each message */
} nami_route_times;

/* Walk. Status: NAMI_EPLAN for lists that cannot finish; *t is to be freed all the same. */
nami_status nami_route_times_make(const nami_schedule *s, nami_route_times *t);
void nami_route_times_free(nami_route_times *t);

/* When the message of `kind` that stage and unit of `a` send or receive has arrived. */
double nami_route_arrival(const nami_route_times *t, nami_action a, nami_kind kind);

/* Whether stage `to` exists and lies on another position than the stage of `a`; on the same. */
bool nami_route_remote(const nami_schedule *s, nami_action a, int to);
bool nami_route_local(const nami_schedule *s, nami_action a, int to);

#endif
