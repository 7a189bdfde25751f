/* SPDX-License-Identifier: MIT */
/* template.c - how to add an order; it is compiled, listed and tested like any other.
 *
 * 1. Copy this file to order_NAME.c and say in this comment where the order is published.
 * 2. Write `generate`: append the compute actions of one position; look at nothing but the recipe and the
 *    placement. Every micro-batch 0 <= m < M needs, for each stage of the position, one F and one B (or a
 *    BI and, later, a BW). Do not add communication: lower.c does.
 * 3. Write `held`: how many (stage, micro-batch) pairs the position holds at once at most. Say `windows` when that
 *    does not grow with M: then the order runs without a flush, too.
 * 4. Declare it in order.h, add one row to `orders` in list.c and, if it deserves a name, to `presets`.
 * 5. Run `nami verify --schedule NAME --positions 4 --microbatches 8` and `make check`: the property
 *    tests go through every row of both tables.
 *
 * The order below is the simplest that is right on any placement: one micro-batch after the other.
 */
#include "base/memory.h"
#include "sched/order.h"

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int *stage = nami_alloc(NAMI_MEM_OTHER, (size_t)p->stages * sizeof *stage);
    int chunks = nami_place_local(p, position, 0, stage);
    for (int m = 0; m < r->microbatches; m++) {
        for (int c = 0; c < chunks; c++)
            nami_list_add(out, nami_action_of(NAMI_F, stage[c], m));
        for (int c = chunks - 1; c >= 0; c--)
            nami_list_add(out, nami_action_of(NAMI_B, stage[c], m));
    }
    nami_free(stage);
}

/* One micro-batch at a time, in every chunk. */
static int64_t held(const nami_recipe *r, int position)
{
    (void)position;
    return nami_recipe_stages(r) / r->positions;
}

const nami_order nami_order_template = {
    .name = "one-by-one",
    .summary = "one micro-batch after the other: no overlap at all",
    .placements = NAMI_ON(NAMI_PLACE_LINEAR) | NAMI_ON(NAMI_PLACE_LOOPING) |
                  NAMI_ON(NAMI_PLACE_WAVE),
    .windows = true,
    .generate = generate,
    .held = held,
};
