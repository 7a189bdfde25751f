/* SPDX-License-Identifier: MIT */
/* order_filldrain.c - all forwards, then all backwards (GPipe, arXiv 1811.06965).
 *
 * The paper runs the backwards newest first; here they ascend, so that gradients add up in one order in
 * every schedule. With several chunks a position goes through them stage by stage.
 */
#include "base/memory.h"
#include "sched/order.h"

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int *stage = nami_alloc(NAMI_MEM_OTHER, (size_t)p->stages * sizeof *stage);
    int chunks = nami_place_local(p, position, 0, stage);
    for (int c = 0; c < chunks; c++) {
        for (int m = 0; m < r->microbatches; m++)
            nami_list_add(out, nami_action_of(NAMI_F, stage[c], m));
    }
    for (int c = chunks - 1; c >= 0; c--) {
        for (int m = 0; m < r->microbatches; m++)
            nami_list_add(out, nami_action_of(NAMI_B, stage[c], m));
    }
    nami_free(stage);
}

static int64_t held(const nami_recipe *r, int position)
{
    (void)position;
    return (int64_t)r->microbatches * (nami_recipe_stages(r) / r->positions);
}

const nami_order nami_order_filldrain = {
    .name = "fill-drain",
    .summary = "all forwards, then all backwards",
    .placements = NAMI_ON(NAMI_PLACE_LINEAR) | NAMI_ON(NAMI_PLACE_LOOPING) |
                  NAMI_ON(NAMI_PLACE_WAVE),
    .generate = generate,
    .held = held,
};
