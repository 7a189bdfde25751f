/* SPDX-License-Identifier: MIT */
/* order_chimera.c - Chimera (Li and Hoefler, SC'21): two copies of the model in opposite directions fill each
 * other's gaps.
 *
 * Micro-batch m runs in copy m mod 2; position d holds stage d of copy 0 and stage P-1-d of copy 1. Units of P
 * micro-batches (P/2 a copy) follow each other (direct concatenation); number j of a unit and copy has
 *
 *     F(j,s) in slot  2j + s        B(j,s) in slot  2j + 2P-1-s        units are 2P slots apart
 *
 * and P is even, so that no slot of a position has two actions. Forward doubling runs the forwards of two
 * micro-batches, j and j + P/2 of 2P, in one slot as a pair, so that a slot lasts as long with a forward as
 * with a backward; the second backwards are P slots behind the first, units 3P slots apart. A short last unit is a
 * whole one without the surplus, which cannot create a cycle.
 */
#include "sched/order.h"

/* Add micro-batch `index` of a unit and copy, unless it is surplus. */
static void add(const nami_recipe *r, nami_kind kind, int copy, int stage, int64_t unit,
                int size, int index, nami_list *out)
{
    int64_t m = unit * size + 2 * (int64_t)index + copy;
    if (m < r->microbatches)
        nami_list_add(out, nami_action_in(kind, copy, stage, (int)m));
}

/* Add what `copy` has in `slot`. `fold`: micro-batches of a forward slot. */
static void add_slot(const nami_recipe *r, int position, int copy, int fold,
                     int64_t slot, nami_list *out)
{
    int p = r->positions, stage = copy == 0 ? position : p - 1 - position;
    int period = (1 + fold) * p, size = fold * p;
    int64_t entry = slot - stage;
    if (entry >= 0 && entry % period % 2 == 0 && entry % period < p) {
        int64_t first = out->count;
        for (int k = 0; k < fold; k++)
            add(r, NAMI_F, copy, stage, entry / period, size,
                (int)(entry % period / 2) + k * (p / 2), out);
        if (out->count == first + 2)
            out->item[first].flags = NAMI_FLAG_PAIR;
    }
    entry = slot - (2 * p - 1 - stage);
    if (entry >= 0 && entry % period % 2 == 0 && entry % period < size)
        add(r, NAMI_B, copy, stage, entry / period, size, (int)(entry % period / 2),
            out);
}

static void generate(const nami_recipe *r, int position, int fold, nami_list *out)
{
    int64_t p = r->positions, units = (r->microbatches + fold * p - 1) / (fold * p);
    int64_t slots = units * (1 + fold) * p + 2 * p;
    for (int64_t slot = 0; slot < slots; slot++) {
        for (int copy = 0; copy < 2; copy++)
            add_slot(r, position, copy, fold, slot, out);
    }
}

static void generate_direct(const nami_recipe *r, const nami_place *p, int position,
                            nami_list *out)
{
    (void)p;
    generate(r, position, 1, out);
}

static void generate_doubling(const nami_recipe *r, const nami_place *p, int position,
                              nami_list *out)
{
    (void)p;
    generate(r, position, 2, out);
}

static int64_t held_direct(const nami_recipe *r, int position)
{
    int d = position < r->positions / 2 ? position : r->positions - 1 - position;
    int most = r->positions / 2 + 1 + d;
    return r->microbatches < most ? r->microbatches : most;
}

static int64_t held_doubling(const nami_recipe *r, int position)
{
    (void)position;
    int64_t most = 2 * (int64_t)r->positions;
    return r->microbatches < most ? r->microbatches : most;
}

static nami_status admits(const nami_recipe *r)
{
    if (r->positions % 2 != 0)
        return nami_fail(
            NAMI_EPLAN,
            "chimera needs an even number of positions, so that its copies "
            "never meet in a slot: %d = 2 x %d + 1",
            r->positions, r->positions / 2);
    return NAMI_OK;
}

static const char *advise_doubling(const nami_recipe *r)
{
    return r->microbatches < 2 * r->positions
               ? "below M = 2P forward doubling gains nothing: take chimera"
               : NULL;
}

const nami_order nami_order_chimera = {
    .name = "chimera",
    .summary =
        "two copies of the model in opposite directions, units of P micro-batches",
    .placements = NAMI_ON(NAMI_PLACE_BIDIRECTIONAL),
    .admits = admits,
    .generate = generate_direct,
    .held = held_direct,
};

const nami_order nami_order_chimera_doubling = {
    .name = "chimera-doubling",
    .summary =
        "the same with forwards in pairs, which evens out the slots; 2P in flight",
    .placements = NAMI_ON(NAMI_PLACE_BIDIRECTIONAL),
    .admits = admits,
    .generate = generate_doubling,
    .held = held_doubling,
    .advise = advise_doubling,
};
