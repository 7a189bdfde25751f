/* SPDX-License-Identifier: MIT */
/* numbers.c - what of the results depends on the layout, beyond rounding: a restart on another one says so. */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "train/inner.h"

/* "0 3 7": the first blocks of the stages. */
static void add_cuts(const nami_layout *l, nami_text *out)
{
    for (int s = 0; s < nami_layout_stages(l); s++)
        nami_text_add(out, " %d", l->cut[s]);
}

static void add_clipping(const nami_layout *l, const nami_optim_options *o,
                         nami_text *out)
{
    if (!(o->clip > 0) || o->clip_scope != NAMI_CLIP_STAGE)
        return;
    nami_text_add(out, "gradients clipped by stages that begin with blocks");
    add_cuts(l, out);
}

/* Without a flush: most updates that a gradient of each stage is late, which its order and depth make. */
static void add_delays(const nami_layout *l, nami_text *out)
{
    const nami_schedule *s = &l->train;
    const size_t units = (size_t)s->recipe.microbatches;
    if (nami_recipe_flushes(&l->recipe) || nami_layout_stages(l) == 1)
        return;
    int32_t *forward = nami_calloc(NAMI_MEM_OTHER, units + 1, sizeof *forward);
    int32_t *backward = nami_calloc(NAMI_MEM_OTHER, units + 1, sizeof *backward);
    nami_text_add(
        out,
        "%sweights = %s, drained every %d updates, of stages that begin with blocks",
        out->length ? "; " : "", nami_weights_name(l->recipe.weights), l->window);
    add_cuts(l, out);
    nami_text_add(out, ", late by");
    for (int stage = 0; stage < nami_layout_stages(l); stage++) {
        int32_t most = 0;
        nami_schedule_delays(s, stage, forward, backward);
        for (size_t u = 0; u < units; u++)
            most = forward[u] > most ? forward[u] : most;
        nami_text_add(out, " %d", (int)most);
    }
    nami_free(backward);
    nami_free(forward);
}

/* Samples over which the batch norm of each position takes its means, once where all have as many. */
static void add_batch_norm(const nami_layout *l, const nami_model *m, nami_text *out)
{
    int64_t before = 0;
    bool norms = false;
    for (int p = 0; p < m->params; p++)
        norms = norms || m->param[p].statistic;
    if (!norms)
        return;
    nami_text_add(out, "%sbatch norm over", out->length ? "; " : "");
    for (int p = 0; p < l->train.place.positions; p++) {
        int64_t samples = nami_layout_together(l, p);
        if (samples == 0)
            samples = l->recipe.split == NAMI_SPLIT_SAMPLE
                          ? l->micro / nami_layout_replicas(l, p)
                          : l->micro;
        if (samples != before)
            nami_text_add(out, " %lld", (long long)samples);
        before = samples;
    }
    nami_text_add(out, " samples");
}

static char *numbers_of(const nami_run *run, const nami_layout *l)
{
    nami_text out = {0};
    add_clipping(l, &run->settings->optim, &out);
    add_delays(l, &out);
    add_batch_norm(l, run->job.model, &out);
    char *copy = nami_strdup(nami_text_get(&out));
    nami_text_free(&out);
    return copy;
}

char *nami_run_numbers(const nami_run *run)
{
    return numbers_of(run, &run->job.layout);
}

/* Whether the deck itself changed the layout right behind the checkpoint, from one that gave `then`. */
static bool was_switched(const nami_run *run, const char *then)
{
    const nami_job *job = &run->job;
    if (job->current == 0 || job->leg[job->current].first != run->step)
        return false;
    char *before = numbers_of(run, &job->leg[job->current - 1].layout);
    const bool same = strcmp(before, then) == 0;
    nami_free(before);
    return same;
}

void nami_run_tell_numbers(const nami_run *run)
{
    char *now = nami_run_numbers(run);
    const char *then = run->found.numbers ? run->found.numbers : "";
    if (strcmp(now, then) != 0 && !was_switched(run, then))
        nami_log(NAMI_WARNING,
                 "from here on results are not those of the run before: the layout "
                 "gives %s, but that of the checkpoint gave %s",
                 *now ? now : "nothing of its own",
                 *then ? then : "nothing of its own");
    nami_free(now);
}
