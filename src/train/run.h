/* SPDX-License-Identifier: MIT */
/* run.h - nami run: set up or resume, train, evaluate, save, stop, report. */
#ifndef NAMI_TRAIN_RUN_H
#define NAMI_TRAIN_RUN_H

#include "train/job.h"

/* What the command line gives a run; all borrowed. */
typedef struct nami_run_request {
    nami_comm *comm;
    const nami_settings *settings;
    const char *deck;    /* resolved, all keys */
    const char *command; /* the command line */
    const char *version; /* "0.1.0 (1a2b3c4)" */
    const char *build;   /* compiler, flags and libraries in one line */
} nami_run_request;

/* Carry the deck out.
 *
 * Collective. Rank 0 writes run.directory: log.jsonl, run.log, resolved.ini, report.json, timeline.svg, checkpoints/.
 * Status, agreed and its sentence printed: all of status.h; NAMI_STOPPED when stopped early with a checkpoint. */
nami_status nami_train_run(const nami_run_request *request);

#endif
