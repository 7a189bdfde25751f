/* SPDX-License-Identifier: MIT */
/* simulate.h - flags of `nami simulate`, and the comparison of all schedules. */
#ifndef NAMI_CLI_SIMULATE_H
#define NAMI_CLI_SIMULATE_H

#include "cli/lists.h"
#include "sim/sim.h"

typedef struct nami_simulate_flags {
    nami_lists_flags lists;
    double tf, tb;         /* of one position's share */
    char *tbi, *tbw;       /* numbers, or "" for half of tb */
    double latency, bytes; /* of a message */
    char *bandwidth;       /* bytes a time unit, or "inf" */
    double update, reduce;
    bool recompute, lowered, evaluate;
    bool list, compare, json, actions, timeline;
    double memory; /* for compare: most M_a a position may hold, 0 any */
    char *csv, *svg, *trace;
} nami_simulate_flags;

/* One object of the JSON form: what was simulated of `s`, with W and V when `sizes`.
 * Appended to `out`. Local. */
void nami_simulate_json(const nami_schedule *s, const nami_prediction *p, bool sizes,
                        nami_text *out);

/* Simulate every named schedule for the given P, M and costs and print them sorted by makespan. Local. */
nami_status nami_simulate_compare(const nami_simulate_flags *f, const nami_cost *cost);

#endif
