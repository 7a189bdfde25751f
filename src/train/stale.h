/* SPDX-License-Identifier: MIT */
/* stale.h - how old the weights were that gradients were computed with: measured, beside what the lists say. */
#ifndef NAMI_TRAIN_STALE_H
#define NAMI_TRAIN_STALE_H

#include "sched/staleness.h"
#include "train/job.h"

/* A stage over all ranks that held it. */
typedef struct nami_stale {
    nami_exec_staleness measured;
    nami_staleness lists; /* of one whole window */
} nami_stale;

/* [out: stages] in order; freed with nami_free, NULL with a flush. Counted since the leg began in this run. Collective. */
nami_stale *nami_stale_gather(const nami_job *job);

/* Append them as a JSON array; "[]" for NULL. Local. */
void nami_stale_json(const nami_stale *all, int stages, nami_text *out);

/* Append a line a stage for people, each after a line break. Local. */
void nami_stale_text(const nami_stale *all, int stages, nami_text *out);

#endif
