/* SPDX-License-Identifier: MIT */
/* order_wpipe.c - two groups of stages in turn, without a flush (WPipe, ICLR 2022).
 *
 * Each position holds a stage of the first half of the model and one of the second (looping, V = 2). Batches of m
 * units, one update each, go through the halves as
 *
 *     forwards   first 0, second 0, first 1, second 1, ...
 *     backwards  second 0, first 0, second 1, first 1, ...
 *
 * one forward and one backward in turn, the backwards m + min(2(P-1-d), m) forwards behind. That is at most 2m, so
 * the second half has updated with batch k before its forward of k+1 (no delay), and the first half with batch k-1
 * (two versions). With a flush there is one batch.
 */
#include "sched/order.h"

static int64_t behind(const nami_recipe *r, int position)
{
    int64_t m = nami_recipe_group(r), skew = 2 * ((int64_t)r->positions - 1 - position);
    return m + (skew < m ? skew : m);
}

/* Number k of all forwards (or backwards) of a position. */
static void add(const nami_recipe *r, nami_kind kind, int position, int64_t k,
                nami_list *out)
{
    const int64_t m = nami_recipe_group(r), turn = k / m;
    const bool second = (turn % 2 == 1) == (kind == NAMI_F);
    nami_list_add(out, nami_action_of(kind, position + (second ? r->positions : 0),
                                      (int)(turn / 2 * m + k % m)));
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    const int64_t all = 2 * (int64_t)r->microbatches, warm = behind(r, position);
    (void)p;
    for (int64_t slot = 0; slot < all + warm; slot++) {
        if (slot < all)
            add(r, NAMI_F, position, slot, out);
        if (slot >= warm)
            add(r, NAMI_B, position, slot - warm, out);
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    const int64_t all = 2 * (int64_t)r->microbatches, most = behind(r, position) + 1;
    return most < all ? most : all;
}

static nami_status admits(const nami_recipe *r)
{
    if (r->chunks != 2)
        return nami_fail(NAMI_EPLAN,
                         "wpipe: the model is cut into two groups of stages, so chunks "
                         "= 2, not %d",
                         r->chunks);
    return NAMI_OK;
}

const nami_order nami_order_wpipe = {
    .name = "wpipe",
    .summary = "two groups of stages in turn, an update's micro-batches at a time",
    .placements = NAMI_ON(NAMI_PLACE_LOOPING),
    .windows = true,
    .admits = admits,
    .generate = generate,
    .held = held,
};
