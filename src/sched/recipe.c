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

nami_status nami_recipe_check(const nami_recipe *r)
{
    if (r->weights != NAMI_WEIGHTS_FLUSH)
        return nami_fail(
            NAMI_EPLAN,
            "pipeline.weights: only \"flush\" is supported; the other policies "
            "arrive with asynchronous schedules");
    if (r->split != NAMI_SPLIT_MICROBATCH)
        return nami_fail(NAMI_EPLAN,
                         "pipeline.split: only \"microbatch\" is supported; \"sample\" "
                         "arrives with asynchronous schedules");
    if (strcmp(r->order, "file") == 0)
        return NAMI_OK; /* the lists say the rest */
    NAMI_TRY(check_counts(r));
    return check_order(r);
}
