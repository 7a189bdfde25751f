/* SPDX-License-Identifier: MIT */
/* exec.h - the interpreter of action lists: where schedule, graph and communication meet.
 *
 * One thread, one event loop: post receives ahead, launch the next action when its inputs are there, complete sends
 * lazily, let messages progress between the operators of an action, never block while there is something to do.
 * Knows no schedule by name.
 */
#ifndef NAMI_EXEC_EXEC_H
#define NAMI_EXEC_EXEC_H

#include "comm/comm.h"
#include "exec/layout.h"
#include "prof/prof.h"

typedef struct nami_exec nami_exec;

/* Where samples come from: fill token (first stage) and target (last stage), host memory, [count][words] and
 * [count][targets] of nami_model_sample (of images `token` is where their f32 go), for the samples from `first` on
 * (0-based inside the step, over all replicas); either may be NULL. Where samples have side words every rank asks for
 * tokens. */
typedef struct nami_exec_source {
    nami_status (*read)(void *context, int64_t step, int64_t first, int64_t count,
                        int32_t *token, int32_t *target);
    void *context;
} nami_exec_source;

typedef struct nami_exec_config {
    nami_comm *comm;
    nami_backend *backend;
    const nami_model *model;
    const nami_optim_options *optim;
    const nami_layout *layout; /* borrowed, must outlive */
    uint64_t seed;
    /* A wait longer than this ends the job with one sentence, who waits for which action of whom, and exit code 7;
     * it must exceed the time of a step, as a slow rank cannot be told from a lost one. 0: for ever. */
    double stall_seconds;
    nami_prof *prof; /* borrowed */
    /* bytes of gradients that are summed over replicas at a time; 0: 1 MiB */
    size_t bucket;
    bool poison; /* tests: weights nobody may read any more become NaN */
} nami_exec_config;

/* Allocate and initialise this rank's share; parameters get their initial values. Collective.
 * Asserts allocated bytes == budget per tag. */
nami_status nami_exec_new(const nami_exec_config *config, nami_exec **out);
void nami_exec_free(nami_exec *e); /* Collective. */

typedef struct nami_exec_result {
    /* mean over counted tokens of the step, summed by global sample index; on every rank */
    double loss;
    double norm;    /* gradient norm before clipping */
    int64_t tokens; /* counted */
    /* of them with the largest logit, and among the five largest; 0 where a step of tokens trains */
    int64_t best, five;
    /* Of masked sentences: the means over masked tokens (tokens, best, five) and over next-sentence questions, whose sum
     * is the loss; how many questions counted, and had the right answer. Of others: the loss, and 0. */
    double part[NAMI_MODEL_LOSSES];
    int64_t pairs, right;
} nami_exec_result;

/* One optimiser step (without a flush: a window of one), 0-based `step`, at learning rate `rate`. Collective.
 * Status: NAMI_ENUMERIC loss or gradient not finite: parameters are unchanged. */
nami_status nami_exec_step(nami_exec *e, int64_t step, double rate,
                           const nami_exec_source *source, nami_exec_result *out);

/* `count` >= 1 steps, 0-based `first_step` first, at learning rates rate[count]; out [count]. Collective.
 *
 * With a flush: nami_exec_step one after the other. Without, one window between two drains: the pipeline fills, runs
 * `count` updates of every stage, and drains. `count` is at most the layout's window; a shorter window
 * is the longest one without the units behind.
 * `source` is asked for the samples of a step in pieces, targets possibly before tokens and more than once; the same
 * question has the same answer.
 * Status: NAMI_ENUMERIC a loss or gradient was not finite: with a flush the steps before are done and that one changed
 * nothing; without, stages have skipped such updates and made others, so parameters are of no use. */
nami_status nami_exec_window(nami_exec *e, int64_t first_step, int count,
                             const double *rate, const nami_exec_source *source,
                             nami_exec_result *out);

/* Loss of one batch without an update, dropout off; `samples` <= batch of them count (the rest is padding). Collective. */
nami_status nami_exec_evaluate(nami_exec *e, int64_t index, int64_t samples,
                               const nami_exec_source *source, nami_exec_result *out);

/* Updates between the weights that a pass of a unit read and the ones that its own update was applied to. */
typedef struct nami_exec_delays {
    int64_t units;
    int32_t least, most;
    double sum;
} nami_exec_delays;

/* What a stage really did, counted as it ran, over all windows since nami_exec_new. */
typedef struct nami_exec_staleness {
    int stage;
    int versions; /* most versions of the weights from the newest back to one still read */
    /* [0]: of forwards, [1]: of backwards. Units whose forward ran before the stage's first update of a window fill
     * it, units whose update came behind its last forward drain it. */
    nami_exec_delays fill[2], steady[2], drain[2];
} nami_exec_staleness;

/* The stages of this rank into out [most]; returns how many. Nothing is counted with a flush. Local. */
int nami_exec_stages(const nami_exec *e, int most, nami_exec_staleness *out);

/* What this rank holds of an array: elements [from, from + count), all of it but for optimiser states that replicas keep
 * in slices. data NULL, count 0: nothing. `owner`: this rank is the one to write them; each element has one owner. */
typedef struct nami_exec_slab {
    float *data;
    int64_t from, count;
    bool owner;
} nami_exec_slab;

/* The arrays for checkpoints: of each parameter of the catalogue its value (state 0) and optimiser states 1.. .
 * Host memory: the array itself on a host backend, else a copy that is up to date until the next step; changes count
 * from nami_exec_refresh on. Local. */
nami_exec_slab nami_exec_array(nami_exec *e, int param, int state);

/* Parameters were changed from outside (loaded): rebuild packed copies. Local. */
void nami_exec_refresh(nami_exec *e);

#endif
