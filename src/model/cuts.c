/* SPDX-License-Identifier: MIT */
/* cuts.c - cutting the chain of blocks into stages of nearly equal work.
 *
 * Two dynamic programmes over (stage, end): the first finds the smallest possible largest part, the second, among
 * the cuts that reach it, the one with the smallest sum of squares, so that the other parts are even too.
 */
#include <math.h>

#include "model/model.h"

/* best[s * (n + 1) + e]: cost of cutting blocks [0, e) into s parts; from[]: where part s begins. */
typedef struct table {
    int n;
    double *sum; /* [n+1] work of blocks [0, i) */
    double *best;
    int *from;
} table;

/* Fill t for `stages` parts, each at most `bound`: cost is the largest part, or the sum of squares. */
static double solve(table *t, int stages, double bound, bool squares)
{
    int w = t->n + 1;
    for (int i = 0; i < (stages + 1) * w; i++)
        t->best[i] = INFINITY;
    t->best[0] = 0;
    for (int s = 1; s <= stages; s++)
        for (int e = s; e <= t->n; e++)
            for (int b = s - 1; b < e; b++) {
                double part = t->sum[e] - t->sum[b], before = t->best[(s - 1) * w + b];
                if (part > bound)
                    continue;
                double cost = squares ? before + part * part : fmax(before, part);
                if (cost < t->best[s * w + e]) {
                    t->best[s * w + e] = cost;
                    t->from[s * w + e] = b;
                }
            }
    return t->best[stages * w + t->n];
}

void nami_model_cut_work(const double *work, int n, int stages, int *cut)
{
    size_t w = (size_t)n + 1, cells = ((size_t)stages + 1) * w;
    table t = {n, nami_calloc(NAMI_MEM_OTHER, w, sizeof(double)),
               nami_calloc(NAMI_MEM_OTHER, cells, sizeof(double)),
               nami_calloc(NAMI_MEM_OTHER, cells, sizeof(int))};
    for (int i = 0; i < n; i++)
        t.sum[i + 1] = t.sum[i] + work[i];
    double bound = solve(&t, stages, INFINITY, false);
    solve(&t, stages, bound, true);
    cut[stages] = n;
    for (int s = stages; s > 0; s--)
        cut[s - 1] = t.from[(size_t)s * w + (size_t)cut[s]];
    nami_free(t.sum);
    nami_free(t.best);
    nami_free(t.from);
}

nami_status nami_model_cuts(const nami_model *m, int64_t time, int stages, int *cut)
{
    if (stages < 1 || stages > m->blocks)
        return nami_fail(
            NAMI_EPLAN,
            "%d stages cannot be cut from a chain of %d blocks: every stage needs at "
            "least one block",
            stages, m->blocks);
    double *work = nami_calloc(NAMI_MEM_OTHER, (size_t)m->blocks, sizeof *work);
    for (int i = 0; i < m->blocks; i++)
        work[i] = nami_model_block_flops(m, i, time);
    nami_model_cut_work(work, m->blocks, stages, cut);
    nami_free(work);
    return NAMI_OK;
}
