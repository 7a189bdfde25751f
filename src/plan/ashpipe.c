/* SPDX-License-Identifier: MIT */
/* ashpipe.c - the authors' dynamic programme over spans of layers, replicas and levels of ranks.
 *
 * A span of layers i..j on r groups of a level takes
 *     T(i,j,r) = (C + A) / r + in / bandwidth + out / bandwidth
 * with C the best time of the span on one group of the level below (level 1: forward and backward time), A = 2 parameters /
 * bandwidth, times r-1 where the level is not fully connected, transfers divided by r where it is; one replica has
 * nothing to sum, A = 0. With recomputation the out term is max(out / bandwidth, forward / r). The best on m groups is
 *     best(i,j,m) = min( T(i,j,m), min over k, q of max(best(i,k,m-q), T(k+1,j,q)) ).
 */
#include <math.h>

#include "base/memory.h"
#include "base/text.h"
#include "plan/ashpipe.h"

typedef struct cell {
    double seconds;
    int cut;   /* last layer of what comes before the last span; -1: one span */
    int ranks; /* groups of the last span */
} cell;

typedef struct search {
    const nami_ashpipe_request *r;
    nami_chain_sums sums;
    int blocks, ranks;
    cell *best[NAMI_LEVELS_MOST]; /* [i][j][m-1] */
} search;

static cell *best_at(const search *s, int level, int i, int j, int m)
{
    int64_t at = (int64_t)i * s->blocks + j;
    return &s->best[level][at * s->r->level[level].ranks + m - 1];
}

static double part_of(const double *sum, int i, int j)
{
    return sum[j + 1] - sum[i];
}

/* The versions that the authors count: mini-batches on their way through the layers behind the stage. */
static int versions_behind(const search *s, int j)
{
    const nami_chain_sums *c = &s->sums;
    double total = c->forward[s->blocks] + c->backward[s->blocks];
    double after = part_of(c->forward, j + 1, s->blocks - 1) +
                   part_of(c->backward, j + 1, s->blocks - 1);
    return (int)lround(after / (total / s->ranks)) + 1;
}

/* Bytes of a rank, and whether it must recompute; infinite when it does not fit either way. */
static double bytes_of(const search *s, int i, int j, int r, bool *recompute)
{
    double versions = versions_behind(s, j);
    double act = part_of(s->sums.output, i, j) / r;
    double parameters = part_of(s->sums.parameter, i, j);
    double bytes = versions * (act + parameters) + parameters;
    *recompute = bytes > s->r->memory;
    if (*recompute)
        bytes = (versions + 1) * parameters + act;
    return bytes > s->r->memory ? INFINITY : bytes;
}

/* Forward time of a rank that recomputes before it sends: of the last stage of the span; 0 when it does not. */
static double again(const search *s, int level, int i, int j, int r)
{
    int own = r, all = r; /* replicas on the lowest level, and on all */
    while (--level >= 0) {
        const cell *c = best_at(s, level, i, j, s->r->level[level].ranks);
        i = c->cut >= 0 ? c->cut + 1 : i;
        own = c->ranks;
        all *= own;
    }
    bool recompute;
    (void)bytes_of(s, i, j, own, &recompute);
    return recompute ? part_of(s->sums.forward, i, j) / all : 0;
}

/* Seconds of the three kinds, by the formula. */
static void span_parts(const search *s, int level, int i, int j, int r, nami_part *out)
{
    const nami_plan_level *l = &s->r->level[level];
    const nami_chain_block *block = s->r->chain->block;
    double under =
        level == 0 ? part_of(s->sums.forward, i, j) + part_of(s->sums.backward, i, j)
                   : best_at(s, level - 1, i, j, s->r->level[level - 1].ranks)->seconds;
    double share = l->connected ? 1.0 / r : 1.0, turns = l->connected ? 1 : r - 1;
    double in = i > 0 ? block[i - 1].output / l->bandwidth * share : 0;
    double behind = j + 1 < s->blocks ? block[j].output / l->bandwidth * share : 0;
    double reduce =
        r > 1 ? 2 * part_of(s->sums.parameter, i, j) / l->bandwidth * turns : 0;
    out->compute = under / r;
    out->reduce = reduce / r;
    out->transfer = in + fmax(behind, j + 1 < s->blocks ? again(s, level, i, j, r) : 0);
    out->seconds = out->compute + out->reduce + out->transfer;
}

static double span_seconds(const search *s, int level, int i, int j, int r)
{
    nami_part p = {0};
    bool recompute;
    if (level == 0 && isinf(bytes_of(s, i, j, r, &recompute)))
        return INFINITY;
    span_parts(s, level, i, j, r, &p);
    return p.seconds;
}

/* Fill best(i, j, m) of a level; those of smaller m and of smaller j are there. span [k][q]: time of layers k+1..j on q
 * groups. */
static void fill_cell(search *s, int level, int i, int j, int m, const double *span)
{
    cell c = {span_seconds(s, level, i, j, m), -1, m};
    for (int k = i; k < j; k++) {
        for (int q = 1; q < m; q++) {
            double before = best_at(s, level, i, k, m - q)->seconds;
            double worst =
                fmax(before, span[(int64_t)k * s->r->level[level].ranks + q]);
            if (worst < c.seconds)
                c = (cell){worst, k, q};
        }
    }
    *best_at(s, level, i, j, m) = c;
}

/* All best(i, j, m) of a level, or only those with i = 0. */
static void fill_level(search *s, int level, bool only_first)
{
    int ranks = s->r->level[level].ranks, n = s->blocks;
    size_t cells = (size_t)n * (size_t)n * (size_t)ranks;
    s->best[level] = nami_calloc(NAMI_MEM_OTHER, cells, sizeof *s->best[level]);
    double *span = nami_calloc(NAMI_MEM_OTHER, (size_t)n * (size_t)ranks, sizeof *span);
    for (int j = 0; j < n; j++) {
        for (int k = 0; k < j; k++)
            for (int q = 1; q < ranks; q++)
                span[(int64_t)k * ranks + q] = span_seconds(s, level, k + 1, j, q);
        for (int m = 1; m <= ranks; m++)
            for (int i = 0; i <= (only_first ? 0 : j); i++)
                fill_cell(s, level, i, j, m, span);
    }
    nami_free(span);
}

/* What the levels above make of the stages below: their times / `groups`, and a share of the levels' own times. */
typedef struct lift {
    int groups;
    double reduce, transfer;
} lift;

static void emit_best(const search *s, int level, int i, int j, int m, lift up,
                      nami_partition *out);

/* The span i..j on `r` groups. */
static void emit_span(const search *s, int level, int i, int j, int r, lift up,
                      nami_partition *out)
{
    nami_part p = {.first = i, .last = j + 1, .replicas = r * up.groups};
    span_parts(s, level, i, j, r, &p);
    p.reduce = p.reduce / up.groups + up.reduce;
    p.transfer = p.transfer / up.groups + up.transfer;
    p.compute /= up.groups;
    if (level > 0) {
        up = (lift){p.replicas, p.reduce, p.transfer};
        emit_best(s, level - 1, i, j, s->r->level[level - 1].ranks, up, out);
        return;
    }
    p.seconds = p.compute + p.reduce + p.transfer;
    p.bytes = bytes_of(s, i, j, r, &p.recompute);
    p.versions = versions_behind(s, j);
    out->ranks += p.replicas;
    out->part[out->parts++] = p;
}

static void emit_best(const search *s, int level, int i, int j, int m, lift up,
                      nami_partition *out)
{
    const cell *c = best_at(s, level, i, j, m);
    if (c->cut >= 0)
        emit_best(s, level, i, c->cut, m - c->ranks, up, out);
    emit_span(s, level, c->cut >= 0 ? c->cut + 1 : i, j, c->ranks, up, out);
}

/* A search of more steps than this takes minutes. */
#define STEPS_MOST 2e10

static nami_status check_size(const search *s)
{
    double n = s->blocks, steps = 0;
    for (int l = 0; l < s->r->levels; l++) {
        double m = s->r->level[l].ranks;
        steps += n * n * m * m * (l + 1 < s->r->levels ? n / 12 : 0.5);
    }
    if (steps <= STEPS_MOST)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "the search of method ashpipe grows with blocks^3 x ranks^2 and "
                     "would take %.1e steps for %d blocks on %d ranks; use method nami",
                     steps, s->blocks, s->ranks);
}

/* All levels from the lowest; the highest only for spans from the first layer. */
static nami_status solve(search *s, nami_partition *out)
{
    int top = s->r->levels - 1;
    for (int l = 0; l <= top; l++)
        fill_level(s, l, l == top);
    int m = s->r->level[top].ranks;
    double seconds = best_at(s, top, 0, s->blocks - 1, m)->seconds;
    char limit[32];
    if (isinf(seconds))
        return nami_fail(NAMI_EPLAN,
                         "no cut of %d blocks fits %d ranks of %s, also with "
                         "recomputation, by the memory rule of method ashpipe",
                         s->blocks, s->ranks, nami_human_bytes(s->r->memory, limit));
    out->part = nami_calloc(NAMI_MEM_OTHER, (size_t)s->blocks, sizeof *out->part);
    out->seconds = seconds;
    emit_best(s, top, 0, s->blocks - 1, m, (lift){.groups = 1}, out);
    return NAMI_OK;
}

nami_status nami_ashpipe(const nami_ashpipe_request *r, nami_partition *out)
{
    search s = {.r = r, .blocks = r->chain->blocks, .ranks = 1};
    *out = (nami_partition){0};
    for (int l = 0; l < r->levels; l++)
        s.ranks *= r->level[l].ranks;
    NAMI_TRY(check_size(&s));
    nami_chain_sums_make(r->chain, &s.sums);
    nami_status status = solve(&s, out);
    for (int l = 0; l < r->levels; l++)
        nami_free(s.best[l]);
    nami_chain_sums_free(&s.sums);
    return status;
}
