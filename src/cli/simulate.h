/* SPDX-License-Identifier: MIT */
/* simulate.h - flags of `nami simulate`, and the comparison of all schedules. */
#ifndef NAMI_CLI_SIMULATE_H
#define NAMI_CLI_SIMULATE_H

#include "cli/lists.h"
#include "sim/sim.h"

typedef struct nami_simulate_flags {
    nami_lists_flags lists;
    double tf, tb;                       /* of one position's share */
    char *tbi, *tbw;                     /* numbers, or "" for half of tb */
    char *tr;                            /* a number, or "" for tf */
    char *profile;                       /* file of times, or "" */
    double latency, bytes;               /* of a message */
    int64_t samples;                     /* of a micro-batch; 0: many */
    char *bandwidth;                     /* bytes a time unit, or "inf" */
    int64_t ranks_per_node;              /* 0: one node */
    char *node_latency, *node_bandwidth; /* between nodes; "": as above */
    bool apart;                          /* pairs are not kept together */
    bool serial;                         /* links carry one message at a time */
    double update, reduce;
    bool reduce_alone;
    bool recompute, lowered, evaluate;
    bool list, compare, json, actions, timeline;
    double memory; /* for compare: most M_a a position may hold, 0 any */
    /* for compare: M_a that the weights of model/P take with all their state */
    double state;
    char *csv, *svg, *trace;
} nami_simulate_flags;

extern const nami_option_table nami_simulate_flag_table; /* of these flags */

/* Refuse flags that do nothing beside the others; of one schedule, with its recipe.
 * Local. Status: NAMI_EINPUT naming the flag. */
nami_status nami_simulate_check(const nami_simulate_flags *f);
nami_status nami_simulate_check_one(const nami_simulate_flags *f, const nami_recipe *r);
nami_status nami_simulate_check_pairs(const nami_simulate_flags *f,
                                      const nami_schedule *s); /* with its lists */

/* The lists asked for: compute actions, and communication, sums and updates where the flags or a window need them.
 * Local. Status: those of nami_schedule_make. */
nami_status nami_simulate_lists(const nami_simulate_flags *f, const nami_recipe *r,
                                nami_schedule *out);

/* Costs of flags and profile. */
typedef struct nami_simulate_costs {
    const nami_simulate_flags *flags;
    nami_cost cost; /* without tables */
    nami_profile profile;
    double *table; /* [4][stages] of the schedule at hand */
} nami_simulate_costs;

/* Read the costs that flags ask for. Local; closed with nami_simulate_costs_close (also after a failure).
 * Status: NAMI_EINPUT. */
nami_status nami_simulate_costs_open(const nami_simulate_flags *f,
                                     nami_simulate_costs *out);
void nami_simulate_costs_close(nami_simulate_costs *c);

/* Costs of a schedule with `stages` stages, valid until the next call.
 * Local. Status: NAMI_EPLAN when the profile does not fit. */
nami_status nami_simulate_costs_for(nami_simulate_costs *c, int stages, nami_cost *out);

/* One object of the JSON form: what was simulated of `s`, with W, V and K when `sizes`.
 * Appended to `out`. Local. */
void nami_simulate_json(const nami_schedule *s, const nami_prediction *p, bool sizes,
                        nami_text *out);

/* What only a window without a flush has: its phases, and how stale each stage is; as members of the object, and as
 * lines of the table. Appended to `out`. Local. */
void nami_simulate_window_json(const nami_schedule *s, const nami_prediction *p,
                               nami_text *out);
void nami_simulate_window(const nami_schedule *s, const nami_prediction *p,
                          nami_text *out);

/* "ranks 4-3-1 = 8", nothing where each position has one. Appended to `out`. Local. */
void nami_simulate_ranks(const nami_place *p, nami_text *out);

/* The table of what was simulated, appended to `out`. Local. */
void nami_simulate_table(const nami_schedule *s, const nami_cost *c,
                         const nami_prediction *p, nami_text *out);

/* " W=2", " V=4" or " K=8" where the size is a choice, else "". Local. */
void nami_simulate_size(const nami_recipe *r, char text[16]);

/* Simulate every named schedule for the given P, M and costs and print them sorted by makespan. Local. */
nami_status nami_simulate_compare(nami_simulate_costs *c);

#endif
