/* SPDX-License-Identifier: MIT */
/* counters.h - hardware and software counters through PAPI.
 *
 * Nothing here ever looks measured when it is not: a counter that could not be opened is absent, and
 * the text says why. Virtual machines often have no hardware events; then software events are counted.
 */
#ifndef NAMI_PROF_COUNTERS_H
#define NAMI_PROF_COUNTERS_H

#include "base/status.h"

enum { NAMI_COUNTERS_MOST = 8 };

typedef struct nami_counters {
    int count;                            /* counters that run; 0: none */
    const char *name[NAMI_COUNTERS_MOST]; /* "PAPI_TOT_CYC", "perf::TASK-CLOCK" */
    long long value[NAMI_COUNTERS_MOST];  /* of the last nami_counters_read */
    char text[256]; /* "available: ..." or "unavailable, because ..." */
    int set;        /* PAPI's number of the event set */
} nami_counters;

/* Open and start what this machine can count of the calling thread. Local; never fails: read `text`. */
void nami_counters_open(nami_counters *c);

/* Counts since open into `value`. Local. Status: NAMI_EENV when PAPI cannot read them any more. */
nami_status nami_counters_read(nami_counters *c);
void nami_counters_close(nami_counters *c);

/* One line for reports: "available: ..." or "unavailable, because ...". Local. */
const char *nami_prof_counters(void);

#endif
