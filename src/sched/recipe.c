/* SPDX-License-Identifier: MIT */
/* recipe.c - whether a recipe makes sense: the four choices, the counts and the order together. */
#include <string.h>

#include "base/memory.h"
#include "sched/order.h"

enum { ACTIONS_MOST = 1 << 30 }; /* of the compute lists: 12 GiB */

static const char *const placement_name[] = {
    [NAMI_PLACE_LINEAR] = "linear", [NAMI_PLACE_LOOPING] = "looping",
    [NAMI_PLACE_WAVE] = "wave",     [NAMI_PLACE_BIDIRECTIONAL] = "bidirectional",
    [NAMI_PLACE_FREE] = "free",
};

static nami_status check_counts(const nami_recipe *r)
{
    if (r->positions < 1 || r->positions > NAMI_STAGES_MOST)
        return nami_fail(NAMI_EINPUT,
                         "positions = %d: a number from 1 to %d is expected",
                         r->positions, NAMI_STAGES_MOST);
    if (r->microbatches < 1 || r->microbatches > INT32_MAX / 4)
        return nami_fail(NAMI_EINPUT,
                         "microbatches = %d: a number from 1 to %d is expected",
                         r->microbatches, INT32_MAX / 4);
    if (r->waves < 1 || r->chunks < 1 || r->slices < 1)
        return nami_fail(
            NAMI_EINPUT,
            "waves = %d, chunks = %d, slices = %d: each must be at least 1", r->waves,
            r->chunks, r->slices);
    int64_t chunks = r->placement == NAMI_PLACE_WAVE      ? 2 * (int64_t)r->waves
                     : r->placement == NAMI_PLACE_LOOPING ? r->chunks
                                                          : 1;
    if (chunks * r->positions > NAMI_STAGES_MOST)
        return nami_fail(
            NAMI_EPLAN,
            "%d positions with %lld stages each are %lld stages; at most %d fit",
            r->positions, (long long)chunks, (long long)chunks * r->positions,
            NAMI_STAGES_MOST);
    if (r->slices > UINT16_MAX)
        return nami_fail(NAMI_EPLAN, "%d token slices are too many; at most %d fit",
                         r->slices, UINT16_MAX);
    double actions =
        2.0 * (double)(chunks * r->positions) * r->microbatches * r->slices;
    if (actions > ACTIONS_MOST)
        return nami_fail(
            NAMI_EPLAN,
            "%lld stages x %d micro-batches give %.0f actions; at most %d fit",
            (long long)chunks * r->positions, r->microbatches, actions, ACTIONS_MOST);
    return NAMI_OK;
}

static nami_status unknown_order(const char *name)
{
    nami_text all = {0};
    for (int i = 0; i < nami_orders(); i++)
        nami_text_add(&all, "%s%s", i > 0 ? ", " : "", nami_order_at(i)->name);
    nami_status status = nami_fail(NAMI_EINPUT, "unknown order \"%.60s\"; known are %s",
                                   name, nami_text_get(&all));
    nami_text_free(&all);
    return status;
}

static nami_status check_order(const nami_recipe *r)
{
    const nami_order *order = nami_order_find(r->order);
    if (order == NULL)
        return unknown_order(r->order);
    if (!(order->placements & NAMI_ON(r->placement)))
        return nami_fail(NAMI_EPLAN, "order \"%s\" does not go with placement \"%s\"",
                         order->name, placement_name[r->placement]);
    if (r->waves > 1 && order->one_wave)
        return nami_fail(NAMI_EPLAN,
                         "order \"%s\" is drawn for one wave, not %d; wave and wave-zb "
                         "take any number",
                         order->name, r->waves);
    if (r->slices > 1 && !order->sliced)
        return nami_fail(NAMI_EPLAN,
                         "order \"%s\" does not cut sequences into token slices, so "
                         "slices = %d cannot be had; terapipe does",
                         order->name, r->slices);
    return order->admits != NULL ? order->admits(r) : NAMI_OK;
}

nami_status nami_recipe_check_updates(const nami_recipe *r)
{
    if (nami_recipe_flushes(r))
        return NAMI_OK;
    if (r->per_update < 1)
        return nami_fail(NAMI_EPLAN,
                         "weights = %s: how many micro-batches make an update is not "
                         "said",
                         nami_weights_name(r->weights));
    if (r->microbatches % r->per_update != 0)
        return nami_fail(
            NAMI_EPLAN,
            "a window of %d micro-batches is not a whole number of updates "
            "of %d: %d = %d x %d + %d",
            r->microbatches, r->per_update, r->microbatches,
            r->microbatches / r->per_update, r->per_update,
            r->microbatches % r->per_update);
    return NAMI_OK;
}

/* Replicas of each position, and how samples are divided among them. */
nami_status nami_recipe_check_place(const nami_recipe *r)
{
    const nami_ints *list = &r->stage_replicas;
    if (list->count > 0 && list->count != r->positions)
        return nami_fail(NAMI_EPLAN,
                         "stage_replicas names %d positions, but there are %d",
                         list->count, r->positions);
    for (int i = 0; i < list->count; i++) {
        if (list->item[i] < 1)
            return nami_fail(NAMI_EINPUT,
                             "stage_replicas: position %d has %d replicas; each has at "
                             "least 1",
                             i, list->item[i]);
        if (r->split == NAMI_SPLIT_MICROBATCH && list->item[i] != list->item[0])
            return nami_fail(NAMI_EPLAN,
                             "stage_replicas: position %d has %d replicas, position 0 "
                             "has %d; whole micro-batches need equal numbers, split = "
                             "sample takes any",
                             i, list->item[i], list->item[0]);
    }
    if (r->split == NAMI_SPLIT_SAMPLE && r->placement == NAMI_PLACE_BIDIRECTIONAL)
        return nami_fail(
            NAMI_EPLAN,
            "split = sample does not go with two copies of the model, whose "
            "sums of gradients pair rank by rank; use split = microbatch");
    return NAMI_OK;
}

/* Warm-up of each stage. */
static nami_status check_depth(const nami_recipe *r)
{
    const nami_ints *list = &r->depth;
    if (list->count == 0)
        return NAMI_OK;
    if (strcmp(r->order, "1f1b") != 0)
        return nami_fail(NAMI_EPLAN,
                         "order \"%s\" fixes how many micro-batches run ahead; depth "
                         "goes with order \"1f1b\"",
                         r->order);
    if (list->count != nami_recipe_stages(r))
        return nami_fail(NAMI_EPLAN, "depth names %d stages, but there are %d",
                         list->count, nami_recipe_stages(r));
    for (int i = 0; i < list->count; i++) {
        if (list->item[i] < 0)
            return nami_fail(NAMI_EINPUT, "depth: stage %d cannot run %d units ahead",
                             i, list->item[i]);
        if (i > 0 && list->item[i] > list->item[i - 1])
            return nami_fail(NAMI_EPLAN,
                             "depth: stage %d runs %d units ahead, stage %d before it "
                             "only %d: it would wait for ever for unit %d",
                             i, list->item[i], i - 1, list->item[i - 1],
                             list->item[i - 1] + 1);
    }
    return NAMI_OK;
}

/* Stages that hold only inputs and run their forward again. */
static nami_status check_again(const nami_recipe *r)
{
    const nami_ints *list = &r->stage_recompute;
    if (list->count == 0)
        return NAMI_OK;
    if (list->count != nami_recipe_stages(r))
        return nami_fail(NAMI_EPLAN,
                         "stage_recompute names %d stages, but there are %d",
                         list->count, nami_recipe_stages(r));
    for (int i = 0; i < list->count; i++) {
        if (list->item[i] != 0 && list->item[i] != 1)
            return nami_fail(NAMI_EINPUT,
                             "stage_recompute: stage %d has %d; 0 (keep) or 1 "
                             "(recompute) is expected",
                             i, list->item[i]);
    }
    if (list->item[list->count - 1] != 0)
        return nami_fail(
            NAMI_EPLAN,
            "stage_recompute: the last stage runs its backward right behind "
            "its forward, so there is nothing to recompute");
    if (r->recompute)
        return nami_fail(NAMI_EPLAN,
                         "recompute = yes already runs every block again; remove "
                         "stage_recompute, or say recompute = no");
    if (r->slices > 1)
        return nami_fail(NAMI_EPLAN,
                         "stage_recompute does not go with %d token slices: a slice "
                         "needs the keys and values of those before it",
                         r->slices);
    return NAMI_OK;
}

/* What only a flush admits, and what a policy demands. */
static nami_status check_windows(const nami_recipe *r)
{
    const char *weights = nami_weights_name(r->weights);
    const nami_order *order = nami_order_find(r->order);
    int stages = nami_recipe_stages(r);
    if (r->placement == NAMI_PLACE_BIDIRECTIONAL)
        return nami_fail(NAMI_EPLAN,
                         "weights = %s does not go with two copies of the model: they "
                         "are one only behind the flush that adds up their gradients",
                         weights);
    if (r->slices > 1)
        return nami_fail(
            NAMI_EPLAN,
            "weights = %s does not go with %d token slices; slices are for "
            "schedules with a flush",
            weights, r->slices);
    NAMI_TRY(nami_recipe_check_updates(r));
    if (order == NULL)
        return NAMI_OK; /* a file */
    if (!order->windows)
        return nami_fail(NAMI_EPLAN,
                         "order \"%s\" is made for a flush; weights = %s goes with the "
                         "orders 1f1b, interleaved, wave, wpipe and one-by-one",
                         order->name, weights);
    int ahead = r->depth.count > 0 ? r->depth.item[0] : stages - 1;
    if (r->weights == NAMI_WEIGHTS_2BW && r->placement == NAMI_PLACE_LINEAR &&
        r->microbatches > r->per_update && r->per_update <= ahead)
        return nami_fail(NAMI_EPLAN,
                         "weights = 2bw: stage 0 has %d micro-batches under way, so an "
                         "update needs at least %d of them, but has %d",
                         ahead + 1, ahead + 1, r->per_update);
    if (r->weights == NAMI_WEIGHTS_GROUPED && stages % 2 != 0)
        return nami_fail(
            NAMI_EPLAN, "weights = grouped: %d stages cannot be halved into two groups",
            stages);
    return NAMI_OK;
}

nami_status nami_recipe_check(const nami_recipe *r)
{
    if (strcmp(r->order, "file") == 0)
        return NAMI_OK; /* the lists say the rest */
    NAMI_TRY(check_counts(r));
    NAMI_TRY(nami_recipe_check_place(r));
    NAMI_TRY(check_order(r));
    NAMI_TRY(check_depth(r));
    NAMI_TRY(check_again(r));
    return nami_recipe_flushes(r) ? NAMI_OK : check_windows(r);
}
