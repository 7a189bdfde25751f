/* SPDX-License-Identifier: MIT */
/* emulate.h - training without a flush, emulated: one process, plain loops, no lists.
 *
 * Which weights a forward and a backward must see follows from closed forms of each policy, written here anew; weights
 * of all numbers are kept. Stages are graphs of the model, walked one unit at a time in double precision; optimisers
 * are written out. What a pipeline computes must agree to rounding.
 */
#ifndef NAMI_TESTS_EXEC_EMULATE_H
#define NAMI_TESTS_EXEC_EMULATE_H

#include "model/model.h"
#include "sched/schedule.h"

enum { EMULATE_STAGES = 8, EMULATE_UPDATES = 32 };

typedef struct emulate_way {
    nami_weights weights;
    int stages;
    const int *cut;   /* [stages + 1] */
    const int *depth; /* [stages] forwards ahead of the first backward, order 1F1B */
    /* [stages][units of a replica's window] updates before each forward; NULL: by depth */
    const int *before;
    /* [stages] 1: forward again before the backward, with its weights; or NULL */
    const int *rerun;
    int batch;     /* samples of an update */
    int units;     /* micro-batches of an update, over all replicas */
    int replicas;  /* that run their own micro-batches; 1 when samples are split */
    int window;    /* updates between two drains */
    int optimizer; /* 0: SGD with momentum, 1: AdamW */
    /* clip: of each stage's own norm, 0: off */
    double rate, momentum, beta1, beta2, eps, decay, clip;
    /* newest: T2's D, the backward reads w - delay * delta; 0: off */
    double correction;
    /* newest: T1's K, updates until the rate of every stage is whole; 0: off */
    double annealing;
    uint64_t seed;
    int64_t time;
} emulate_way;

/* Where samples come from, as nami_exec_source. */
typedef nami_status (*emulate_read)(void *context, int64_t step, int64_t first,
                                    int64_t count, int32_t *token, int32_t *target);

typedef struct emulation {
    double loss[EMULATE_UPDATES]; /* mean of each update */
    double **param;               /* [params] values after the last update */
    int params;
    int delay
        [EMULATE_STAGES]; /* largest met at each stage: updates between a forward and its own */
} emulation;

/* `updates` updates from the model's initial values. Freed with emulate_free. */
void emulate(const nami_model *m, const emulate_way *w, int updates, emulate_read read,
             emulation *out);
void emulate_free(emulation *e);

#endif
