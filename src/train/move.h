/* SPDX-License-Identifier: MIT */
/* move.h - parameters and optimiser states on their way from one executor to the next, by name and without a file. */
#ifndef NAMI_TRAIN_MOVE_H
#define NAMI_TRAIN_MOVE_H

#include "exec/exec.h"

/* What a rank owns, while no executor has it. */
typedef struct nami_cargo {
    const nami_model *model; /* borrowed */
    int states;              /* arrays of each parameter, its value among them */
    nami_exec_slab *slab;    /* [params][states] copies; nothing where others own it */
} nami_cargo;

/* Copy what this rank owns of `e`. Local; ended with nami_cargo_free. */
void nami_cargo_take(nami_exec *e, const nami_model *m, int states, nami_cargo *out);

/* Send every array from its owners to all ranks where the executor `e` holds it. What comes is what was taken, bit for bit.
 *
 * Collective on c. A wait longer than `stall` seconds (0: any) ends the program with NAMI_ELOST. */
void nami_cargo_give(const nami_cargo *cargo, nami_comm *c, nami_exec *e, double stall);

void nami_cargo_free(nami_cargo *cargo); /* Local. */

#endif
