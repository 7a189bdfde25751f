/* SPDX-License-Identifier: MIT */
/* order_wave_zb.c - waves with a split backward that reach the lower bound of their placement.
 *
 * F and BI stand in the slots of order_wave.c. A position then places its BWs without looking at others:
 * 1. each of its first 2W(M-P) BIs is followed at once by its own BW;
 * 2. later BWs queue, first in, first out; behind the position's last F every slot without a BI takes one
 *    of them, and the rest comes behind the last BI.
 * With T_F = T_BI = T_BW the makespan is 3M + (P-1)/(2W) of one position's forward for M >= P, and P
 * micro-batches are in flight. docs/design/0005-waves-with-split-backward.md proves it.
 */
#include "sched/order.h"

/* The stage and micro-batch of one slot. */
typedef struct slot_action {
    int stage, unit; /* stage -1: none */
} slot_action;

/* What stands in `slot` on `position`; forwards when `last` < 0, else backwards, whose slots are those of
 * forwards reflected: stage s has `last` - s. */
static slot_action find(const nami_recipe *r, int position, int64_t slot, int64_t last)
{
    int64_t p = r->positions, period = 2 * p * r->waves;
    for (int c = 0; c < 2 * r->waves; c++) {
        int64_t stage = c * p + (c % 2 == 0 ? position : p - 1 - position);
        int64_t entry = slot - (last < 0 ? stage : last - stage);
        if (entry < 0 || entry % period % 2 != 0 || entry % period / 2 >= p)
            continue;
        int64_t unit = entry / period * p + entry % period / 2;
        if (unit < r->microbatches)
            return (slot_action){.stage = (int)stage, .unit = (int)unit};
    }
    return (slot_action){.stage = -1};
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int64_t last = 2 * (int64_t)p->stages - 2;
    int64_t pairs = (int64_t)r->microbatches * 2 * r->waves, f = 0, bi = 0;
    int64_t at_once = pairs - 2 * (int64_t)r->waves * r->positions;
    nami_list queue = {0};
    int64_t taken = 0;
    for (int64_t slot = 0; bi < pairs; slot++) {
        bool drained = f == pairs;
        slot_action a =
            drained ? (slot_action){.stage = -1} : find(r, position, slot, -1);
        slot_action b = find(r, position, slot, last);
        if (a.stage >= 0) {
            nami_list_add(out, nami_action_of(NAMI_F, a.stage, a.unit));
            f++;
        }
        if (b.stage >= 0) {
            nami_action w = nami_action_of(NAMI_BW, b.stage, b.unit);
            nami_list_add(out, nami_action_of(NAMI_BI, b.stage, b.unit));
            nami_list_add(bi++ < at_once ? out : &queue, w);
        } else if (drained && taken < queue.count) {
            nami_list_add(out, queue.item[taken++]);
        }
    }
    while (taken < queue.count)
        nami_list_add(out, queue.item[taken++]);
    nami_list_free(&queue);
}

static int64_t held(const nami_recipe *r, int position)
{
    (void)position;
    int units = r->microbatches < r->positions ? r->microbatches : r->positions;
    return 2 * (int64_t)r->waves * units;
}

const nami_order nami_order_wave_zb = {
    .name = "wave-zb",
    .summary = "waves with a split backward: the least idle time that waves allow, P "
               "in flight",
    .placements = NAMI_ON(NAMI_PLACE_WAVE),
    .generate = generate,
    .held = held,
};
