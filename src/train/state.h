/* SPDX-License-Identifier: MIT */
/* state.h - what a checkpoint keeps of a run: save it, load it, and tell whether it fits the deck. */
#ifndef NAMI_TRAIN_STATE_H
#define NAMI_TRAIN_STATE_H

#include "train/job.h"

/* Save the executor's arrays with `state` below `directory`. Collective. Status: NAMI_EENV; older checkpoints stay. */
nami_status nami_job_save(nami_job *job, const char *directory,
                          const nami_ckpt_state *state);

/* Load parameters, and optimiser state unless `parameters_only`, from the checkpoint at `path`.
 * Collective. Status: NAMI_ERESTART when an array is missing or has another shape. */
nami_status nami_job_load(nami_job *job, const char *path, bool parameters_only);

/* Parameters alone, from a checkpoint or from a file of weights (exchange/). Collective. Status: NAMI_ERESTART,
 * NAMI_EINPUT, agreed. */
nami_status nami_job_init(nami_job *job, const char *path);

/* Whether a run with settings `s` may go on from `state` of the checkpoint at `path`: the same model, seed and
 * optimiser, and steps left. Local. Status: NAMI_ERESTART with the key and both values; NAMI_NOTHING. */
nami_status nami_state_check(const nami_ckpt_state *state, const char *path,
                             const nami_settings *s);

/* Log the other keys that differ between the checkpoint's deck and `s`. Local. */
void nami_state_differences(const nami_ckpt_state *state, const nami_settings *s);

#endif
