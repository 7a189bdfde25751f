/* SPDX-License-Identifier: MIT */
/* order_terapipe.c - TeraPipe (Li et al., arXiv 2102.07988): K token slices of each sequence as units.
 *
 * A causal model needs slice k-1 of a stage before slice k in the forward, and k+1 before k in the backward:
 * all forwards run left to right, then all backwards, each from the last slice to the first.
 */
#include "sched/order.h"

static void add(nami_kind kind, int stage, int unit, int slice, nami_list *out)
{
    nami_action a = nami_action_of(kind, stage, unit);
    a.slice = (uint16_t)slice;
    nami_list_add(out, a);
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    (void)p;
    for (int m = 0; m < r->microbatches; m++) {
        for (int k = 0; k < r->slices; k++)
            add(NAMI_F, position, m, k, out);
    }
    for (int m = 0; m < r->microbatches; m++) {
        for (int k = r->slices - 1; k >= 0; k--)
            add(NAMI_B, position, m, k, out);
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    (void)position;
    return (int64_t)r->microbatches * r->slices;
}

const nami_order nami_order_terapipe = {
    .name = "terapipe",
    .summary = "K token slices of each micro-batch, all forwards, then all backwards",
    .placements = NAMI_ON(NAMI_PLACE_LINEAR),
    .sliced = true,
    .generate = generate,
    .held = held,
};
