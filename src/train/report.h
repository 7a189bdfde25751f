/* SPDX-License-Identifier: MIT */
/* report.h - what report.json is made of. */
#ifndef NAMI_TRAIN_REPORT_H
#define NAMI_TRAIN_REPORT_H

#include "train/inner.h"

/* What a rank says of itself. */
typedef struct nami_rank_report {
    double seconds[NAMI_PHASES];
    double peak_bytes, resident_bytes;
} nami_rank_report;

/* What all ranks have to say, on rank 0. */
typedef struct nami_findings {
    const nami_rank_report *all;
    const nami_comm_place *place;
    nami_leg_record now; /* of the current leg */
    nami_prediction predicted;
    nami_timeline timeline;
    double planned; /* what nami plan said of a step; NaN where nobody asked it */
} nami_findings;

/* Append report.json, which documents itself by its keys: seconds, bytes and shares. Local. */
void nami_report_compose(nami_text *t, const nami_run *run, const char *outcome,
                         const nami_findings *f);

#endif
