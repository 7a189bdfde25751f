/* SPDX-License-Identifier: MIT */
/* job.h - what a run is made of: model, backend, layout, executor, data; built in phases that end in agreement. */
#ifndef NAMI_TRAIN_JOB_H
#define NAMI_TRAIN_JOB_H

#include "data/bert.h"
#include "data/images.h"
#include "exec/exec.h"
#include "train/leg.h"
#include "train/options.h"

typedef struct nami_job {
    nami_comm *comm;               /* NULL: nothing but a plan */
    const nami_settings *settings; /* borrowed */
    int ranks;
    int threads; /* of this rank */
    nami_model *model;
    nami_backend *backend;
    nami_leg leg[NAMI_LEGS];
    int legs, current;
    nami_layout layout;                       /* of the current leg */
    nami_budget *budget;                      /* [positions]; likewise */
    double limit;                             /* bytes one rank may use */
    nami_data *train, *valid;                 /* of tokens; NULL: none */
    nami_images *train_images, *valid_images; /* of images; NULL: none */
    nami_view view;                           /* of images */
    nami_bert *train_bert, *valid_bert;       /* of sentences; NULL: none */
    uint64_t key;                             /* of the order of samples */
    nami_prof prof;
    nami_exec *exec;
    /* where this run starts: steps done, training samples used */
    int64_t from_step, from_sample;
} nami_job;

/* Model, backend and legs of `settings` on `ranks` ranks.
 *
 * Collective on c; c NULL: this process alone (nami plan).
 * `job` is zeroed on entry and freed with nami_job_close, also after a failure. Status: NAMI_EINPUT, NAMI_EENV. */
nami_status nami_job_open(nami_job *job, nami_comm *c, const nami_settings *settings,
                          int ranks);

/* Open the data sets. Collective. Status: NAMI_EINPUT. */
nami_status nami_job_data(nami_job *job);

/* Find the current leg after `step` steps and `sample` samples; needs the data. Collective. Status: NAMI_EINPUT. */
nami_status nami_job_place(nami_job *job, int64_t step, int64_t sample);

/* Layout and memory budget of the current leg and those behind it; `partials` of the checkpoint, 0 when there is none.
 * Collective. Status: NAMI_EINPUT, NAMI_EPLAN (divisibility, or memory with position and numbers; also of a switch),
 * NAMI_EENV. */
nami_status nami_job_layouts(nami_job *job, int64_t partials);

/* nami_job_open and nami_job_layouts, from the first leg on. Collective. */
nami_status nami_job_plan(nami_job *job, nami_comm *c, const nami_settings *settings,
                          int ranks, int64_t partials);

/* What [pipeline] is in the current leg. Local. */
const nami_pipeline_options *nami_job_pipeline(const nami_job *job);

/* Go to the layout and budget of the next leg; false when there is none that was planned. Local. */
bool nami_job_advance(nami_job *job);

/* Begin the next leg: take the executor down, build the next one, and hand over parameters and optimiser states.
 * Collective. Status: as nami_job_start. */
nami_status nami_job_switch(nami_job *job);

/* What tells the training set from others: for checkpoints. Local. */
const char *nami_job_identity(const nami_job *job);

/* Allocate and initialise the executor. Collective. */
nami_status nami_job_start(nami_job *job);

/* Collective when the executor was started. */
void nami_job_close(nami_job *job);

/* Steps done when the current leg ends; INT64_MAX of the last one. Local. */
int64_t nami_job_leg_end(const nami_job *job);

/* Steps from `step` (done) to the next drain that the layout itself asks for: 1 with a flush. Local. */
int64_t nami_job_window(const nami_job *job, int64_t step);

/* One training step, 0-based. Collective. Statuses of nami_exec_step. */
nami_status nami_job_step(nami_job *job, int64_t step, nami_exec_result *out);

/* `count` training steps between two drains, `step` (0-based) first; out [count]. Collective. Statuses of
 * nami_exec_window. */
nami_status nami_job_steps(nami_job *job, int64_t step, int count,
                           nami_exec_result *out);

/* Mean loss on data.valid over `batches` batches spread evenly over the set, 0 = all of it, with dropout off; a last
 * incomplete batch as data.last_batch says. Collective. Status: NAMI_ENUMERIC when it is not finite. */
nami_status nami_job_evaluate(nami_job *job, int64_t batches, nami_exec_result *out);

/* Samples of the training set, of which an epoch consists, 0: made up; and of data.valid, 0: none. Local. */
int64_t nami_job_epoch(const nami_job *job);
int64_t nami_job_validation(const nami_job *job);

/* Of a family of images: open the sets, check them against the model. Collective. Status: NAMI_EINPUT. */
nami_status nami_job_images(nami_job *job);

/* nami_exec_source of images: `context` is the job for training; for an evaluation nami_job_batch. */
typedef struct nami_job_batch {
    nami_job *job;
    int64_t first; /* sample of data.valid that comes first */
} nami_job_batch;
nami_status nami_job_read_images(void *context, int64_t step, int64_t first,
                                 int64_t count, int32_t *token, int32_t *target);
nami_status nami_job_read_valid_images(void *context, int64_t index, int64_t first,
                                       int64_t count, int32_t *token, int32_t *target);

/* The same of a family of masked sentences. */
nami_status nami_job_sentences(nami_job *job);
nami_status nami_job_read_sentences(void *context, int64_t step, int64_t first,
                                    int64_t count, int32_t *token, int32_t *target);
nami_status nami_job_read_valid_sentences(void *context, int64_t index, int64_t first,
                                          int64_t count, int32_t *token,
                                          int32_t *target);

/* Global number of the training sample that comes first in `step`. Local. */
int64_t nami_job_counter(const nami_job *job, int64_t step);

/* The status all ranks agree on; of a plan without ranks `status` itself. Collective. */
nami_status nami_job_agree(const nami_job *job, nami_status status);

/* Position and replica of this rank. Local. */
int nami_job_position(const nami_job *job);
int nami_job_replica(const nami_job *job);

/* Bytes of memory of this node that the process may use (a control group may allow less than there is). Local. */
double nami_node_memory(void);

/* `wish` threads; 0: the cores of this process's affinity mask, shared with the ranks of its node. c may be NULL. Local. */
int nami_node_threads(const nami_comm *c, int64_t wish);

#endif
