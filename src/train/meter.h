/* SPDX-License-Identifier: MIT */
/* meter.h - what steps cost over all ranks: busy and idle time, work, the times of stages, the timeline of a step.
 *
 * Bubble here and in sim/: idle time / (ranks * makespan), the makespan from the first start to the last end of a
 * forward or backward on any rank.
 */
#ifndef NAMI_TRAIN_METER_H
#define NAMI_TRAIN_METER_H

#include "sim/sim.h"
#include "train/job.h"

/* One window (with a flush: one step), the same on every rank. */
typedef struct nami_meter_step {
    int wishes;      /* of all ranks, joined */
    int count;       /* steps */
    double seconds;  /* of rank 0, a step */
    double makespan; /* seconds, of the window */
    double idle;     /* rank-seconds inside the makespan */
    double bubble;   /* idle / (ranks * makespan) */
    double flops;    /* of all ranks */
    double share;    /* of the measured peak of matrix products */
} nami_meter_step;

typedef struct nami_meter {
    double peak; /* FLOP/s of matrix products, all ranks at once, measured */
    /* seconds of one message between neighbours, the slowest pair, measured */
    double hop;
    /* the same between actions of the last recorded step, see gap.h; 0: unknown */
    double step_hop;
    double offset; /* of this rank's clock to rank 0's, seconds */
    double flops_before;
    int64_t steps; /* measured: all but those of the first window of a leg */
    double seconds, makespan, idle, flops;
    int64_t tokens;
    double *stage;  /* [stages][3] seconds of F, B or BI, BW on this rank */
    double *stages; /* [stages][3] how often */
} nami_meter;

/* Measure peak and hop. Collective. */
void nami_meter_open(nami_meter *m, nami_job *job);
void nami_meter_close(nami_meter *m);

/* The layout of the job is another one now: measure the hop, begin the sums anew. Collective. */
void nami_meter_turn(nami_meter *m, nami_job *job);

/* What the steps of a window were. */
typedef struct nami_meter_window {
    double start; /* nami_now */
    int wishes;   /* of this rank */
    bool steady;  /* count it in the sums */
    int count;    /* steps */
    int64_t tokens;
} nami_meter_window;

/* End of a window: exchange and join what the ranks have to say. Collective. */
void nami_meter_end(nami_meter *m, nami_job *job, const nami_meter_window *w,
                    nami_meter_step *out);

/* What the simulator predicts from the measured times of the stages and the hop, that of the step where it is known;
 * bubble NaN before a steady step. Collective; `out` is freed with nami_prediction_free. */
void nami_meter_predict(const nami_meter *m, nami_job *job, nami_prediction *out);

/* The last recorded step of all ranks, in seconds from its first start; filled on rank 0. Sets step_hop. Collective. */
void nami_meter_timeline(nami_meter *m, nami_job *job, nami_timeline *out);

#endif
