/* SPDX-License-Identifier: MIT */
/* order_1f1b.c - one forward, one backward (DAPPLE, arXiv 2007.01045).
 *
 * Position d starts with P-1-d forwards (or as many as recipe.depth says), then a forward and a backward
 * alternate, then the rest drains. Over the units of a window it is PipeDream's order without a flush (SOSP'19).
 */
#include "sched/order.h"

/* Forwards before the first backward. */
static int warm_up(const nami_recipe *r, int position)
{
    int all = r->microbatches;
    int warm = position < r->depth.count ? r->depth.item[position]
                                         : r->positions - 1 - position;
    return warm < all ? warm : all;
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int warm = warm_up(r, position), all = r->microbatches;
    (void)p;
    for (int slot = 0; slot < all + warm; slot++) {
        if (slot < all)
            nami_list_add(out, nami_action_of(NAMI_F, position, slot));
        if (slot >= warm)
            nami_list_add(out, nami_action_of(NAMI_B, position, slot - warm));
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    int depth = warm_up(r, position) + 1;
    return depth < r->microbatches ? depth : r->microbatches;
}

const nami_order nami_order_1f1b = {
    .name = "1f1b",
    .summary = "P-1-d forwards, then one forward and one backward in turn",
    .placements = NAMI_ON(NAMI_PLACE_LINEAR),
    .windows = true,
    .generate = generate,
    .held = held,
};
