/* SPDX-License-Identifier: MIT */
/* layout.c - from wishes to a layout, refusing what does not divide. */
#include "exec/layout.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "comm/comm.h"

/* Pipelines side by side, each with micro-batches of its own. */
static int side_by_side(const nami_layout_request *r)
{
    if (r->recipe.split == NAMI_SPLIT_SAMPLE)
        return 1;
    return r->recipe.stage_replicas.count > 0 ? r->recipe.stage_replicas.item[0]
                                              : r->replicas;
}

static nami_status check_counts(const nami_layout_request *r)
{
    int M = r->microbatches, D = side_by_side(r);
    if (M < 1 || D < 1 || r->batch < 1)
        return nami_fail(
            NAMI_EINPUT,
            "batch %lld, microbatches %d and replicas %d must be at least 1",
            (long long)r->batch, M, D);
    if (r->batch % M != 0)
        return nami_fail(
            NAMI_EPLAN,
            "train.batch = %lld is not a multiple of pipeline.microbatches = "
            "%d (the remainder is %lld)",
            (long long)r->batch, M, (long long)(r->batch % M));
    if (r->recipe.zero && !nami_recipe_flushes(&r->recipe))
        return nami_fail(NAMI_EPLAN,
                         "pipeline.zero = 1 divides the update behind a flush; with "
                         "weights = %s stages update without waiting: use zero = 0",
                         nami_weights_name(r->recipe.weights));
    if (M % D != 0)
        return nami_fail(NAMI_EPLAN,
                         "pipeline.microbatches = %d is not a multiple of "
                         "pipeline.replicas = %d (the remainder is %d)",
                         M, D, M % D);
    return NAMI_OK;
}

static nami_status check_partials(const nami_layout_request *r, int partials)
{
    int M = r->microbatches, D = side_by_side(r);
    if (r->recipe.split == NAMI_SPLIT_SAMPLE && partials != 1)
        return nami_fail(NAMI_EPLAN,
                         "train.partials = %d does not go with split = sample, where "
                         "all replicas add to one gradient sum",
                         partials);
    if (!nami_recipe_flushes(&r->recipe) && partials != D)
        return nami_fail(NAMI_EPLAN,
                         "train.partials = %d does not go with weights = %s: without "
                         "a flush each of %d replicas makes one gradient sum",
                         partials, nami_weights_name(r->recipe.weights), D);
    if (partials < 1 || partials % D != 0)
        return nami_fail(
            NAMI_EPLAN,
            "train.partials = %d is not a multiple of pipeline.replicas = %d: "
            "each replica makes partials/replicas gradient sums",
            partials, D);
    if (M % partials != 0)
        return nami_fail(
            NAMI_EPLAN,
            "pipeline.microbatches = %d is not a multiple of train.partials = "
            "%d (the remainder is %d)",
            M, partials, M % partials);
    return NAMI_OK;
}

static nami_status check_ranks(const nami_layout_request *r, const nami_place *p)
{
    int positions = p->positions, ranks = nami_place_ranks(p);
    if (r->recipe.stage_replicas.count > 0 && r->ranks != 0 && r->ranks != ranks)
        return nami_fail(NAMI_EPLAN,
                         "the replicas of %d positions add up to %d ranks, but there "
                         "are %d",
                         positions, ranks, r->ranks);
    if (r->recipe.stage_replicas.count == 0 && r->ranks != 0 &&
        r->ranks != positions * r->replicas)
        return nami_fail(NAMI_EPLAN,
                         "%d position%s x %d replica%s need %d ranks, but there are %d",
                         positions, nami_plural(positions), r->replicas,
                         nami_plural(r->replicas), positions * r->replicas, r->ranks);
    return NAMI_OK;
}

/* Each replica of a position needs a sample of every micro-batch. */
static nami_status check_intervals(const nami_layout *l)
{
    const nami_place *place = &l->train.place;
    for (int p = 0; l->recipe.split == NAMI_SPLIT_SAMPLE && p < place->positions; p++) {
        if (place->replicas[p] > l->micro)
            return nami_fail(
                NAMI_EPLAN,
                "position %d has %d replicas, but a micro-batch has only %lld samples "
                "(train.batch = %lld / pipeline.microbatches = %lld): %lld replicas "
                "would have none",
                p, place->replicas[p], (long long)l->micro, (long long)l->batch,
                (long long)(l->batch / l->micro),
                (long long)(place->replicas[p] - l->micro));
    }
    return NAMI_OK;
}

/* Several partial sums on one replica grow one after the other: backwards must run in ascending order. */
static nami_status check_ascending(const nami_layout *l)
{
    const nami_schedule *s = &l->train;
    int *last = nami_calloc(NAMI_MEM_OTHER, (size_t)s->place.stages, sizeof *last);
    nami_status status = NAMI_OK;
    for (int p = 0; p < s->place.positions; p++) {
        for (int64_t i = 0; i < s->list[p].count && status == NAMI_OK; i++) {
            nami_action a = s->list[p].item[i];
            if (!nami_semantics_of(a.kind)->adds_gradient)
                continue;
            if (a.unit < last[a.stage])
                status = nami_fail(
                    NAMI_EPLAN,
                    "position %d, entry %lld: the backward of stage %d, micro-batch %d "
                    "comes after that of micro-batch %d, but %d partial sums a replica "
                    "need ascending order (use train.partials = %d)",
                    p, (long long)i, a.stage, a.unit, last[a.stage],
                    l->partials / l->replicas, l->replicas);
            last[a.stage] = a.unit;
        }
    }
    nami_free(last);
    return status;
}

/* The samples of a step lie in memory; their words can be counted in bytes. */
static nami_status check_samples(const nami_layout *l, const nami_model *m)
{
    const nami_model_sample s = nami_model_sample_of(m, l->time);
    const double words = (double)l->batch * ((double)s.words + (double)s.targets);
    if (words <= 0x1p44)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "train.batch = %lld samples of %lld numbers and %lld targets are "
                     "too many for any memory",
                     (long long)l->batch, (long long)s.words, (long long)s.targets);
}

static nami_status check_slices(const nami_layout *l, const nami_model *m)
{
    int slices = nami_layout_slices(l);
    if (slices > 1 && l->recompute)
        return nami_fail(
            NAMI_EPLAN,
            "pipeline.recompute = yes does not go with pipeline.slices = %d: "
            "a slice needs the keys and values of those before it",
            slices);
    return nami_model_slices(m, l->time, slices);
}

static nami_status given_cuts(const nami_layout_request *r, const nami_model *m,
                              int stages, int *cut)
{
    if (r->cuts != stages)
        return nami_fail(NAMI_EINPUT,
                         "pipeline.cuts names %d stage%s, but the schedule has %d",
                         r->cuts, nami_plural(r->cuts), stages);
    for (int s = 0; s < stages; s++) {
        if (r->cut[s] >= m->blocks ||
            (s == 0 ? r->cut[s] != 0 : r->cut[s] <= cut[s - 1]))
            return nami_fail(NAMI_EINPUT,
                             "pipeline.cuts: stage %d cannot begin with block %d; cuts "
                             "ascend from 0 and stay below %d blocks",
                             s, r->cut[s], m->blocks);
        cut[s] = r->cut[s];
    }
    cut[stages] = m->blocks;
    return NAMI_OK;
}

static nami_status make_cuts(const nami_layout_request *r, const nami_model *m,
                             nami_layout *out)
{
    int stages = out->train.place.stages;
    if (stages > m->blocks)
        return nami_fail(
            NAMI_EPLAN,
            "the schedule has %d stages, but the model has only %d blocks: "
            "take fewer positions, waves or chunks, or a deeper model",
            stages, m->blocks);
    out->cut = nami_calloc(NAMI_MEM_OTHER, (size_t)stages + 1, sizeof *out->cut);
    if (r->cuts > 0)
        return given_cuts(r, m, stages, out->cut);
    return nami_layout_cut(m, out->time, &out->train.place, out->cut);
}

/* The units below `units` of a list, in its order. */
static nami_list shorten(const nami_list *l, int units, int updates)
{
    nami_list out = {0};
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        if (a.unit < (nami_semantics_of(a.kind)->per_unit ? units : updates))
            nami_list_add(&out, a);
    }
    return out;
}

void nami_layout_window(const nami_layout *l, int count, nami_schedule *out)
{
    const nami_place *p = &l->train.place;
    const size_t stages = (size_t)p->copies * (size_t)p->stages * sizeof(int);
    const size_t positions = (size_t)p->positions;
    const int units = l->recipe.per_update * count;
    NAMI_CHECK(count >= 1 && count <= l->window);
    *out = l->train;
    out->recipe.microbatches = units;
    out->place.position = nami_alloc(NAMI_MEM_OTHER, stages);
    memcpy(out->place.position, p->position, stages);
    out->place.replicas = nami_alloc(NAMI_MEM_OTHER, positions * sizeof(int));
    memcpy(out->place.replicas, p->replicas, positions * sizeof(int));
    out->list = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *out->list);
    for (size_t i = 0; i < positions; i++)
        out->list[i] = shorten(&l->train.list[i], units, count);
}

/* Forwards of the micro-batches of a step; of lists from a file, those of its first units. */
static nami_status make_evaluation(nami_layout *l)
{
    nami_recipe r = l->recipe;
    nami_schedule *e = &l->evaluate;
    if (r.placement != NAMI_PLACE_FREE)
        r.microbatches = r.per_update;
    NAMI_TRY(nami_schedule_make(&r, NAMI_PURPOSE_EVALUATE, e));
    for (int p = 0; l->window > 1 && p < e->place.positions; p++) {
        nami_list all = e->list[p];
        e->list[p] = shorten(&all, r.per_update, 1);
        nami_list_free(&all);
    }
    e->recipe.microbatches = r.per_update;
    return NAMI_OK;
}

static nami_status make(const nami_layout_request *r, const nami_model *m,
                        nami_layout *out)
{
    NAMI_TRY(check_counts(r));
    int D = side_by_side(r), partials = r->partials > 0 ? r->partials : D;
    bool flushes = nami_recipe_flushes(&r->recipe);
    NAMI_TRY(check_partials(r, partials));
    *out = (nami_layout){.recipe = r->recipe,
                         .replicas = D,
                         .window = flushes || r->window < 1 ? 1 : r->window,
                         .partials = partials,
                         .batch = r->batch,
                         .micro = r->batch / r->microbatches,
                         .time = r->time > 0 ? r->time : m->options.context,
                         .act = r->act,
                         .wide = r->act == NAMI_F64 ? NAMI_F64 : NAMI_F32,
                         .recompute = r->recompute,
                         .shares = nami_model_shares(m)};
    out->recipe.per_update = r->microbatches / D;
    out->recipe.microbatches = out->recipe.per_update * out->window;
    out->recipe.recompute = r->recompute;
    out->recipe.replicas = r->replicas;
    NAMI_TRY(nami_schedule_make(&out->recipe, NAMI_PURPOSE_TRAIN, &out->train));
    NAMI_TRY(check_ranks(r, &out->train.place));
    NAMI_TRY(make_evaluation(out));
    NAMI_TRY(check_intervals(out));
    NAMI_TRY(check_slices(out, m));
    NAMI_TRY(check_samples(out, m));
    if (out->partials > out->replicas && out->train.place.copies == 1)
        NAMI_TRY(check_ascending(out));
    return make_cuts(r, m, out);
}

nami_status nami_layout_make(const nami_layout_request *r, const nami_model *m,
                             nami_layout *out)
{
    *out = (nami_layout){0};
    nami_status status = make(r, m, out);
    if (status != NAMI_OK)
        nami_layout_free(out);
    return status;
}

void nami_layout_free(nami_layout *l)
{
    nami_schedule_free(&l->train);
    nami_schedule_free(&l->evaluate);
    nami_free(l->cut);
    *l = (nami_layout){0};
}

int64_t nami_layout_crossing(const nami_layout *l, const nami_model *m)
{
    int64_t most = 0;
    for (int s = 1; s < nami_layout_stages(l); s++) {
        const int64_t one = nami_model_boundary(m, l->cut[s], l->time);
        most = one > most ? one : most;
    }
    return most;
}

int64_t nami_layout_together(const nami_layout *l, int position)
{
    if (!l->shares || nami_layout_replicas(l, position) == 1)
        return 0;
    return l->recipe.split == NAMI_SPLIT_SAMPLE ? l->micro : l->micro * l->replicas;
}

int nami_layout_stages(const nami_layout *l)
{
    return l->train.place.stages;
}

int nami_layout_slices(const nami_layout *l)
{
    return l->train.recipe.slices;
}

bool nami_layout_exact(const nami_layout *l, char buf[256])
{
    int A = l->partials, D = l->replicas;
    bool exact = true;
    if (!nami_recipe_flushes(&l->recipe)) {
        snprintf(buf, 256,
                 "weights = %s: updates do not wait for each other, so results are not "
                 "those of schedules with a flush",
                 nami_weights_name(l->recipe.weights));
        return false;
    }
    if (nami_layout_replicas_most(l) > 1 && l->recipe.split == NAMI_SPLIT_SAMPLE) {
        snprintf(buf, 256,
                 "replicas add the samples that each ran, then their sums: results "
                 "equal those of one replica to rounding");
        return false;
    }
    if (l->shares && D > 1) {
        snprintf(buf, 256,
                 "batch norm takes %d micro-batches of %d replicas together: results "
                 "are those of %d replicas, %s",
                 D, D, D,
                 l->train.place.copies > 1 ? "with two copies of the model to rounding"
                                           : "in bits whatever the schedule");
        return false;
    }
    if (l->train.place.copies > 1) {
        snprintf(
            buf, 256,
            "%d copies of the model add the micro-batches that each ran, then their "
            "sums: results equal those of one copy to rounding",
            l->train.place.copies);
        return false;
    }
    if (nami_layout_slices(l) > 1) {
        snprintf(buf, 256,
                 "gradients add up by %d token slices a sample: results equal those of "
                 "whole samples to rounding",
                 nami_layout_slices(l));
        return false;
    }
    for (int r = 0; r < D; r++)
        exact = exact && nami_tree_is_node(A, r * (A / D), (r + 1) * (A / D));
    if (D == 1)
        snprintf(buf, 256,
                 "one replica adds %d partial gradient sum%s: results are bit-equal on "
                 "any number of positions",
                 A, nami_plural(A));
    else if (exact)
        snprintf(
            buf, 256,
            "%d replicas add %d partial gradient sum%s in the tree that one replica "
            "would: results are bit-equal",
            D, A, nami_plural(A));
    else
        snprintf(
            buf, 256,
            "%d replicas do not divide the tree of %d partial gradient sums: results "
            "equal those of one replica to rounding",
            D, A);
    return exact;
}
