/* SPDX-License-Identifier: MIT */
/* compare.c - a layout against one rank, bit for bit. */
#include "train/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "train/job.h"

typedef struct pair {
    nami_comm *comm, *alone; /* alone: rank 0 */
    nami_settings single;    /* settings of the run on one rank; texts borrowed */
    nami_job layout, one;    /* one: rank 0 */
    nami_comparison *out;
} pair;

static bool leads(const pair *p)
{
    return nami_comm_rank(p->comm) == 0;
}

/* Groups of samples of a step whose batch statistics are one's own: micro-batches, or those of all replicas together. */
static int groups_of(const nami_layout *l)
{
    const int M = (int)(l->batch / l->micro);
    return l->shares ? M / l->replicas : M;
}

/* The same training on one rank: one position, one stage. */
static void make_single(pair *p, const nami_settings *s)
{
    static char gpipe[] = "gpipe", none[] = "";
    const nami_layout *l = &p->layout.layout;
    p->single = *s;
    p->single.train.partials = l->shares && l->replicas > 1 ? 1 : l->partials;
    p->single.pipeline.microbatches = groups_of(l);
    p->single.train.threads = p->layout.threads;
    p->single.pipeline.schedule = gpipe;
    p->single.pipeline.order = none;
    p->single.pipeline.placement = 0;
    p->single.pipeline.weights = p->single.pipeline.split = 0;
    p->single.pipeline.cuts.count = p->single.pipeline.depth.count = 0;
    p->single.pipeline.stage_replicas.count = 0;
    p->single.pipeline.stage_recompute.count = 0;
    p->single.pipeline.positions = p->single.pipeline.replicas = 1;
    p->single.pipeline.slices = 1;
    p->single.pipeline.zero = 0;
    for (int i = 0; i < NAMI_SWITCHES; i++)
        p->single.change[i] = nami_switch_none();
}

static nami_status start(nami_job *job, nami_comm *c, const nami_settings *s)
{
    NAMI_TRY(nami_job_plan(job, c, s, nami_comm_size(c), 0));
    NAMI_TRY(nami_job_data(job));
    NAMI_TRY(nami_job_place(job, 0, 0));
    return nami_job_start(job);
}

/* Bits of parameter `i`, from its owner to `into` on rank 0. Collective. */
static int fetch(pair *p, int i, float *into)
{
    const nami_exec_slab slab = nami_exec_array(p->layout.exec, i, 0);
    const bool owner = slab.owner;
    const float *own = slab.data;
    int rank = nami_comm_rank(p->comm);
    int from = (int)nami_comm_max(p->comm, owner ? rank : -1);
    size_t bytes =
        (size_t)nami_shape_count(&p->layout.model->param[i].shape) * sizeof *own;
    nami_request r = 0;
    nami_patience patience = {0};
    if (rank == from && rank == 0)
        memcpy(into, own, bytes);
    else if (rank == from)
        r = nami_comm_send(p->comm, own, bytes, 0, 0);
    else if (rank == 0)
        r = nami_comm_receive(p->comm, into, bytes, from, 0);
    while (!nami_comm_done(p->comm, &r))
        nami_patience_wait(p->comm, &patience);
    return from;
}

static void compare_param(pair *p, int i, const float *layout, int from, int64_t step)
{
    const nami_param *param = &p->layout.model->param[i];
    const float *one = nami_exec_array(p->one.exec, i, 0).data;
    int64_t count = nami_shape_count(&param->shape);
    double most = 0;
    if (!memcmp(one, layout, (size_t)count * sizeof *one))
        return;
    for (int64_t e = 0; e < count; e++)
        most = fmax(most, fabs((double)one[e] - (double)layout[e]));
    p->out->difference = fmax(p->out->difference, most);
    if (p->out->param_step)
        return;
    p->out->param_step = step;
    p->out->position = nami_layout_position(&p->layout.layout, from);
    snprintf(p->out->param, sizeof p->out->param, "%s", param->name);
}

static void compare_params(pair *p, int64_t step)
{
    int64_t most = 0;
    for (int i = 0; i < p->layout.model->params; i++) {
        int64_t count = nami_shape_count(&p->layout.model->param[i].shape);
        most = count > most ? count : most;
    }
    float *buffer = nami_alloc(NAMI_MEM_OTHER, (size_t)most * sizeof *buffer);
    p->out->difference = 0;
    for (int i = 0; i < p->layout.model->params; i++) {
        int from = fetch(p, i, buffer);
        if (leads(p))
            compare_param(p, i, buffer, from, step);
    }
    nami_free(buffer);
}

static bool same_bits(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static void compare_loss(nami_comparison *out, int64_t step, double one, double layout)
{
    out->loss_difference = fmax(out->loss_difference, fabs(layout - one) / fabs(one));
    if (out->loss_step || same_bits(one, layout))
        return;
    out->loss_step = step;
    out->loss[0] = one;
    out->loss[1] = layout;
}

static nami_status compare_step(pair *p, int64_t step)
{
    nami_exec_result layout = {0}, one = {0};
    nami_status status = NAMI_OK;
    if (step == nami_job_leg_end(&p->layout))
        NAMI_TRY(nami_job_switch(&p->layout));
    NAMI_TRY(nami_agree(p->comm, nami_job_step(&p->layout, step, &layout)));
    if (leads(p))
        status = nami_job_step(&p->one, step, &one);
    NAMI_TRY(nami_agree(p->comm, status));
    if (leads(p))
        compare_loss(p->out, step + 1, one.loss, layout.loss);
    compare_params(p, step + 1);
    p->out->steps = step + 1;
    return NAMI_OK;
}

/* Late weights are meant to part from one rank. */
static nami_status check_flush(const nami_job *job)
{
    bool flushes = nami_recipe_flushes(&job->layout.recipe);
    for (int i = job->current + 1; i < job->legs; i++)
        flushes = flushes && nami_recipe_flushes(&job->leg[i].layout.recipe);
    if (flushes)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "nami compare sets a layout beside one rank, and without a flush "
                     "weights are late by design: only schedules with a flush can be "
                     "compared");
}

/* Replicas that share statistics hold samples from all over the step; one rank has them side by side where that is all. */
static nami_status check_shares(const nami_job *job)
{
    const int groups = groups_of(&job->layout);
    bool alike = true, joined = job->layout.shares && job->layout.replicas > 1;
    for (int i = job->current + 1; i < job->legs; i++) {
        const nami_layout *l = &job->leg[i].layout;
        alike = alike && groups_of(l) == groups;
        joined = joined || (l->shares && l->replicas > 1);
    }
    if (!joined || (alike && groups == 1))
        return NAMI_OK;
    return nami_fail(
        NAMI_EPLAN,
        "with model.sync_batch_norm = yes replicas normalise micro-batches "
        "together that are not neighbours in the step, as those of one "
        "rank are: compare with one micro-batch a replica "
        "(pipeline.microbatches = pipeline.replicas)%s, with "
        "pipeline.split = sample, or with model.sync_batch_norm = no",
        job->legs > 1 ? " in every section" : "");
}

/* A stage's own norm is that of all parameters where there is one stage. */
static nami_status check_clip(const nami_job *job)
{
    const nami_optim_options *o = &job->settings->optim;
    int stages = nami_layout_stages(&job->layout);
    for (int i = job->current + 1; i < job->legs; i++) {
        int more = nami_layout_stages(&job->leg[i].layout);
        stages = more > stages ? more : stages;
    }
    if (o->clip == 0 || o->clip_scope == NAMI_CLIP_ALL || stages == 1)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "train.clip_scope = stage bounds the norm of each of %d stages, "
                     "but one rank has only one stage: compare with train.clip_scope = "
                     "all, or train.clip = 0",
                     stages);
}

/* Whether every layout of the first `steps` promises the bits of one rank, whose partial sums are those of the first
 * layout; the reason into buf. */
static bool promises(const nami_job *job, int64_t steps, char buf[256])
{
    bool exact = nami_layout_exact(&job->layout, buf);
    for (int i = job->current + 1; exact && i < job->legs; i++) {
        const nami_layout *l = &job->leg[i].layout;
        if (job->leg[i].first >= steps)
            return exact;
        exact = nami_layout_exact(l, buf);
        if (exact && l->partials != job->layout.partials) {
            snprintf(buf, 256,
                     "%s makes %d partial gradient sums, the layout before and one "
                     "rank %d: results are equal to rounding",
                     nami_leg_name(i), l->partials, job->layout.partials);
            exact = false;
        }
    }
    return exact;
}

static nami_status compare_all(pair *p, const nami_settings *s, int64_t steps)
{
    nami_status status = NAMI_OK;
    NAMI_TRY(start(&p->layout, p->comm, s));
    NAMI_TRY(nami_agree(p->comm, check_flush(&p->layout)));
    NAMI_TRY(nami_agree(p->comm, check_clip(&p->layout)));
    NAMI_TRY(nami_agree(p->comm, check_shares(&p->layout)));
    p->out->exact = promises(&p->layout, steps, p->out->promise);
    make_single(p, s);
    /* how long one rank takes nobody knows: the others wait for ever */
    nami_comm_phase(p->comm, "comparing with one rank", 0);
    if (leads(p)) {
        p->alone = nami_comm_alone(p->comm);
        status = start(&p->one, p->alone, &p->single);
    }
    NAMI_TRY(nami_agree(p->comm, status));
    for (int64_t step = 0; step < steps; step++)
        NAMI_TRY(compare_step(p, step));
    return NAMI_OK;
}

nami_status nami_train_compare(nami_comm *c, const nami_settings *settings,
                               int64_t steps, nami_comparison *out)
{
    pair p = {.comm = c, .out = out};
    *out = (nami_comparison){0};
    nami_status status = compare_all(&p, settings, steps);
    nami_job_close(&p.one);
    nami_comm_close(p.alone);
    nami_job_close(&p.layout);
    return status;
}
