/* SPDX-License-Identifier: MIT */
/* window.c - windows of updates between two drains: lists of any length, samples as they come, updates that wait for
 * nobody but the replicas of their stage, one reckoning at the end. */
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

/* --- samples --- */

/* Other ranks are on their way already: a source that fails ends the program. */
static void must(nami_status status)
{
    if (status != NAMI_OK)
        nami_die(status);
}

static bool slot_ready(nami_exec *e, int slot)
{
    return nami_backend_done(e->config.backend, e->read[slot]);
}

static void describe_slot(const nami_exec *e, int number, nami_text *out)
{
    (void)number;
    nami_text_add(out, "its %s device to take samples", e->config.backend->type->name);
}

static void to_device(nami_exec *e, int32_t *device, const int32_t *host, int64_t words)
{
    if (device != host)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, device, host,
                          (size_t)words * sizeof *host);
}

void nami_unit_read(nami_exec *e, const nami_task *task)
{
    const nami_share_stage *t = &e->share.stage[task->local];
    const nami_layout_samples *own = &e->share.samples;
    const nami_model_sample *s = &e->share.sample;
    bool first = t->stage == 0,
         last = t->stage == nami_layout_stages(e->config.layout) - 1;
    int64_t words = own->micro * s->words, targets = own->micro * s->targets;
    int64_t token = task->data * words, target = task->data * targets;
    int64_t side =
        (int64_t)(t->side_at / sizeof *e->side) + task->data * own->micro * s->side;
    int32_t *read = first ? e->host_tokens + token : e->reading;
    double start = nami_now();
    if (!first && !last && s->side == 0)
        return;
    nami_exec_wait(e, &(nami_awaited){.ready = slot_ready,
                                      .describe = describe_slot,
                                      .number = task->data,
                                      .phase = NAMI_PHASE_DATA});
    must(nami_exec_read(e, e->step + task->group,
                        own->first + task->action.unit % own->units * own->stride,
                        own->micro, read, last ? e->host_targets + target : NULL));
    if (last && !e->train)
        nami_model_counted(s, e->host_targets + target, own->micro, e->counted_here);
    if (s->side > 0) {
        nami_side_take(e, read, own->micro, e->host_side + side);
        to_device(e, e->side + side, e->host_side + side, own->micro * s->side);
    }
    if (first)
        to_device(e, e->tokens + token, e->host_tokens + token, words);
    if (last)
        to_device(e, e->targets + target, e->host_targets + target, targets);
    if (!e->config.backend->host)
        e->read[task->data] = nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE);
    nami_prof_add(e->config.prof, NAMI_PHASE_DATA, start, nami_now());
}

void nami_group_count(nami_exec *e, int group)
{
    const nami_layout *l = e->config.layout;
    int64_t counted[NAMI_MODEL_LOSSES] = {0};
    double start = nami_now();
    for (int64_t first = 0; first < l->batch; first += l->micro) {
        must(nami_exec_read(e, e->step + group, first, l->micro, NULL, e->tally));
        nami_model_counted(&e->share.sample, e->tally, l->micro, counted);
    }
    e->group[group] = nami_group_of(counted);
    nami_prof_add(e->config.prof, NAMI_PHASE_DATA, start, nami_now());
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

/* What this rank tells of update k: losses, best and five by sample, squares by parameter. */
static void put(const nami_exec *e, int k, double *losses, double *squares)
{
    const nami_share *s = &e->share;
    const nami_layout_samples *own = &s->samples;
    const int64_t samples = own->units * own->micro, batch = e->config.layout->batch;
    for (int row = 0; s->losses > 0 && row < nami_exec_rows(e); row++) {
        const double *from = e->host_losses + row * nami_exec_pieces(e) + k * samples;
        double *to = losses + row * batch + own->first;
        for (int64_t i = 0; i < samples; i++)
            to[i / own->micro * own->stride + i % own->micro] = from[i];
    }
    for (int i = 0; i < s->params; i++) {
        const nami_share_param *h = &s->param[i];
        if (h->owner && e->replica == 0 && !e->config.model->param[h->param].statistic)
            squares[h->param] = e->history[k * s->params + i];
    }
}

static bool merge_ready(nami_exec *e, int number)
{
    (void)number;
    return nami_comm_done(e->config.comm, &e->merging);
}

static void describe_merge(const nami_exec *e, int number, nami_text *out)
{
    (void)e;
    (void)number;
    nami_text_add(out, "losses and gradient norms of the window from all ranks");
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
    nami_backend *b = e->config.backend;
    if (!b->host && e->share.losses > 0)
        nami_backend_copy(b, NAMI_LANE_COMPUTE, e->host_losses, e->losses,
                          e->share.losses);
    nami_exec_finish_lane(e);
    for (int64_t i = 0; i < count * each; i++)
        e->merge[i] = 0;
    for (int k = 0; k < count; k++) {
        double *at = e->merge + k * each;
        put(e, k, at, at + losses);
        for (int r = 0; tells_tokens(e) && r < e->share.sample.losses; r++)
            at[losses + params + r] = fmax(0, (double)e->group[k].counted[r]);
    }
    e->merging = nami_comm_merge(e->config.comm, e->merge, (int)(count * each));
    nami_exec_wait(e, &(nami_awaited){.ready = merge_ready,
                                      .describe = describe_merge,
                                      .phase = NAMI_PHASE_WAIT});
}

/* Update k of the window; every rank finds the same. */
static nami_status judge(const nami_exec *e, int k, const double *at,
                         nami_exec_result *out)
{
    const nami_model *m = e->config.model;
    const long long step = (long long)(e->step + k);
    const double *square = at + nami_exec_rows(e) * e->config.layout->batch;
    int64_t counted[NAMI_MODEL_LOSSES] = {0};
    double squares = 0;
    for (int r = 0; r < e->share.sample.losses; r++)
        counted[r] = (int64_t)square[m->params + r];
    for (int i = 0; i < m->params; i++)
        squares += square[i];
    *out = (nami_exec_result){.norm = sqrt(squares)};
    NAMI_TRY(nami_exec_judge(e, at, counted, step, out));
    for (int i = 0; i < m->params; i++) {
        if (!isfinite(square[i]))
            return nami_fail(NAMI_ENUMERIC,
                             "step %lld: the gradient of %s is not finite", step,
                             m->param[i].name);
    }
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
