/* SPDX-License-Identifier: MIT */
/* order_1f1b.c - one forward, one backward (DAPPLE, arXiv 2007.01045).
 *
 * Position d starts with P-1-d forwards, then a forward and a backward alternate, then the rest drains.
 */
#include "sched/order.h"

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int warm = p->positions - 1 - position, all = r->microbatches;
    for (int slot = 0; slot < all + warm; slot++) {
        if (slot < all)
            nami_list_add(out, nami_action_of(NAMI_F, position, slot));
        if (slot >= warm)
            nami_list_add(out, nami_action_of(NAMI_B, position, slot - warm));
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    int depth = r->positions - position;
    return depth < r->microbatches ? depth : r->microbatches;
}

const nami_order nami_order_1f1b = {
    .name = "1f1b",
    .summary = "P-1-d forwards, then one forward and one backward in turn",
    .placements = NAMI_ON(NAMI_PLACE_LINEAR),
    .generate = generate,
    .held = held,
};
