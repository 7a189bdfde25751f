/* SPDX-License-Identifier: MIT */
/* order_gems.c - GEMS (Jain et al., SC'20): two copies of the model, one in each direction, take turns.
 *
 * Micro-batch m runs in copy m mod 2. A position finishes the backward of one before it starts the forward of the
 * next, so at most two micro-batches are alive in the whole pipeline and a position holds one.
 */
#include "sched/order.h"

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    for (int m = 0; m < r->microbatches; m++) {
        int copy = m % 2, stage = copy == 0 ? position : p->positions - 1 - position;
        nami_list_add(out, nami_action_in(NAMI_F, copy, stage, m));
        nami_list_add(out, nami_action_in(NAMI_B, copy, stage, m));
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    (void)r, (void)position;
    return 1;
}

const nami_order nami_order_gems = {
    .name = "gems",
    .summary = "two copies of the model take turns, at most two micro-batches alive",
    .placements = NAMI_ON(NAMI_PLACE_BIDIRECTIONAL),
    .generate = generate,
    .held = held,
};
