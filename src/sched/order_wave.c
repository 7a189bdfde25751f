/* SPDX-License-Identifier: MIT */
/* order_wave.c - Hanayo's waves for any number of micro-batches, with bounded memory.
 *
 * A closed form of the schedule that Hanayo (SC'23, arXiv 2308.15762) draws for M = P:
 *
 *     F(m,s) has slot  2(m mod P) + 2WP floor(m/P) + s
 *     B(m,s) has slot  2(m mod P) + 2WP floor(m/P) + 4WP - 2 - s
 *
 * A position runs by increasing slot, the forward before the backward of the same slot. Two forwards (two
 * backwards) of a position never share a slot, and every dependency points to a larger slot or from F to
 * B inside one, so it cannot deadlock for any P, W, M >= 1.
 */
#include "sched/order.h"

/* Add the action of `kind`, if there is one, whose micro-batch enters `entry` slots after the first one;
 * `entry` is the slot less the share of the stage. */
static bool add_entering(const nami_recipe *r, nami_kind kind, int stage, int64_t entry,
                         nami_list *out)
{
    int64_t period = 2 * (int64_t)r->waves * r->positions;
    if (entry < 0)
        return false;
    int64_t group = entry / period, rest = entry % period;
    int64_t unit = group * r->positions + rest / 2;
    if (rest % 2 != 0 || rest / 2 >= r->positions || unit >= r->microbatches)
        return false;
    nami_list_add(out, nami_action_of(kind, stage, (int)unit));
    return true;
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int positions = p->positions, chunks = 2 * r->waves, stages = p->stages;
    int64_t last =
        2 * (int64_t)stages - 2; /* of the backward through the whole model */
    int64_t groups = ((int64_t)r->microbatches + positions - 1) / positions;
    int64_t slots = groups * stages + last + 2 * (int64_t)positions;
    for (int64_t slot = 0; slot < slots; slot++) {
        for (int pass = 0; pass < 2; pass++) { /* forwards, then backwards */
            bool found = false;
            for (int c = 0; c < chunks && !found; c++) {
                int stage =
                    c * positions + (c % 2 == 0 ? position : positions - 1 - position);
                int64_t share = pass == 0 ? stage : last - stage;
                found = add_entering(r, pass == 0 ? NAMI_F : NAMI_B, stage,
                                     slot - share, out);
            }
        }
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    (void)position;
    int units = r->microbatches < r->positions ? r->microbatches : r->positions;
    return 2 * (int64_t)r->waves * units;
}

const nami_order nami_order_wave = {
    .name = "wave",
    .summary = "Hanayo's slots: any number of micro-batches, at most P in flight",
    .placements = NAMI_ON(NAMI_PLACE_WAVE),
    .windows = true,
    .generate = generate,
    .held = held,
};
