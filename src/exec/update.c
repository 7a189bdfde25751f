/* SPDX-License-Identifier: MIT */
/* update.c - the optimiser, parameter by parameter of a stage. */
#include <math.h>

#include "exec/state.h"

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
            sum += nami_exec_square(e, i);
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
