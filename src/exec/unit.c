/* SPDX-License-Identifier: MIT */
/* unit.c - samples of a window, read as they come: into the slot of a unit, and to be counted for an update. */
#include "base/clock.h"
#include "exec/state.h"

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
