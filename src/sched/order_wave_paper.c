/* SPDX-License-Identifier: MIT */
/* order_wave_paper.c - the waves as Hanayo (SC'23, arXiv 2308.15762) draws them for M = P.
 *
 * Forwards of chunk 0 for min(P-d, M) micro-batches; then each odd chunk in turn, each of its forwards
 * followed by one filler (the remaining forwards of even chunks in order, then the backwards of odd
 * chunks from the last); then the backwards of even chunks from the last, each followed by a filler.
 * The makespan at M = P is that of order_wave.c; beyond it memory grows with M.
 */
#include "sched/order.h"

/* The fillers of a position: a list that is used up one by one. */
typedef struct filler {
    const nami_recipe *r;
    int position;
    int chunk; /* even going up, then odd going down to -1 */
    int unit;
} filler;

static int stage_of(const nami_recipe *r, int position, int chunk)
{
    return chunk * r->positions +
           (chunk % 2 == 0 ? position : r->positions - 1 - position);
}

/* Append the next filler, if any. */
static bool take(filler *f, nami_list *out)
{
    if (f->unit == f->r->microbatches) {
        f->unit = 0;
        if (f->chunk % 2 != 0)
            f->chunk -= 2;
        else if (f->chunk + 2 < 2 * f->r->waves)
            f->chunk += 2;
        else
            f->chunk = 2 * f->r->waves - 1;
    }
    if (f->chunk < 0)
        return false;
    nami_kind kind = f->chunk % 2 == 0 ? NAMI_F : NAMI_B;
    nami_list_add(
        out, nami_action_of(kind, stage_of(f->r, f->position, f->chunk), f->unit++));
    return true;
}

static void chunk_with_fillers(const nami_recipe *r, nami_kind kind, int chunk,
                               filler *f, nami_list *out)
{
    for (int m = 0; m < r->microbatches; m++) {
        nami_list_add(out, nami_action_of(kind, stage_of(r, f->position, chunk), m));
        take(f, out);
    }
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int warm = p->positions - position;
    if (warm > r->microbatches)
        warm = r->microbatches;
    filler f = {.r = r, .position = position};
    while (f.unit < warm)
        take(&f, out);
    for (int chunk = 1; chunk < 2 * r->waves; chunk += 2)
        chunk_with_fillers(r, NAMI_F, chunk, &f, out);
    for (int chunk = 2 * r->waves - 2; chunk >= 0; chunk -= 2)
        chunk_with_fillers(r, NAMI_B, chunk, &f, out);
    while (take(&f, out)) {
    }
}

static int64_t held(const nami_recipe *r, int position)
{
    (void)position;
    return 2 * (int64_t)r->waves * r->microbatches;
}

const nami_order nami_order_wave_paper = {
    .name = "wave-paper",
    .summary = "Hanayo's waves as its paper draws them; memory grows with M",
    .placements = NAMI_ON(NAMI_PLACE_WAVE),
    .generate = generate,
    .held = held,
};
