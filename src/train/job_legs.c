/* SPDX-License-Identifier: MIT */
/* job_legs.c - plan the layouts of all legs of a run, and go from one to the next. */
#include "base/memory.h"
#include "optim/predict.h"
#include "train/job.h"

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

nami_status nami_job_layouts(nami_job *job, int64_t partials)
{
    nami_status status = plan_legs(job, partials);
    enter(job);
    return nami_job_agree(job, status);
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
