/* SPDX-License-Identifier: MIT */
/* inner.h - the state of a run, shared by the files that make it up. */
#ifndef NAMI_TRAIN_INNER_H
#define NAMI_TRAIN_INNER_H

#include <stdio.h>

#include "train/journal.h"
#include "train/meter.h"
#include "train/run.h"
#include "train/stale.h"
#include "train/stop.h"

/* What the steps of a leg were in this run. */
typedef struct nami_leg_record {
    int leg;             /* number */
    int64_t first, last; /* steps, 1-based */
    int64_t steady;      /* of them, measured */
    int positions, replicas, stages;
    double seconds;    /* a steady step */
    double tokens;     /* a second */
    double bubble;     /* measured */
    nami_stale *stale; /* [stages]; NULL with a flush; owned */
    double predicted;  /* bubble */
    double span
        [2]; /* seconds a step from its first action to its last: measured, predicted */
} nami_leg_record;

/* The best evaluation with a checkpoint. */
typedef struct nami_best {
    int64_t step;   /* 0: none */
    double measure; /* loss; of images the share of wrong answers */
} nami_best;

/* Training steps since an epoch began, in this process. */
typedef struct nami_epoch {
    double loss, seconds; /* sums; loss over targets */
    int64_t tokens, best; /* targets; those with the largest logit, of images */
} nami_epoch;

typedef struct nami_run {
    const nami_run_request *request;
    nami_comm *comm;
    const nami_settings *settings;
    nami_job job;
    nami_meter meter;
    nami_journal *journal; /* rank 0, else NULL */
    FILE *log;             /* run.log; rank 0 */
    nami_stop_clock clock;
    char *checkpoints;               /* directory */
    char *parent;                    /* checkpoint this run started from; "" */
    nami_ckpt_state found;           /* what it says; step 0 when there is none */
    char begun[32];                  /* UTC */
    int64_t step;                    /* done */
    int64_t leg_from;                /* of it when this run entered the leg */
    nami_leg_record past[NAMI_LEGS]; /* legs that ended */
    int pasts;
    bool warm;                 /* times so far are those of a beginning */
    nami_exec_result *results; /* of a window */
    int room;                  /* for so many */
    int64_t saved;             /* step of the newest checkpoint, -1: none */
    double slow_step;          /* seconds; of a window its mean */
    double eval_seconds;       /* of the slowest evaluation so far */
    double save_total;         /* seconds of all saves */
    double eval_total;         /* seconds of all evaluations */
    nami_exec_result last;     /* of the last step */
    double valid_loss;         /* of the last evaluation; NaN: none */
    nami_exec_result valid;    /* the same, whole */
    nami_best best;
    nami_epoch epoch;
    int64_t ended;          /* epoch that ended in the last window, 0: none */
    nami_status log_status; /* rank 0: whether the logs can still be written */
    double shown;           /* nami_now of the last progress line */
} nami_run;

/* Directories, the checkpoint to resume, plan, data, executor, arrays, logs. Collective; agreed. */
nami_status nami_run_set_up(nami_run *run);
void nami_run_take_down(nami_run *run); /* Collective. */

/* Events of the run; on ranks other than 0 nothing happens. Local. A log that cannot be written shows in log_status. */
void nami_run_tell_start(nami_run *run);

/* What of the results depends on the layout in force beyond rounding, "" when nothing: for checkpoints; and a warning
 * when that of the checkpoint says another. Local. The caller frees the text. */
char *nami_run_numbers(const nami_run *run);
void nami_run_tell_numbers(const nami_run *run);

void nami_run_tell_step(nami_run *run, const nami_meter_step *m);
void nami_run_tell_switch(nami_run *run, double seconds);
void nami_run_tell_eval(nami_run *run, const nami_exec_result *r, double seconds);
void nami_run_tell_epoch(nami_run *run, int64_t epoch);
void nami_run_tell_checkpoint(nami_run *run, double seconds);
void nami_run_tell_leg(nami_run *run, const nami_leg_record *leg);
void nami_run_tell_end(nami_run *run, const char *event, const char *reason);

/* What the current leg was so far, freed with nami_run_forget, and the simulator's prediction, freed with
 * nami_prediction_free. Collective. */
void nami_run_record(nami_run *run, nami_prediction *predicted, nami_leg_record *out);
void nami_run_forget(nami_leg_record *record); /* Local. */

/* The best checkpoint of an earlier start, into run->best. Collective. */
void nami_run_best_read(nami_run *run);

/* Whether run->valid is the best evaluation so far and checkpoint.best asks to keep it, in run->best then. Local. */
bool nami_run_best_note(nami_run *run);

/* File checkpoints/best. Local, rank 0. Status: NAMI_EENV. */
nami_status nami_run_best_write(const nami_run *run);

/* report.json and timeline.svg. `outcome`: "finished", "stopped". Collective. Status: NAMI_EENV, agreed. */
nami_status nami_run_report(nami_run *run, const char *outcome);

/* Write `text` to run.directory/name, beside it first. Local. Status: NAMI_EENV. */
nami_status nami_run_write(const nami_run *run, const char *name,
                           const nami_text *text);

/* Whether this is rank 0. Local. */
static inline bool nami_run_leads(const nami_run *run)
{
    return nami_comm_rank(run->comm) == 0;
}

#endif
