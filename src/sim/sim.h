/* SPDX-License-Identifier: MIT */
/* sim.h - predict a schedule: event simulation with given costs.
 *
 * No MPI, no tensors. Times are in the unit of the given costs.
 */
#ifndef NAMI_SIM_SIM_H
#define NAMI_SIM_SIM_H

#include "sched/schedule.h"

/* Costs. A stage's compute time is the per-position time divided by the chunks of a position (P/S),
 * unless stage_f/stage_bi/stage_bw give each stage its own; a token slice takes its share of a stage's time, and so do
 * samples split over the ranks of a position, whose messages and computations run beside each other. B costs BI + BW; with recomputation inside the backward, B and BI cost `tr` more. */
typedef struct nami_cost {
    double tf, tbi,
        tbw;   /* forward, backward-input, backward-weight of one position's share */
    double tr; /* the forward run again; 0: as the forward */
    const double *stage_f;  /* [stages] or NULL: own time of each stage */
    const double *stage_bi; /* [stages] */
    const double *stage_bw; /* [stages] */
    double latency;         /* T_C: per message */
    double bandwidth;       /* bytes per time unit; 0 = infinite */
    int ranks_per_node; /* positions that share a node, counted from 0; 0: all are on one */
    double node_latency, node_bandwidth; /* the same for messages between nodes */
    bool serial; /* a position sends one message after another to the same peer */
    /* pairs run one after the other, each action when it can: as on a device */
    bool apart;
    const double *bytes; /* [stages] of the message behind stage s, or NULL = 0 */
    int64_t samples; /* of a micro-batch, where they are split over ranks; 0: many */
    /* time of UPDATE and REDUCE of one position; 0. REDUCEs of a position run one after the other beside the
     * computation; an UPDATE waits for that of its stage */
    double update, reduce;
    bool reduce_alone; /* nothing is computed beside a REDUCE */
} nami_cost;

/* When an action ran. A RECV's span is the time its message travelled or was waited for, and may overlap
 * computation, as may a SEND's and a REDUCE's. */
typedef struct nami_span {
    nami_action action;
    double start, end;
} nami_span;

/* The actions of every position with their times: simulated, or measured by the executor. */
typedef struct nami_timeline {
    int positions;
    nami_span **span; /* [positions][count] by start */
    int64_t *count;   /* [positions] */
} nami_timeline;

/* The chain of actions that each begin where the one before ended, from the first start to the last end: the times
 * add up to the makespan, and only a shorter link of it makes the step shorter. */
typedef struct nami_critical {
    double kind[NAMI_KINDS]; /* time in actions of each kind */
    double message; /* time in messages: latency, transfer, waiting for a link */
    int64_t actions, messages;
    int first, last; /* positions where it begins and ends */
} nami_critical;

typedef struct nami_prediction {
    double makespan; /* first start to last end over all positions */
    double bubble;   /* idle / (P * makespan); where samples are split, of all ranks */
    /* largest over positions of idle between own first and last action / own span */
    double span_bubble;
    double *idle; /* [positions] makespan - busy */
    double *busy; /* [positions] */
    /* [positions] activations in flight of a rank, in M_a (a stage counts P/S) */
    double *peak;
    /* [positions] weights held by a rank, in model/P: copies of the model x versions, and what a policy predicts */
    double *weights;
    /* The pipeline is full from the end of the first backward to the end of the last forward of stage 0. */
    double fill, steady, drain; /* time before, in and after it */
    /* the same in the steady time; 0 when steady is 0: it was never full */
    double steady_bubble;
    int64_t messages;        /* over all ranks of all positions, both directions */
    double *sent, *received; /* [positions] bytes */
    nami_critical critical;
    nami_timeline timeline; /* filled when asked for */
} nami_prediction;

/* Simulate the lists of `s` (compute-only or lowered), in time and memory linear in the actions. Sums are kept
 * in units of one stage, so that with whole numbers as costs nothing is rounded before the last division.
 * Local; `out` is freed with nami_prediction_free (also after a failure).
 * Status: NAMI_EPLAN when the lists cannot finish. */
nami_status nami_simulate(const nami_schedule *s, const nami_cost *cost,
                          bool want_timeline, nami_prediction *out);
void nami_prediction_free(nami_prediction *p);

/* Measured times of a chain of equal or unequal layers, blocks or stages. */
typedef struct nami_profile {
    int rows;
    double *f, *bi, *bw; /* [rows] time of one micro-batch */
    double *bytes; /* [rows] of the message behind the row; 0 when the file has none */
} nami_profile;

/* Read a profile: lines of numbers separated by commas or blanks, '#' starts a comment. The first line names the
 * columns: f, and bi and bw or b (halved between them), bytes or not; stage and name are not read.
 * Local; freed with nami_profile_free (also after a failure). Status: NAMI_EINPUT with place and reason. */
nami_status nami_profile_read(const char *path, nami_profile *out);
nami_status nami_profile_parse(const char *text, const char *where, nami_profile *out);
void nami_profile_free(nami_profile *p);

/* Times of `stages` stages of as many rows each: f, bi, bw, bytes [stages].
 * Local. Status: NAMI_EPLAN with the arithmetic when the rows cannot be shared. */
nami_status nami_profile_cut(const nami_profile *p, int stages, double *f, double *bi,
                             double *bw, double *bytes);
void nami_timeline_free(nami_timeline *t);

/* First start and last end over all positions; 0, 0 when nothing ran. Local. */
void nami_timeline_range(const nami_timeline *t, double *start, double *end);

/* Measured bubble of a timeline, by the same definition as nami_prediction.bubble. Local. */
double nami_timeline_bubble(const nami_timeline *t);

/* Measured bubble of a timeline that starts at 0 or later while its pipeline is full, as nami_prediction.steady_bubble,
 * each row with the same weight; *steady is that time. Both 0 when it was never full. Local. */
double nami_timeline_steady(const nami_timeline *t, double *steady);

/* Picture of a timeline: micro-batch numbers, colours for F, B, BI, BW, communication, legend, axis in
 * `unit` ("s" is shown as ms or us where that reads better; "" for none). Boxes too many to draw one by one are
 * condensed to shares of time, rows too many are left out, and a note says so. Appended to `out`. Local. */
void nami_timeline_svg(const nami_timeline *t, const char *title, const char *unit,
                       nami_text *out);

/* Text picture of at most `columns` characters a line; Chrome/Perfetto trace (times in seconds). Local. */
void nami_timeline_text(const nami_timeline *t, int columns, nami_text *out);
void nami_timeline_trace(const nami_timeline *t, nami_text *out);

#endif
