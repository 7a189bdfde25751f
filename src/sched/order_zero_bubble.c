/* SPDX-License-Identifier: MIT */
/* order_zero_bubble.c - 1F1B with a split backward: ZB-H1 and ZB-H2 (Qi et al., arXiv 2401.10241).
 *
 * In step x position d runs F of micro-batch x, BI of x - n (P-1-d) and BW of x - n (P-1), where n is 1 for H1
 * and 2 for H2. H1 holds P micro-batches, as many as 1F1B does on its first position. H2 holds 2P-1; then,
 * from M = 2P-1 on, no position is idle between its first and its last action.
 */
#include "sched/order.h"

static void generate(const nami_recipe *r, int position, int warm, nami_list *out)
{
    int ahead = warm * (r->positions - 1 - position);
    int behind = warm * (r->positions - 1), all = r->microbatches;
    for (int step = 0; step < all + behind; step++) {
        if (step < all)
            nami_list_add(out, nami_action_of(NAMI_F, position, step));
        if (step >= ahead && step - ahead < all)
            nami_list_add(out, nami_action_of(NAMI_BI, position, step - ahead));
        if (step >= behind)
            nami_list_add(out, nami_action_of(NAMI_BW, position, step - behind));
    }
}

static void generate_h1(const nami_recipe *r, const nami_place *p, int position,
                        nami_list *out)
{
    (void)p;
    generate(r, position, 1, out);
}

static void generate_h2(const nami_recipe *r, const nami_place *p, int position,
                        nami_list *out)
{
    (void)p;
    generate(r, position, 2, out);
}

static int64_t held_h1(const nami_recipe *r, int position)
{
    (void)position;
    return r->microbatches < r->positions ? r->microbatches : r->positions;
}

static int64_t held_h2(const nami_recipe *r, int position)
{
    (void)position;
    int most = 2 * r->positions - 1;
    return r->microbatches < most ? r->microbatches : most;
}

static const char *advise_h2(const nami_recipe *r)
{
    return r->microbatches < 2 * r->positions - 1
               ? "below M = 2P-1 zb-h1 is at least as fast, with less memory"
               : NULL;
}

const nami_order nami_order_zb_h1 = {
    .name = "zb-h1",
    .summary =
        "1F1B with a split backward, BW late enough to fill the end; P in flight",
    .placements = NAMI_ON(NAMI_PLACE_LINEAR),
    .generate = generate_h1,
    .held = held_h1,
};

const nami_order nami_order_zb_h2 = {
    .name = "zb-h2",
    .summary = "the same with 2P-1 in flight: no position idles inside its own span",
    .placements = NAMI_ON(NAMI_PLACE_LINEAR),
    .generate = generate_h2,
    .held = held_h2,
    .advise = advise_h2,
};
