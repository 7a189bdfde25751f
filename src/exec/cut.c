/* SPDX-License-Identifier: MIT */
/* cut.c - cut the chain of blocks so that positions, not only stages, carry equal work. */
#include "base/memory.h"
#include "exec/layout.h"

typedef struct cutter {
    const nami_place *place;
    double *before;   /* [blocks + 1] work of the blocks before each */
    double *position; /* [positions] scratch */
    int *cut;         /* [stages + 1] */
} cutter;

/* How good a cut is: smaller is better, the first number counts first. */
typedef struct quality {
    double most, squares;
} quality;

static quality judge(const cutter *c)
{
    quality q = {0};
    for (int p = 0; p < c->place->positions; p++)
        c->position[p] = 0;
    for (int s = 0; s < c->place->stages; s++) {
        double work = c->before[c->cut[s + 1]] - c->before[c->cut[s]];
        for (int copy = 0; copy < c->place->copies; copy++)
            c->position[nami_place_of(c->place, copy, s)] += work;
        q.squares += work * work;
    }
    for (int p = 0; p < c->place->positions; p++)
        q.most = c->position[p] > q.most ? c->position[p] : q.most;
    return q;
}

/* Better by more than rounding, so that the search ends. */
static bool better(quality a, quality b)
{
    const double less = 1 - 1e-9;
    if (a.most < b.most * less)
        return true;
    return a.most <= b.most && a.squares < b.squares * less;
}

/* Move cut `s` by `by` blocks if that is allowed and better than *best. */
static bool try_move(cutter *c, int s, int by, quality *best)
{
    int old = c->cut[s], now = old + by;
    if (now <= c->cut[s - 1] || now >= c->cut[s + 1])
        return false;
    c->cut[s] = now;
    quality q = judge(c);
    if (better(q, *best)) {
        *best = q;
        return true;
    }
    c->cut[s] = old;
    return false;
}

static void improve(cutter *c)
{
    quality best = judge(c);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 1; s < c->place->stages; s++) {
            for (int by = -2; by <= 2; by++)
                moved = (by != 0 && try_move(c, s, by, &best)) || moved;
        }
    }
}

nami_status nami_layout_cut(const nami_model *m, int64_t time, const nami_place *place,
                            int *cut)
{
    NAMI_TRY(nami_model_cuts(m, time, place->stages, cut));
    cutter c = {.place = place, .cut = cut};
    c.before = nami_calloc(NAMI_MEM_OTHER, (size_t)m->blocks + 1, sizeof *c.before);
    c.position =
        nami_calloc(NAMI_MEM_OTHER, (size_t)place->positions, sizeof *c.position);
    for (int b = 0; b < m->blocks; b++)
        c.before[b + 1] = c.before[b] + nami_model_block_flops(m, b, time);
    improve(&c);
    nami_free(c.before);
    nami_free(c.position);
    return NAMI_OK;
}
