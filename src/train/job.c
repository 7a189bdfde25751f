/* SPDX-License-Identifier: MIT */
/* job.c - build what a run is made of, and take it down. */
#include "train/job.h"

#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "train/move.h"

int nami_job_position(const nami_job *job)
{
    return nami_layout_position(&job->layout, nami_comm_rank(job->comm));
}

int nami_job_replica(const nami_job *job)
{
    return nami_layout_replica(&job->layout, nami_comm_rank(job->comm));
}

static int ranks_of_node(const nami_job *job)
{
    return job->comm ? nami_comm_node_size(job->comm) : job->ranks;
}

nami_status nami_job_agree(const nami_job *job, nami_status status)
{
    return job->comm ? nami_agree(job->comm, status) : status;
}

static nami_status open_alone(nami_job *job)
{
    const nami_settings *s = job->settings;
    NAMI_TRY(nami_model_new(&s->model, s->train.dropout, &job->model));
    NAMI_TRY(nami_model_check_dropout(job->model));
    NAMI_TRY(nami_model_check_shares(job->model));
    const nami_backend_config config = {
        .threads = job->threads,
        .act = nami_settings_dtype(s),
        .number = job->comm ? (uint64_t)nami_comm_rank(job->comm) : 0,
        .emu = &s->emu};
    NAMI_TRY(nami_backend_open_with(nami_settings_backend(s), &config, &job->backend));
    return nami_legs_make(&s->pipeline, s->change, job->leg, &job->legs);
}

nami_status nami_job_open(nami_job *job, nami_comm *c, const nami_settings *settings,
                          int ranks)
{
    job->comm = c;
    job->settings = settings;
    job->ranks = ranks;
    job->threads = nami_node_threads(c, settings->train.threads);
    if (c)
        nami_comm_threads(c, job->threads);
    job->limit = settings->run.memory > 0
                     ? settings->run.memory * 1073741824.0
                     : nami_node_memory() / (double)ranks_of_node(job);
    job->key = nami_mix((uint64_t)settings->train.seed, nami_hash_name("data"));
    return nami_job_agree(job, open_alone(job));
}

nami_status nami_job_plan(nami_job *job, nami_comm *c, const nami_settings *settings,
                          int ranks, int64_t partials)
{
    NAMI_TRY(nami_job_open(job, c, settings, ranks));
    return nami_job_layouts(job, partials);
}

nami_status nami_job_place(nami_job *job, int64_t step, int64_t sample)
{
    nami_leg_place p = {.epoch = nami_job_epoch(job),
                        .batch = job->settings->train.batch,
                        .step = step,
                        .sample = sample};
    return nami_job_agree(job, nami_legs_place(job->leg, job->legs, &p, &job->current));
}

/* Spans of one step: every action of the position's list, and as many again for communication. */
static int spans_of(const nami_job *job)
{
    return 2 * (int)job->layout.train.list[nami_job_position(job)].count + 64;
}

static nami_status start_executor(nami_job *job)
{
    const nami_settings *s = job->settings;
    nami_exec_config config = {.comm = job->comm,
                               .backend = job->backend,
                               .model = job->model,
                               .optim = &s->optim,
                               .layout = &job->layout,
                               .seed = (uint64_t)s->train.seed,
                               .stall_seconds = s->run.stall_seconds,
                               .prof = &job->prof};
    return nami_agree(job->comm, nami_exec_new(&config, &job->exec));
}

nami_status nami_job_start(nami_job *job)
{
    nami_prof_open(&job->prof, spans_of(job));
    return start_executor(job);
}

/* Room for the spans of the current leg; times and counts stay. */
static void resize_prof(nami_job *job)
{
    nami_prof before = job->prof;
    nami_prof_close(&job->prof);
    nami_prof_open(&job->prof, spans_of(job));
    memcpy(job->prof.seconds, before.seconds, sizeof before.seconds);
    memcpy(job->prof.count, before.count, sizeof before.count);
    job->prof.flops = before.flops;
}

nami_status nami_job_switch(nami_job *job)
{
    nami_cargo cargo;
    int states = 1 + nami_optim_states(&job->settings->optim);
    nami_cargo_take(job->exec, job->model, states, &cargo);
    nami_exec_free(job->exec);
    job->exec = NULL;
    NAMI_CHECK(nami_job_advance(job));
    resize_prof(job);
    nami_status status = start_executor(job);
    if (status == NAMI_OK)
        nami_cargo_give(&cargo, job->comm, job->exec, job->settings->run.stall_seconds);
    nami_cargo_free(&cargo);
    return status;
}

void nami_job_close(nami_job *job)
{
    if (job->exec)
        nami_exec_free(job->exec);
    nami_prof_close(&job->prof);
    nami_bert_close(job->valid_bert);
    nami_bert_close(job->train_bert);
    nami_images_close(job->valid_images);
    nami_images_close(job->train_images);
    nami_data_close(job->valid);
    nami_data_close(job->train);
    nami_free(job->budget);
    nami_layout_free(&job->layout);
    nami_legs_free(job->leg);
    if (job->backend)
        nami_backend_close(job->backend);
    if (job->model)
        nami_model_free(job->model);
    *job = (nami_job){0};
}
