/* SPDX-License-Identifier: MIT */
/* tell.c - what all ranks learn of a step or of an update in a window: counted targets, losses, one verdict.
 *
 * Every number that all ranks need comes from exactly one rank and is merged without rounding; sums are then
 * made by every rank alike, losses by global sample, squares by parameter in model order.
 */
#include <math.h>

#include "exec/state.h"

/* --- counted tokens --- */

void nami_counts_start(nami_exec *e)
{
    const nami_layout *l = e->config.layout;
    const nami_model_sample *s = &e->share.sample;
    double *count = nami_merge_counts(e);
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
            sum[k] += (int64_t)nami_merge_counts(e)[r * losses + k];
    e->group[0] = nami_group_of(sum);
    e->counted = true;
}

/* --- losses and squares --- */

void nami_tell_fetch(nami_exec *e)
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

/* Number `row` (0: the loss) of sample `i` of this rank, summed over its token slices. */
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

void nami_tell_losses(const nami_exec *e, int k, double *to)
{
    const nami_layout_samples *s = &e->share.samples;
    const int64_t samples = nami_exec_samples(e), batch = e->config.layout->batch;
    for (int row = 0; e->share.losses > 0 && row < nami_exec_rows(e); row++)
        for (int64_t i = 0; i < samples; i++)
            to[row * batch + s->first + i / s->micro * s->stride + i % s->micro] =
                number_of(e, row, k * samples + i);
}

static bool merge_ready(nami_exec *e, int number)
{
    (void)number;
    return nami_comm_done(e->config.comm, &e->merging);
}

static void describe_merge(const nami_exec *e, int number, nami_text *out)
{
    (void)number;
    nami_text_add(out, "losses and gradient norms%s from all ranks",
                  e->train && e->share.rolling ? " of the window" : "");
}

void nami_tell_merge(nami_exec *e, int count)
{
    e->merging = nami_comm_merge(e->config.comm, e->merge, count);
    nami_exec_wait(e, &(nami_awaited){.ready = merge_ready,
                                      .describe = describe_merge,
                                      .phase = NAMI_PHASE_WAIT});
}

/* --- the verdict: every rank finds the same, so all fail alike --- */

nami_status nami_exec_judge(const nami_exec *e, const double *row,
                            const int64_t counted[NAMI_MODEL_LOSSES], int64_t step,
                            nami_exec_result *out)
{
    const int64_t batch = e->config.layout->batch;
    double sum[3 * NAMI_MODEL_LOSSES] = {0};
    for (int r = 0; r < nami_exec_rows(e); r++)
        for (int64_t i = 0; i < batch; i++)
            sum[r] += row[r * batch + i];
    for (int64_t k = 0; k < NAMI_MODEL_LOSSES; k++)
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

nami_status nami_exec_judge_square(const nami_exec *e, double square, int param,
                                   int64_t step)
{
    return isfinite(square)
               ? NAMI_OK
               : nami_fail(NAMI_ENUMERIC, "step %lld: the gradient of %s is not finite",
                           (long long)step, e->config.model->param[param].name);
}
