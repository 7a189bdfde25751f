/* SPDX-License-Identifier: MIT */
/* job.c - build what a run is made of, and take it down. */
#include "train/job.h"

#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "optim/predict.h"
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

/* The layout that a leg asks for. */
static nami_status make_layout(const nami_job *job, nami_leg *leg, int64_t partials)
{
    const nami_settings *s = job->settings;
    const nami_pipeline_options *o = &leg->pipeline;
    nami_layout_request r = {.batch = s->train.batch,
                             .microbatches = (int)o->microbatches,
                             .replicas = (int)o->replicas,
                             .partials = (int)s->train.partials,
                             .window = (int)o->window,
                             .ranks = job->ranks,
                             .cuts = o->cuts.count,
                             .cut = o->cuts.item,
                             .act = nami_settings_dtype(s),
                             .recompute = o->recompute};
    NAMI_TRY(nami_recipe_from_options(o, job->ranks, &r.recipe));
    bool sums =
        nami_recipe_flushes(&r.recipe) && r.recipe.split == NAMI_SPLIT_MICROBATCH;
    if (!sums && job->legs > 1) /* train.partials is meant for the other legs */
        r.partials = 0;
    if (r.partials == 0 && sums && partials % r.replicas == 0)
        r.partials = (int)partials;
    return nami_layout_make(&r, job->model, &leg->layout);
}

/* Whether every position fits. */
static nami_status check_memory(const nami_job *job, const nami_leg *leg)
{
    char need[32], have[32];
    for (int p = 0; p < leg->layout.recipe.positions; p++)
        if ((double)leg->budget[p].total > job->limit)
            return nami_fail(
                NAMI_EPLAN,
                "position %d (blocks %d to %d) needs %s, but a rank may use %s "
                "(run.memory); use more positions, recompute = yes, more "
                "micro-batches or another schedule",
                p, leg->budget[p].first_block, leg->budget[p].last_block,
                nami_human_bytes((double)leg->budget[p].total, need),
                nami_human_bytes(job->limit, have));
    return NAMI_OK;
}

static nami_status plan_leg(const nami_job *job, nami_leg *leg, int64_t partials)
{
    NAMI_TRY(make_layout(job, leg, partials));
    leg->budget = nami_calloc(NAMI_MEM_OTHER, (size_t)leg->layout.recipe.positions,
                              sizeof *leg->budget);
    NAMI_TRY(nami_layout_budget(&leg->layout, job->model, &job->settings->optim,
                                job->backend, leg->budget));
    return check_memory(job, leg);
}

/* Bytes of the parameters, and of the optimiser states that a rank of a position has. */
static double bytes_of_parameters(const nami_leg *leg, int position)
{
    return (double)leg->budget[position].parameters * sizeof(float);
}

static double bytes_of_states(const nami_leg *leg, int position)
{
    return (double)leg->budget[position].bytes[NAMI_MEM_OPTIMIZER];
}

/* What a rank needs while it hands over: its executor, the arrays that it owns in the old layout, and, of a device,
 * their copy on the host. */
static double bytes_of_handing(const nami_job *job, const nami_leg *held, int rank,
                               const nami_leg *old)
{
    int position = nami_layout_position(&held->layout, rank);
    int before = nami_layout_position(&old->layout, rank);
    bool first = nami_layout_replica(&old->layout, rank) == 0;
    double bytes = (double)held->budget[position].total;
    if (!job->backend->host)
        bytes += bytes_of_parameters(held, position) + bytes_of_states(held, position);
    if (first)
        bytes += bytes_of_parameters(old, before);
    if (first || old->layout.recipe.zero)
        bytes += bytes_of_states(old, before);
    return bytes;
}

/* Each message of a window has a tag of its own; the executor says the same, but only when the leg begins. */
static nami_status check_tags(const nami_job *job, const nami_leg *leg)
{
    enum { SUMS = 4 }; /* of a parameter, at most */
    int64_t need =
        nami_schedule_keys(&leg->layout.train) + (int64_t)SUMS * job->model->params;
    if (!job->comm || need < nami_comm_tags(job->comm))
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "a window of %d steps needs up to %lld message tags; this MPI has "
                     "%d: use a smaller pipeline.window",
                     leg->layout.window, (long long)need, nami_comm_tags(job->comm));
}

/* Whether the switch from one leg to the next fits: the old executor goes before the new one comes. */
static nami_status check_switch(const nami_job *job, const nami_leg *old)
{
    char need[32], have[32];
    NAMI_TRY(check_tags(job, old + 1));
    for (int r = 0; r < job->ranks; r++) {
        double before = bytes_of_handing(job, old, r, old);
        double after = bytes_of_handing(job, old + 1, r, old);
        double most = before > after ? before : after;
        if (most > job->limit)
            return nami_fail(NAMI_EPLAN,
                             "rank %d needs %s while the layout changes (its share of "
                             "the %s layout, and what it hands over), but may use %s "
                             "(run.memory)",
                             r, nami_human_bytes(most, need),
                             before > after ? "old" : "new",
                             nami_human_bytes(job->limit, have));
    }
    return NAMI_OK;
}

/* The same status, the section of the leg before the sentence. */
static nami_status name_leg(nami_status status, int number)
{
    if (status == NAMI_OK || number == 0)
        return status;
    char *sentence = nami_strdup(nami_fail_text());
    nami_fail_clear();
    nami_fail(status, "%s: %s", nami_leg_name(number), sentence);
    nami_free(sentence);
    return status;
}

/* The weights that a leg asks for, also one that this number of ranks could not run. */
static nami_weights weights_of(const nami_leg *leg)
{
    nami_recipe r = {.weights = NAMI_WEIGHTS_FLUSH};
    if (leg->pipeline.weights > 0)
        return (nami_weights)(leg->pipeline.weights - 1);
    if (nami_recipe_preset(&r, leg->pipeline.schedule) != NAMI_OK)
        nami_fail_clear(); /* a file of lists; planning it tells more */
    return r.weights;
}

/* Whether some leg uses what the optimiser is told of late weights. */
static nami_status check_weights(const nami_job *job)
{
    bool newest = false, predicted = false;
    for (int i = 0; i < job->legs; i++) {
        newest |= weights_of(&job->leg[i]) == NAMI_WEIGHTS_NEWEST;
        predicted |= weights_of(&job->leg[i]) == NAMI_WEIGHTS_PREDICT;
    }
    return nami_predict_check(&job->settings->optim, newest, predicted);
}

/* train.partials is for layouts that have several sums; one of the legs must be such. */
static nami_status check_partials(const nami_job *job)
{
    const int64_t partials = job->settings->train.partials;
    bool used = partials == 0 || job->legs == 1 || job->current > 0;
    for (int i = 0; i < job->legs; i++) {
        const nami_recipe *r = &job->leg[i].layout.recipe;
        used = used || (nami_recipe_flushes(r) && r->split == NAMI_SPLIT_MICROBATCH);
    }
    if (used)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "train.partials = %lld is for whole micro-batches with a flush, "
                     "which no section of this deck has",
                     (long long)partials);
}

static nami_status plan_legs(nami_job *job, int64_t partials)
{
    NAMI_TRY(check_weights(job));
    for (int i = job->current; i < job->legs; i++) {
        nami_leg *leg = &job->leg[i];
        nami_status status = plan_leg(job, leg, partials);
        if (status == NAMI_OK && i > job->current)
            status = check_switch(job, leg - 1);
        NAMI_TRY(name_leg(status, i));
        partials = leg->layout.partials; /* as a restart would find it */
    }
    return check_partials(job);
}

/* Take over what was planned for the current leg. */
static void enter(nami_job *job)
{
    nami_leg *leg = &job->leg[job->current];
    job->layout = leg->layout;
    job->budget = leg->budget;
    leg->layout = (nami_layout){0};
    leg->budget = NULL;
}

static nami_status agree(const nami_job *job, nami_status status)
{
    return job->comm ? nami_agree(job->comm, status) : status;
}

nami_status nami_job_layouts(nami_job *job, int64_t partials)
{
    nami_status status = plan_legs(job, partials);
    enter(job);
    return agree(job, status);
}

bool nami_job_advance(nami_job *job)
{
    if (job->current + 1 >= job->legs || !job->leg[job->current + 1].budget)
        return false;
    nami_layout_free(&job->layout);
    nami_free(job->budget);
    job->current++;
    enter(job);
    return true;
}

const nami_pipeline_options *nami_job_pipeline(const nami_job *job)
{
    return &job->leg[job->current].pipeline;
}

int64_t nami_job_leg_end(const nami_job *job)
{
    return job->current + 1 < job->legs ? job->leg[job->current + 1].first : INT64_MAX;
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
    return agree(job, open_alone(job));
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
    return agree(job, nami_legs_place(job->leg, job->legs, &p, &job->current));
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
    int64_t time = job->model->options.context,
            vocabulary = job->model->options.vocabulary;
    if (nami_model_made_up(&s->model)) {
        if (s->data.train[0] || s->data.valid[0])
            return nami_fail(
                NAMI_EINPUT,
                "data.train or data.valid is set, but this model.family makes "
                "up its samples; remove them");
        return check_keys(&s->data);
    }
    if (!s->data.train[0])
        return nami_fail(NAMI_EINPUT,
                         "data.train is not set: name a file made by nami import");
    if (nami_model_takes_images(&s->model))
        return nami_job_images(job);
    NAMI_TRY(check_keys(&s->data));
    if (nami_model_takes_sentences(&s->model))
        return nami_job_sentences(job);
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
    if (job->train_bert)
        return nami_bert_identity(job->train_bert);
    return job->train ? nami_data_identity(job->train) : "made up";
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
