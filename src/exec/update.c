/* SPDX-License-Identifier: MIT */
/* update.c - the end of a step: one loss and one norm for all ranks, then the optimiser.
 *
 * Every number that all ranks need comes from exactly one rank and is merged without rounding; sums are then
 * made by every rank alike, losses by global sample, squares by parameter in model order.
 */
#include <math.h>

#include "base/clock.h"
#include "exec/state.h"

static double *squares_of(const nami_exec *e)
{
    return e->merge + nami_exec_rows(e) * e->config.layout->batch;
}

static double *counts_of(const nami_exec *e)
{
    return squares_of(e) + e->blueprint.square[e->config.model->params];
}

/* --- counted tokens --- */

void nami_counts_start(nami_exec *e)
{
    const nami_layout *l = e->config.layout;
    const nami_model_sample *s = &e->share.sample;
    double *count = counts_of(e);
    int numbers = nami_layout_replicas_most(l) * s->losses;
    int64_t here[NAMI_MODEL_LOSSES] = {0};
    for (int r = 0; r < numbers; r++)
        count[r] = 0;
    /* each copy of the model has a last stage, and all of the targets there */
    bool counts =
        nami_place_of(&l->train.place, 0, l->train.place.stages - 1) == e->position;
    if (counts && !e->share.rolling)
        nami_model_counted(s, e->host_targets, nami_exec_samples(e), here);
    for (int k = 0; counts && k < s->losses; k++)
        count[e->replica * s->losses + k] = (double)(here[k] + e->counted_here[k]);
    e->counting = nami_comm_merge(e->config.comm, count, numbers);
}

static bool counts_ready(nami_exec *e, int number)
{
    (void)number;
    return nami_comm_done(e->config.comm, &e->counting);
}

static void describe_counts(const nami_exec *e, int number, nami_text *out)
{
    (void)e;
    (void)number;
    nami_text_add(out, "the count of targets from all ranks");
}

nami_group nami_group_of(const int64_t counted[NAMI_MODEL_LOSSES])
{
    nami_group g = {{0}, {0}};
    for (int k = 0; k < NAMI_MODEL_LOSSES; k++) {
        g.counted[k] = counted[k];
        g.scale[k] = counted[k] > 0 ? 1 / (double)counted[k] : 0;
    }
    return g;
}

void nami_counts_wait(nami_exec *e)
{
    nami_exec_wait(e, &(nami_awaited){.ready = counts_ready,
                                      .describe = describe_counts,
                                      .phase = NAMI_PHASE_WAIT});
    const int losses = e->share.sample.losses;
    int64_t sum[NAMI_MODEL_LOSSES] = {0};
    for (int r = 0; r < nami_layout_replicas_most(e->config.layout); r++)
        for (int k = 0; k < losses; k++)
            sum[k] += (int64_t)counts_of(e)[r * losses + k];
    e->group[0] = nami_group_of(sum);
    e->counted = true;
}

/* --- losses and squares --- */

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

/* The sum of squares of a parameter, from those that all ranks know. */
static double square_of(const nami_exec *e, int param)
{
    const int64_t *from = e->blueprint.square + param;
    double sum = 0;
    for (int64_t k = from[0]; k < from[1]; k++)
        sum += squares_of(e)[k];
    return sum;
}

/* Bring losses and squares to the host. */
static void fetch(nami_exec *e)
{
    nami_backend *b = e->config.backend;
    if (!b->host && e->share.squares > 0)
        nami_backend_copy(b, NAMI_LANE_COMPUTE, e->host_squares, e->squares,
                          e->share.squares);
    if (!b->host && e->share.losses > 0)
        nami_backend_copy(b, NAMI_LANE_COMPUTE, e->host_losses, e->losses,
                          e->share.losses);
    nami_exec_finish_lane(e);
}

/* Number `row` (0: the loss) of sample `i` of this replica, summed over its token slices. */
static double number_of(const nami_exec *e, int row, int64_t i)
{
    int64_t micro = e->share.samples.micro,
            slices = nami_layout_slices(e->config.layout);
    const double *first = e->host_losses + row * nami_exec_pieces(e) +
                          i / micro * slices * micro + i % micro;
    double sum = first[0];
    for (int64_t k = 1; k < slices; k++)
        sum += first[k * micro];
    return sum;
}

/* What this rank has to tell the others. */
static void put(nami_exec *e)
{
    const nami_layout_samples *s = &e->share.samples;
    for (int row = 0; e->share.losses > 0 && row < nami_exec_rows(e); row++)
        for (int64_t i = 0; i < nami_exec_samples(e); i++)
            e->merge[row * e->config.layout->batch + s->first +
                     i / s->micro * s->stride + i % s->micro] = number_of(e, row, i);
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        int64_t first, n = gives_squares(e, h) ? numbers_of(h, &first) : 0;
        for (int64_t k = 0; k < n; k++)
            squares_of(e)[e->blueprint.square[h->param] + first + k] =
                e->host_squares[h->square + first + k];
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
    nami_text_add(out, "losses and gradient norms from all ranks");
}

static void merge_all(nami_exec *e)
{
    int count = (int)(counts_of(e) - e->merge);
    double start = nami_now();
    launch_squares(e);
    fetch(e);
    for (int i = 0; i < count; i++)
        e->merge[i] = 0;
    put(e);
    if (e->config.backend->host)
        nami_prof_add(e->config.prof, NAMI_PHASE_UPDATE, start, nami_now());
    e->merging = nami_comm_merge(e->config.comm, e->merge, count);
    nami_exec_wait(e, &(nami_awaited){.ready = merge_ready,
                                      .describe = describe_merge,
                                      .phase = NAMI_PHASE_WAIT});
}

nami_status nami_exec_judge(const nami_exec *e, const double *row,
                            const int64_t counted[NAMI_MODEL_LOSSES], int64_t step,
                            nami_exec_result *out)
{
    const int64_t batch = e->config.layout->batch;
    double sum[3 * NAMI_MODEL_LOSSES] = {0};
    for (int r = 0; r < nami_exec_rows(e); r++)
        for (int64_t i = 0; i < batch; i++)
            sum[r] += row[r * batch + i];
    for (int k = 0; k < NAMI_MODEL_LOSSES; k++)
        out->part[k] = counted[k] > 0 ? sum[3 * k] / (double)counted[k] : 0;
    out->loss = out->part[0] + out->part[1];
    out->tokens = counted[0];
    out->best = (int64_t)sum[1];
    out->five = (int64_t)sum[2];
    out->pairs = counted[1];
    out->right = (int64_t)sum[4];
    if (counted[0] == 0 && counted[1] == 0)
        return nami_fail(NAMI_EINPUT, "step %lld: no target of the batch counts",
                         (long long)step);
    if (!isfinite(out->loss))
        return nami_fail(NAMI_ENUMERIC,
                         "step %lld: the loss is %g, not a finite number",
                         (long long)step, out->loss);
    return NAMI_OK;
}

/* Every rank finds the same, so all fail alike. */
static nami_status judge(nami_exec *e)
{
    NAMI_TRY(nami_exec_judge(e, e->merge, e->group[0].counted, e->step, &e->result));
    for (int i = 0; e->train && i < e->config.model->params; i++) {
        if (!isfinite(square_of(e, i)))
            return nami_fail(NAMI_ENUMERIC,
                             "step %lld: the gradient of %s is not finite",
                             (long long)e->step, e->config.model->param[i].name);
    }
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
        squares += square_of(e, i);
    e->result.norm = sqrt(squares);
    e->clip = nami_optim_clip(e->config.optim, e->result.norm);
    e->status = judge(e);
    e->settled = true;
}

/* --- optimiser --- */

/* The own slice of parameter `i` in a slot of its stage. */
static char *slice_of(const nami_exec *e, int i, int slot)
{
    return nami_ring_weight(e, i, slot) +
           (size_t)e->share.param[i].own.from * e->share.wide;
}

/* w moves towards the mean of what micro-batches (of every replica) added: w = (1 - momentum) w + momentum g / n. */
static void update_statistic(nami_exec *e, int i)
{
    const nami_layout *l = e->config.layout;
    const nami_share_param *h = &e->share.param[i];
    nami_backend *b = e->config.backend;
    nami_arg_vector mean = {
        .wide = l->wide,
        .count = h->own.count,
        .a = nami_sums_of(e, i),
        .s = NAMI_MODEL_MOMENTUM /
             (double)(e->share.samples.units * nami_layout_replicas(l, e->position))};
    nami_arg_vector old = {.wide = l->wide,
                           .count = h->own.count,
                           .a = slice_of(e, i, 0),
                           .b = mean.a,
                           .s = 1 - NAMI_MODEL_MOMENTUM};
    nami_backend_launch(b, NAMI_LANE_COMPUTE, e->shrink[i], &mean);
    nami_backend_launch(b, NAMI_LANE_COMPUTE, e->shrink[i], &old);
    nami_backend_launch(b, NAMI_LANE_COMPUTE, e->add_terms[i], &old);
}

/* The norm of the stage of `model` parameter: where it is first used, so all who hold it agree. */
static double stage_norm(const nami_exec *e, int stage)
{
    const nami_layout *l = e->config.layout;
    const nami_model *m = e->config.model;
    double sum = 0;
    for (int i = 0; i < m->params; i++) {
        if (m->param[i].block >= l->cut[stage] && m->param[i].block < l->cut[stage + 1])
            sum += square_of(e, i);
    }
    return sqrt(sum);
}

/* Factor on the gradient of parameter `i`, with a flush. */
static double clip_of(const nami_exec *e, int i)
{
    const int block = e->config.model->param[e->share.param[i].param].block;
    int stage = 0;
    if (e->config.optim->clip_scope == NAMI_CLIP_ALL)
        return e->clip;
    while (block >= e->config.layout->cut[stage + 1])
        stage++;
    return nami_optim_clip(e->config.optim, stage_norm(e, stage));
}

static void update_param(nami_exec *e, int i, const nami_update *u)
{
    const nami_share_param *h = &e->share.param[i];
    nami_optim_item item = {.count = h->own.count,
                            .decay = e->config.model->param[h->param].decay,
                            .w = slice_of(e, i, u->to),
                            .from = slice_of(e, i, u->from),
                            .g = nami_sums_of(e, i)};
    if (item.count == 0)
        return;
    if (e->config.model->param[h->param].statistic) {
        update_statistic(e, i);
        return;
    }
    nami_optim_place(e->config.optim, e->state + h->at, e->share.state, &item);
    nami_optim_update(e->config.optim, e->config.backend, NAMI_LANE_COMPUTE,
                      &e->kernels[i], e->config.layout->wide, &item, u->rate,
                      e->share.rolling ? u->clip : clip_of(e, i), u->step);
}

void nami_exec_update(nami_exec *e, const nami_update *u)
{
    nami_gather_begin(e, u->local);
    for (int i = 0; i < e->share.params; i++) {
        if (e->share.param[i].local != u->local)
            continue;
        update_param(e, i, u);
        nami_gather_add(e, i, u->to);
        nami_exec_progress(e);
    }
}
