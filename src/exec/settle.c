/* SPDX-License-Identifier: MIT */
/* settle.c - the end of a step with a flush: one loss and one norm for all ranks. */
#include <math.h>

#include "base/clock.h"
#include "exec/state.h"

/* Each parameter's squares come from the owner of its first use: from the first replica, or from each for its slice. */
static bool gives_squares(const nami_exec *e, const nami_share_param *h)
{
    bool has = e->blueprint.bound != NULL ? h->own.count > 0 : e->replica == 0;
    return e->train && h->owner && has && !e->config.model->param[h->param].statistic;
}

/* The squares of a slice: of each block, from `first` on; of a whole parameter the sum of all. */
static int64_t numbers_of(const nami_share_param *h, int64_t *first)
{
    bool whole = h->own.count == h->count;
    *first = whole ? 0 : h->own.from / NAMI_SQUARES_BLOCK;
    return whole ? 1 : nami_blocks_of(h->own.count);
}

static void launch_blocks(nami_exec *e, int i, double *sum)
{
    const int64_t block = NAMI_SQUARES_BLOCK, count = e->share.param[i].own.count;
    const char *g = nami_sums_of(e, i);
    for (int64_t at = 0; at < count; at += block) {
        bool last = count - at <= block;
        nami_optim_squares(e->config.backend, NAMI_LANE_COMPUTE,
                           last ? &e->kernels[i] : &e->block, e->config.layout->wide,
                           last ? count - at : block, g + (size_t)at * e->share.wide,
                           sum + at / block);
    }
}

static void launch_squares(nami_exec *e)
{
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        int64_t first;
        if (!gives_squares(e, h))
            continue;
        numbers_of(h, &first);
        if (h->own.count < h->count)
            launch_blocks(e, i, &e->squares[h->square + first]);
        else
            nami_optim_squares(e->config.backend, NAMI_LANE_COMPUTE, &e->kernels[i],
                               e->config.layout->wide, h->count, nami_sums_of(e, i),
                               &e->squares[h->square]);
    }
}

double nami_exec_square(const nami_exec *e, int param)
{
    const int64_t *from = e->blueprint.square + param;
    double sum = 0;
    for (int64_t k = from[0]; k < from[1]; k++)
        sum += nami_merge_squares(e)[k];
    return sum;
}

/* The squares that this rank has to tell the others. */
static void put_squares(nami_exec *e)
{
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        int64_t first, n = gives_squares(e, h) ? numbers_of(h, &first) : 0;
        for (int64_t k = 0; k < n; k++)
            nami_merge_squares(e)[e->blueprint.square[h->param] + first + k] =
                e->host_squares[h->square + first + k];
    }
}

static void merge_all(nami_exec *e)
{
    int count = (int)(nami_merge_counts(e) - e->merge);
    double start = nami_now();
    launch_squares(e);
    nami_tell_fetch(e);
    for (int i = 0; i < count; i++)
        e->merge[i] = 0;
    nami_tell_losses(e, 0, e->merge);
    put_squares(e);
    if (e->config.backend->host)
        nami_prof_add(e->config.prof, NAMI_PHASE_UPDATE, start, nami_now());
    nami_tell_merge(e, count);
}

static nami_status judge(nami_exec *e)
{
    NAMI_TRY(nami_exec_judge(e, e->merge, e->group[0].counted, e->step, &e->result));
    for (int i = 0; e->train && i < e->config.model->params; i++)
        NAMI_TRY(nami_exec_judge_square(e, nami_exec_square(e, i), i, e->step));
    return NAMI_OK;
}

void nami_exec_settle(nami_exec *e)
{
    double squares = 0;
    if (e->train)
        nami_sums_settle(e);
    if (e->share.rolling)
        nami_counts_start(e);
    if (!e->counted)
        nami_counts_wait(e);
    merge_all(e);
    for (int i = 0; i < e->config.model->params; i++)
        squares += nami_exec_square(e, i);
    e->result.norm = sqrt(squares);
    e->clip = nami_optim_clip(e->config.optim, e->result.norm);
    e->status = judge(e);
    e->settled = true;
}
