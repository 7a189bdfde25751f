/* SPDX-License-Identifier: MIT */
/* window.c - windows of updates between two drains: lists of any length, updates that wait for nobody but the replicas of
 * their stage, one reckoning at the end. */
#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "exec/state.h"

/* --- lists --- */

void nami_variants_free(nami_exec *e)
{
    for (int i = 0; i < e->variants; i++)
        nami_free(e->variant[i].route.task);
    nami_free(e->variant);
}

/* The list of this rank for `count` updates: that of the longest window without the units behind. Buffers and slots stay
 * as they are, for what is left out only gives them back earlier. */
static const nami_route *find_route(nami_exec *e, int count)
{
    const nami_route *all = e->share.train;
    if (count == e->config.layout->window)
        return all;
    for (int i = 0; i < e->variants; i++) {
        if (e->variant[i].count == count)
            return &e->variant[i].route;
    }
    e->variant = nami_realloc(NAMI_MEM_OTHER, e->variant,
                              (size_t)(e->variants + 1) * sizeof *e->variant);
    nami_variant *v = &e->variant[e->variants++];
    *v = (nami_variant){.count = count, .route = *all};
    v->route.task =
        nami_alloc(NAMI_MEM_OTHER, ((size_t)all->count + 1) * sizeof *all->task);
    v->route.count = 0;
    for (int64_t i = 0; i < all->count; i++) {
        if (all->task[i].group < count)
            v->route.task[v->route.count++] = all->task[i];
    }
    return &v->route;
}

/* --- updates --- */

/* Launch the sums of squares of the stage's gradients, on their way into the history of update k. */
static void launch_squares(nami_exec *e, int local, int k)
{
    const nami_share *s = &e->share;
    nami_backend *b = e->config.backend;
    double *history = e->history + (size_t)k * (size_t)s->params;
    for (int i = 0; i < s->params; i++) {
        const nami_share_param *h = &s->param[i];
        if (h->local != local || e->config.model->param[h->param].statistic)
            continue;
        nami_optim_squares(b, NAMI_LANE_COMPUTE, &e->kernels[i], e->config.layout->wide,
                           h->count, nami_sums_of(e, i), &e->squares[i]);
        nami_backend_copy(b, NAMI_LANE_COMPUTE, &history[i], &e->squares[i],
                          sizeof *history);
    }
}

/* The square of the norm of a stage's gradient at update k. */
static double norm_of(const nami_exec *e, int local, int k)
{
    double sum = 0;
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        if (h->local == local && !e->config.model->param[h->param].statistic)
            sum += e->history[k * e->share.params + i];
    }
    return sum;
}

/* The version that an update which cannot be made would have made. */
static void repeat_weights(nami_exec *e, const nami_update *u)
{
    const nami_share *s = &e->share;
    for (int i = 0; u->from != u->to && i < s->params; i++) {
        const nami_share_param *h = &s->param[i];
        if (h->local == u->local && h->stride > 0)
            nami_backend_copy(
                e->config.backend, NAMI_LANE_COMPUTE, nami_ring_weight(e, i, u->to),
                nami_ring_weight(e, i, u->from), (size_t)h->count * s->wide);
    }
}

/* Without clipping a device is not waited for, only to learn whether to update: the drain will end the run. */
void nami_window_update(nami_exec *e, const nami_task *task)
{
    int k = task->action.unit, local = task->local;
    bool known = e->config.backend->host || e->config.optim->clip > 0;
    bool newest = e->config.layout->recipe.weights == NAMI_WEIGHTS_NEWEST;
    nami_sums_finish(e, local);
    nami_timer timer = nami_timing_begin(e);
    launch_squares(e, local, k);
    if (known)
        nami_exec_finish_lane(e);
    double squares = known ? norm_of(e, local, k) : 0;
    nami_update u = {.local = local,
                     .from = nami_ring_slot(e, local, task->from),
                     .to = nami_ring_slot(e, local, task->action.version),
                     .step = e->step + k,
                     .rate = nami_predict_rate(e->rate[k], task->late, e->step + k,
                                               newest ? e->config.optim->anneal : 0),
                     .gap = task->gap,
                     .clip = nami_optim_clip(e->config.optim, sqrt(squares))};
    bool moves = nami_share_moves(&e->blueprint), sound = isfinite(squares);
    if (sound && moves)
        nami_ring_before(e, &u);
    if (sound)
        nami_exec_update(e, &u);
    else
        repeat_weights(e, &u);
    if (sound && moves)
        nami_ring_behind(e, &u);
    nami_ring_pack(e, local, u.to);
    nami_ring_made(e, task);
    nami_timing_end(e, timer, task->action, NAMI_PHASE_UPDATE,
                    nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE));
}

/* --- the drain --- */

/* The squares that this rank tells of update k, by parameter. */
static void put_squares(const nami_exec *e, int k, double *squares)
{
    const nami_share *s = &e->share;
    for (int i = 0; i < s->params; i++) {
        const nami_share_param *h = &s->param[i];
        if (h->owner && e->replica == 0 && !e->config.model->param[h->param].statistic)
            squares[h->param] = e->history[k * s->params + i];
    }
}

/* The tokens of each update come from the first rank of the last position. */
static bool tells_tokens(const nami_exec *e)
{
    return e->tally != NULL && e->replica == 0;
}

/* Of an update. */
static int64_t numbers(const nami_exec *e)
{
    return nami_exec_rows(e) * e->config.layout->batch + e->config.model->params +
           e->share.sample.losses;
}

static void merge_window(nami_exec *e, int count)
{
    const nami_layout *l = e->config.layout;
    const int params = e->config.model->params;
    const int64_t each = numbers(e), losses = nami_exec_rows(e) * l->batch;
    nami_tell_fetch(e);
    for (int64_t i = 0; i < count * each; i++)
        e->merge[i] = 0;
    for (int k = 0; k < count; k++) {
        double *at = e->merge + k * each;
        nami_tell_losses(e, k, at);
        put_squares(e, k, at + losses);
        for (int r = 0; tells_tokens(e) && r < e->share.sample.losses; r++)
            at[losses + params + r] = fmax(0, (double)e->group[k].counted[r]);
    }
    nami_tell_merge(e, (int)(count * each));
}

/* Update k of the window; every rank finds the same. */
static nami_status judge(const nami_exec *e, int k, const double *at,
                         nami_exec_result *out)
{
    const nami_model *m = e->config.model;
    const int64_t step = e->step + k;
    const double *square = at + nami_exec_rows(e) * e->config.layout->batch;
    int64_t counted[NAMI_MODEL_LOSSES] = {0};
    double squares = 0;
    for (int r = 0; r < e->share.sample.losses; r++)
        counted[r] = (int64_t)square[m->params + r];
    for (int i = 0; i < m->params; i++)
        squares += square[i];
    *out = (nami_exec_result){.norm = sqrt(squares)};
    NAMI_TRY(nami_exec_judge(e, at, counted, step, out));
    for (int i = 0; i < m->params; i++)
        NAMI_TRY(nami_exec_judge_square(e, square[i], i, step));
    return NAMI_OK;
}

static nami_status drain(nami_exec *e, int count, nami_exec_result *out)
{
    const int64_t each = numbers(e);
    nami_status status = NAMI_OK;
    merge_window(e, count);
    for (int k = 0; k < count; k++) {
        nami_status one =
            status == NAMI_OK ? judge(e, k, e->merge + k * each, &out[k]) : status;
        status = one;
    }
    return status;
}

static nami_status run_window(nami_exec *e, int64_t first_step, int count,
                              const double *rate, const nami_exec_source *source,
                              nami_exec_result *out)
{
    NAMI_CHECK(count >= 1 && count <= e->config.layout->window);
    const nami_route *route = find_route(e, count);
    nami_prof_begin(e->config.prof);
    int pending = nami_comm_pending(e->config.comm);
    e->train = true;
    e->rate = rate;
    e->samples = e->config.layout->batch;
    e->source = source;
    e->units = count * e->share.samples.units;
    nami_exec_forget(e);
    nami_exec_begin(e, first_step);
    nami_rings_begin(e);
    nami_exec_run(e, route, pending);
    nami_rings_turn(e, route);
    return drain(e, count, out);
}

nami_status nami_exec_window(nami_exec *e, int64_t first_step, int count,
                             const double *rate, const nami_exec_source *source,
                             nami_exec_result *out)
{
    for (int i = 0; i < count; i++)
        out[i] = (nami_exec_result){0};
    if (!nami_recipe_flushes(&e->config.layout->recipe))
        return run_window(e, first_step, count, rate, source, out);
    for (int i = 0; i < count; i++)
        NAMI_TRY(nami_exec_step(e, first_step + i, rate[i], source, &out[i]));
    return NAMI_OK;
}
