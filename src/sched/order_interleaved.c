/* SPDX-License-Identifier: MIT */
/* order_interleaved.c - 1F1B over V chunks a position (Megatron-LM, arXiv 2104.04473, section 2.2).
 *
 * Micro-batches run in groups of P, chunk by chunk. The order needs P to divide M; for another M it is
 * the list of the next multiple of P without the surplus: a short last group would deadlock, while
 * leaving actions out of a list that finishes cannot create a cycle.
 */
#include "sched/order.h"

/* V: 1 on a linear placement. */
static int chunks_of(const nami_recipe *r)
{
    return nami_recipe_stages(r) / r->positions;
}

/* Action number k of all forwards (or backwards) of a position; its micro-batch may be surplus. */
static nami_action numbered(const nami_recipe *r, nami_kind kind, int position,
                            int64_t k)
{
    int64_t group = (int64_t)r->positions * chunks_of(r);
    int64_t chunk = k % group / r->positions;
    int64_t unit = k / group * r->positions + k % r->positions;
    if (kind != NAMI_F)
        chunk = chunks_of(r) - 1 - chunk;
    return nami_action_of(kind, (int)(chunk * r->positions) + position, (int)unit);
}

static void add(const nami_recipe *r, nami_kind kind, int position, int64_t k,
                nami_list *out)
{
    nami_action a = numbered(r, kind, position, k);
    if (a.unit < r->microbatches)
        nami_list_add(out, a);
}

/* Forwards before the first backward, when there are enough micro-batches. */
static int64_t warm_up(const nami_recipe *r, int position)
{
    return 2 * ((int64_t)r->positions - 1 - position) +
           ((int64_t)chunks_of(r) - 1) * r->positions;
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int64_t groups = ((int64_t)r->microbatches + p->positions - 1) / p->positions;
    int64_t all = groups * p->positions * chunks_of(r), warm = warm_up(r, position);
    for (int64_t slot = 0; slot < all + warm; slot++) {
        if (slot < all)
            add(r, NAMI_F, position, slot, out);
        if (slot >= warm)
            add(r, NAMI_B, position, slot - warm, out);
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    int64_t all = (int64_t)r->microbatches * chunks_of(r),
            most = warm_up(r, position) + 1;
    return most < all ? most : all;
}

static nami_status admits(const nami_recipe *r)
{
    if ((int64_t)r->microbatches > INT32_MAX - r->positions)
        return nami_fail(NAMI_EPLAN, "interleaved: %d micro-batches are too many",
                         r->microbatches);
    return NAMI_OK;
}

const nami_order nami_order_interleaved = {
    .name = "interleaved",
    .summary = "1F1B over V chunks a position, in groups of P micro-batches",
    .placements = NAMI_ON(NAMI_PLACE_LOOPING) | NAMI_ON(NAMI_PLACE_LINEAR),
    .admits = admits,
    .windows = true,
    .generate = generate,
    .held = held,
};
