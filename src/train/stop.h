/* SPDX-License-Identifier: MIT */
/* stop.h - why a run ends early or saves: signals, files in its directory, time. */
#ifndef NAMI_TRAIN_STOP_H
#define NAMI_TRAIN_STOP_H

#include <stdbool.h>

/* Reasons, as bits; each rank has its own, and the ranks join them at the end of a step. */
enum {
    NAMI_WISH_SIGNAL = 1, /* SIGTERM or SIGUSR1 */
    NAMI_WISH_STOP = 2,   /* file `stop` */
    NAMI_WISH_TIME = 4,   /* run.max_time */
    NAMI_WISH_SAVE = 8,   /* file `save`: save and go on */
    NAMI_WISH_FAILED = 16 /* this rank cannot go on: its log cannot be written */
};
enum { NAMI_WISH_END = NAMI_WISH_SIGNAL | NAMI_WISH_STOP | NAMI_WISH_TIME };

/* Catch SIGTERM and SIGUSR1, ignore SIGXFSZ (a write then fails instead). Local. */
void nami_stop_watch(void);

/* Give the signals back to the system's defaults; ignore them when one was caught. Local. */
void nami_stop_unwatch(void);

/* What the time allows. */
typedef struct nami_stop_clock {
    double started;      /* nami_now */
    double max_time;     /* seconds, 0: no limit */
    double save_seconds; /* the slowest save so far, or an estimate */
    double step_seconds; /* of a slow window, and an evaluation */
} nami_stop_clock;

/* Wishes of this rank now; files are looked for when `directory` is not NULL. Local. */
int nami_stop_poll(const nami_stop_clock *clock, const char *directory);

/* Remove the files `stop` or `save` that were obeyed. Local. */
void nami_stop_obeyed(int wish, const char *directory);

/* "file stop in the run directory". Local. */
const char *nami_stop_reason(int wish);

#endif
