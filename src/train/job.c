/* SPDX-License-Identifier: MIT */
/* job.c - build what a run is made of, and take it down. */
#include "train/job.h"

#include "base/log.h"
#include "base/rng.h"

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

/* The layout that the deck asks for. */
static nami_status make_layout(nami_job *job, int64_t partials)
{
    const nami_settings *s = job->settings;
    nami_layout_request r = {.batch = s->train.batch,
                             .microbatches = (int)s->pipeline.microbatches,
                             .replicas = (int)s->pipeline.replicas,
                             .partials = (int)s->train.partials,
                             .window = (int)s->pipeline.window,
                             .ranks = job->ranks,
                             .cuts = s->pipeline.cuts.count,
                             .cut = s->pipeline.cuts.item,
                             .act = nami_settings_dtype(s),
                             .recompute = s->pipeline.recompute};
    NAMI_TRY(nami_recipe_from_options(&s->pipeline, job->ranks, &r.recipe));
    if (r.partials == 0 && partials % r.replicas == 0 &&
        nami_recipe_flushes(&r.recipe) && r.recipe.split == NAMI_SPLIT_MICROBATCH)
        r.partials = (int)partials;
    return nami_layout_make(&r, job->model, &job->layout);
}

/* Whether every position fits. */
static nami_status check_memory(const nami_job *job)
{
    char need[32], have[32];
    for (int p = 0; p < job->layout.recipe.positions; p++)
        if ((double)job->budget[p].total > job->limit)
            return nami_fail(
                NAMI_EPLAN,
                "position %d (blocks %d to %d) needs %s, but a rank may use %s "
                "(run.memory); use more positions, recompute = yes, more "
                "micro-batches or another schedule",
                p, job->budget[p].first_block, job->budget[p].last_block,
                nami_human_bytes((double)job->budget[p].total, need),
                nami_human_bytes(job->limit, have));
    return NAMI_OK;
}

static nami_status plan_alone(nami_job *job, int64_t partials)
{
    const nami_settings *s = job->settings;
    NAMI_TRY(nami_model_new(&s->model, s->train.dropout, &job->model));
    const nami_backend_config config = {
        .threads = job->threads,
        .act = nami_settings_dtype(s),
        .number = job->comm ? (uint64_t)nami_comm_rank(job->comm) : 0,
        .emu = &s->emu};
    NAMI_TRY(nami_backend_open_with(nami_settings_backend(s), &config, &job->backend));
    NAMI_TRY(make_layout(job, partials));
    job->budget = nami_calloc(NAMI_MEM_OTHER, (size_t)job->layout.recipe.positions,
                              sizeof *job->budget);
    NAMI_TRY(nami_layout_budget(&job->layout, job->model, &s->optim, job->backend,
                                job->budget));
    return check_memory(job);
}

nami_status nami_job_plan(nami_job *job, nami_comm *c, const nami_settings *settings,
                          int ranks, int64_t partials)
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
    nami_status status = plan_alone(job, partials);
    return c ? nami_agree(c, status) : status;
}

/* Keys of images say nothing to a model of tokens. */
static nami_status check_keys(const nami_data_options *o)
{
    if (o->pad || o->crop || o->flip || o->cutout || o->mean[0] || o->deviation[0])
        return nami_fail(NAMI_EINPUT,
                         "data.pad, crop, flip, cutout, mean and deviation are for "
                         "images, but this model.family takes none; remove them");
    return NAMI_OK;
}

nami_status nami_job_data(nami_job *job)
{
    const nami_settings *s = job->settings;
    int64_t time = job->layout.time, vocabulary = job->model->options.vocabulary;
    if (nami_model_made_up(&s->model)) {
        if (s->data.train[0] || s->data.valid[0])
            return nami_fail(
                NAMI_EINPUT,
                "data.train or data.valid is set, but this model.family makes "
                "up its samples; remove them");
        return NAMI_OK;
    }
    if (!s->data.train[0])
        return nami_fail(NAMI_EINPUT,
                         "data.train is not set: name a file made by nami import");
    if (nami_model_takes_images(&s->model))
        return nami_job_images(job);
    NAMI_TRY(check_keys(&s->data));
    NAMI_TRY(nami_data_open(job->comm, s->data.train, time, vocabulary, &job->train));
    if (s->data.valid[0])
        NAMI_TRY(
            nami_data_open(job->comm, s->data.valid, time, vocabulary, &job->valid));
    return NAMI_OK;
}

const char *nami_job_identity(const nami_job *job)
{
    if (job->train_images)
        return nami_images_identity(job->train_images);
    return job->train ? nami_data_identity(job->train) : "made up";
}

/* Spans of one step: every action of the position's list, and as many again for communication. */
static int spans_of(const nami_job *job)
{
    return 2 * (int)job->layout.train.list[nami_job_position(job)].count + 64;
}

nami_status nami_job_start(nami_job *job)
{
    const nami_settings *s = job->settings;
    nami_prof_open(&job->prof, spans_of(job));
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

void nami_job_close(nami_job *job)
{
    if (job->exec)
        nami_exec_free(job->exec);
    nami_prof_close(&job->prof);
    nami_images_close(job->valid_images);
    nami_images_close(job->train_images);
    nami_data_close(job->valid);
    nami_data_close(job->train);
    nami_free(job->budget);
    nami_layout_free(&job->layout);
    if (job->backend)
        nami_backend_close(job->backend);
    if (job->model)
        nami_model_free(job->model);
    *job = (nami_job){0};
}
