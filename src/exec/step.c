/* SPDX-License-Identifier: MIT */
/* step.c - carry out a list of actions. */
#include "base/clock.h"
#include "base/memory.h"
#include "exec/state.h"

/* Where a unit's samples lie: with a flush by their number in the step, else in the unit's slot. */
static void point_at_samples(nami_exec *e, const nami_task *task, nami_graph_call *c)
{
    const nami_layout *l = e->config.layout;
    const nami_layout_samples *own = &e->share.samples;
    const nami_model_sample *s = &e->share.sample;
    int stage = e->share.stage[task->local].stage;
    int64_t slices = nami_layout_slices(l), slice = task->action.slice;
    int64_t unit = task->action.unit * own->micro * slices + slice * own->micro;
    int64_t held = e->share.rolling ? task->data * own->micro : unit;
    if (stage == 0)
        c->input = e->tokens + held * (s->words / slices);
    if (stage == l->train.place.stages - 1) {
        c->targets = e->targets + held * (s->targets / slices);
        c->loss = e->losses + unit;
        c->best = e->train && s->kind == NAMI_SAMPLE_TOKENS
                      ? NULL
                      : c->loss + nami_exec_pieces(e);
        c->five = c->best ? c->best + nami_exec_pieces(e) : NULL;
    }
    if (stage == l->train.place.stages - 1 && s->losses > 1)
        c->second = (nami_graph_second){.loss = c->loss + 3 * nami_exec_pieces(e),
                                        .best = c->best + 3 * nami_exec_pieces(e),
                                        .five = c->five + 3 * nami_exec_pieces(e)};
    if (s->side > 0)
        c->side = e->side + e->share.stage[task->local].side_at / sizeof *e->side +
                  held * s->side;
}

nami_graph_call nami_exec_call(nami_exec *e, int local, int slot, const nami_task *task)
{
    const nami_share_stage *t = &e->share.stage[local];
    void **param = e->pointer, **dparam = e->pointer + t->uses;
    char *sums = nami_sums_growing(e, local);
    for (int u = 0; u < t->uses; u++) {
        param[u] = nami_ring_weight(e, t->param[u], slot);
        dparam[u] = sums + t->sum[u];
    }
    nami_graph_call c = {.param = param,
                         .dparam = e->train ? dparam : NULL,
                         .packed = e->packed + t->packed_at + (size_t)slot * t->packed,
                         .transient = e->transient};
    if (task == NULL)
        return c;
    const nami_layout_samples *own = &e->share.samples;
    int64_t slices = nami_layout_slices(e->config.layout), slice = task->action.slice;
    c.input = task->in >= 0 ? e->message[task->in].data : NULL;
    point_at_samples(e, task, &c);
    c.output = task->out >= 0 ? e->message[task->out].data : NULL;
    if (task->action.kind == NAMI_R)
        c.output = e->activation + t->output_at;
    c.doutput = task->dout >= 0 ? e->message[task->dout].data : NULL;
    c.dinput = task->din >= 0 ? e->message[task->din].data : NULL;
    c.kept =
        e->activation + t->kept_at + (size_t)(task->kept * slices + slice) * t->kept;
    if (task->held >= 0)
        c.held = e->activation + t->held_at + (size_t)task->held * t->held;
    c.seed = e->config.seed;
    c.step = e->step + task->group;
    c.first_sample = own->first + task->action.unit % own->units * own->stride;
    c.scale = e->group[task->group].scale[0];
    c.second.scale = e->group[task->group].scale[1];
    c.slice = task->action.slice;
    c.stride = t->kept;
    return c;
}

/* The walk and the timer of each kind of computation. */
static const struct {
    nami_walk_kind walk;
    nami_phase phase;
} computing[NAMI_KINDS] = {
    [NAMI_F] = {NAMI_WALK_F, NAMI_PHASE_F},
    [NAMI_R] = {NAMI_WALK_F, NAMI_PHASE_R},
    [NAMI_B] = {NAMI_WALK_B, NAMI_PHASE_B},
    [NAMI_BI] = {NAMI_WALK_BI, NAMI_PHASE_BI},
    [NAMI_BW] = {NAMI_WALK_BW, NAMI_PHASE_BW},
};

static double flops_of(const nami_graph *g, nami_kind kind)
{
    const nami_graph_sizes *s = nami_graph_bytes(g);
    if (kind == NAMI_F || kind == NAMI_R)
        return s->flops[NAMI_FORWARD];
    double input = s->flops[NAMI_BACKWARD_INPUT] + s->rerun;
    double weight = s->flops[NAMI_BACKWARD_WEIGHT];
    return kind == NAMI_BI ? input : kind == NAMI_BW ? weight : input + weight;
}

/* A mark behind what was launched; the buffers of `task` are in use until then. */
static nami_event mark_behind(nami_exec *e, const nami_task *task)
{
    const int used[] = {task->in, task->out, task->dout, task->din};
    nami_event last = nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE);
    for (int i = 0; i < 4; i++) {
        if (used[i] >= 0)
            e->message[used[i]].busy = last;
    }
    return last;
}

/* What an F wants of samples, and the last stage of their number. */
static void prepare_samples(nami_exec *e, const nami_task *task)
{
    int stage = e->share.stage[task->local].stage;
    bool last = stage == e->config.layout->train.place.stages - 1;
    if (e->share.rolling && task->action.kind == NAMI_F)
        nami_unit_read(e, task);
    if (!e->train || !last)
        return;
    if (e->share.rolling && e->group[task->group].counted[0] < 0)
        nami_group_count(e, task->group);
    else if (!e->share.rolling && !e->counted)
        nami_counts_wait(e);
}

static void compute(nami_exec *e, const nami_task *task)
{
    const nami_share_stage *t = &e->share.stage[task->local];
    nami_kind kind = task->action.kind;
    bool adds = nami_semantics_of(kind)->adds_gradient;
    nami_message_wait(e, task->out);
    nami_message_wait(e, task->din);
    nami_message_use(e, task->in);
    nami_message_use(e, task->dout);
    prepare_samples(e, task);
    nami_timer timer = nami_timing_begin(e);
    if (adds)
        nami_sums_open(e, task->local);
    const nami_graph *g = e->train ? t->train : t->evaluate;
    nami_graph_call call = nami_exec_call(e, task->local, nami_ring_use(e, task), task);
    nami_walk w;
    nami_walk_begin(&w, g, computing[kind].walk, &call);
    while (nami_walk_next(&w)) {
        nami_statistics_share(e, task, &w, &timer);
        if (task->completes)
            nami_sums_hand(e, task->local, nami_walk_open(&w));
        nami_exec_progress(e);
    }
    if (adds)
        nami_sums_close(e, task->local);
    if (e->share.rolling && e->train)
        nami_ring_used(e, task);
    e->config.prof->flops += flops_of(g, kind);
    nami_timing_end(e, timer, task->action, computing[kind].phase,
                    mark_behind(e, task));
}

static void communicate(nami_exec *e, const nami_task *task)
{
    bool forward = task->action.kind == NAMI_SEND_F || task->action.kind == NAMI_RECV_B;
    bool sends = nami_semantics_of(task->action.kind)->sends;
    int b =
        sends ? (forward ? task->out : task->din) : (forward ? task->dout : task->in);
    nami_message_wait(e, b);
    nami_message_start(e, task, b);
}

static void reduce(nami_exec *e, const nami_task *task)
{
    nami_timer timer = nami_timing_begin(e);
    nami_sums_reduce(e, task->local);
    nami_timing_end(e, timer, task->action, NAMI_PHASE_REDUCE,
                    nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE));
}

/* The first update of the list waits for what all of them need. */
static void update(nami_exec *e, const nami_task *task)
{
    if (e->share.rolling) {
        nami_window_update(e, task);
        return;
    }
    if (!e->settled)
        nami_exec_settle(e);
    if (e->status != NAMI_OK)
        return;
    nami_timer timer = nami_timing_begin(e);
    const int base = e->ring[task->local].base;
    nami_exec_update(e, &(nami_update){.local = task->local,
                                       .from = base,
                                       .to = base,
                                       .step = e->step,
                                       .rate = *e->rate});
    nami_timing_end(e, timer, task->action, NAMI_PHASE_UPDATE, mark_behind(e, task));
}

/* The rest of the update's weights goes on its way. */
static void gather(nami_exec *e, const nami_task *task)
{
    if (e->status == NAMI_OK)
        nami_gather_end(e, task->local);
}

static void carry_out(nami_exec *e, const nami_task *task)
{
    const nami_semantics *is = nami_semantics_of(task->action.kind);
    if (is->compute)
        compute(e, task);
    else if (is->sends || is->receives)
        communicate(e, task);
    else if (task->action.kind == NAMI_REDUCE ||
             task->action.kind == NAMI_REDUCE_SCATTER)
        reduce(e, task);
    else if (task->action.kind == NAMI_GATHER)
        gather(e, task);
    else
        update(e, task);
}

/* Words of each micro-batch from [micro][slices][time of a slice] to [slices][micro][time of a slice]. */
static void arrange(nami_exec *e, int32_t *words)
{
    const nami_layout *l = e->config.layout;
    int64_t slices = nami_layout_slices(l), each = l->time / slices;
    int64_t micro = e->share.samples.micro;
    int64_t all = nami_exec_samples(e) * l->time, some = micro * l->time;
    if (slices == 1 || words == NULL)
        return;
    for (int32_t *w = words; w < words + all; w += some) {
        memcpy(e->arranging, w, e->share.arrange);
        for (int64_t i = 0; i < micro; i++)
            for (int64_t k = 0; k < slices; k++)
                memcpy(w + (k * micro + i) * each,
                       e->arranging + i * l->time + k * each, (size_t)each * sizeof *w);
    }
}

nami_status nami_exec_read(nami_exec *e, int64_t number, int64_t first, int64_t count,
                           int32_t *token, int32_t *target)
{
    const nami_model_sample *s = &e->share.sample;
    const nami_exec_source *source = e->source;
    int64_t real = e->samples - first < count ? e->samples - first : count;
    real = real > 0 ? real : 0;
    if (real > 0)
        NAMI_TRY(source->read(source->context, number, first, real, token, target));
    for (int64_t i = real; i < count; i++)
        nami_model_blank(s, token ? token + i * s->words : NULL,
                         target ? target + i * s->targets : NULL);
    return NAMI_OK;
}

void nami_side_take(const nami_exec *e, const int32_t *token, int64_t count,
                    int32_t *side)
{
    const nami_model_sample *s = &e->share.sample;
    for (int64_t i = 0; i < count * s->side; i++)
        side[i] = token[(i / s->side + 1) * s->words - s->side + i % s->side];
}

/* Fill the samples of this replica: of a step at once where they follow each other. */
static nami_status read_step(nami_exec *e, int64_t number)
{
    const nami_layout_samples *own = &e->share.samples;
    const nami_model_sample *s = &e->share.sample;
    bool apart = s->side > 0 && e->host_tokens == NULL;
    int ranges = own->micro == own->stride && !apart ? 1 : own->units;
    int64_t each = nami_exec_samples(e) / ranges;
    nami_exec_finish_lane(
        e); /* nothing reads the samples of the step before any more */
    for (int64_t i = 0; i < ranges; i++) {
        int32_t *token =
            e->host_tokens ? e->host_tokens + i * each * s->words : e->reading;
        NAMI_TRY(nami_exec_read(
            e, number, own->first + i * own->stride, each, token,
            e->host_targets ? e->host_targets + i * each * s->targets : NULL));
        if (s->side > 0)
            nami_side_take(e, token, each, e->host_side + i * each * s->side);
    }
    arrange(e, e->host_tokens);
    arrange(e, e->host_targets);
    if (e->tokens != e->host_tokens)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->tokens,
                          e->host_tokens, e->share.tokens);
    if (e->side != e->host_side)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->side, e->host_side,
                          e->share.side);
    if (e->targets != e->host_targets)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->targets,
                          e->host_targets, e->share.targets);
    return NAMI_OK;
}

/* Other ranks are on their way already: a source that fails ends the program. */
static void read_all(nami_exec *e, int64_t number)
{
    double start = nami_now();
    bool reads = e->host_tokens || e->host_targets || e->host_side;
    if (!e->share.rolling && reads) {
        nami_status status = read_step(e, number);
        if (status != NAMI_OK)
            nami_die(status);
    }
    nami_prof_add(e->config.prof, NAMI_PHASE_DATA, start, nami_now());
}

void nami_exec_begin(nami_exec *e, int64_t number)
{
    read_all(e, number);
    if (e->share.losses >
        0) /* another copy of the model may have some of the samples */
        nami_backend_zero(e->config.backend, NAMI_LANE_COMPUTE, e->losses,
                          e->share.losses);
    e->step = number;
    e->idle = nami_now();
    e->counted = e->settled = false;
    for (int k = 0; k < NAMI_MODEL_LOSSES; k++)
        e->counted_here[k] = 0;
    e->status = NAMI_OK;
    e->result = (nami_exec_result){0};
    for (int k = 0; k < e->config.layout->window; k++)
        e->group[k] = (nami_group){.counted = {-1}};
    nami_sums_begin(e);
    if (e->train)
        nami_sums_expect(e);
    if (!e->share.rolling)
        nami_counts_start(e);
}

void nami_exec_run(nami_exec *e, const nami_route *route, int pending)
{
    for (int64_t i = 0; i < route->count; i++)
        carry_out(e, &route->task[i]);
    for (int b = 0; b < e->share.buffers; b++)
        nami_message_wait(e, b);
    if (!e->settled && !(e->share.rolling && e->train))
        nami_exec_settle(e);
    nami_exec_finish_lane(e);
    nami_timing_progress(e);
    NAMI_CHECK(nami_comm_pending(e->config.comm) == pending);
}

/* One step with a flush. */
static nami_status step(nami_exec *e, int64_t number, double rate,
                        const nami_exec_source *source, nami_exec_result *out)
{
    nami_prof *prof = e->config.prof;
    nami_prof_begin(prof);
    e->train = true;
    e->rate = &rate;
    e->samples = e->config.layout->batch;
    e->source = source;
    nami_exec_forget(e);
    int pending = nami_comm_pending(e->config.comm);
    nami_exec_begin(e, number);
    nami_exec_run(e, e->share.train, pending);
    *out = e->result;
    if (e->status != NAMI_OK)
        return e->status;
    nami_timer timer = nami_timing_begin(e);
    for (int i = 0; i < e->share.stages; i++) {
        nami_gather_finish(e, i, e->ring[i].base);
        nami_ring_pack(e, i, e->ring[i].base);
    }
    nami_exec_finish_lane(e);
    double start = e->config.backend->host
                       ? timer.start
                       : nami_backend_moment(e->config.backend, timer.first);
    nami_prof_add(prof, NAMI_PHASE_UPDATE, start, nami_now());
    return NAMI_OK;
}

nami_status nami_exec_step(nami_exec *e, int64_t number, double rate,
                           const nami_exec_source *source, nami_exec_result *out)
{
    return e->share.rolling ? nami_exec_window(e, number, 1, &rate, source, out)
                            : step(e, number, rate, source, out);
}

nami_status nami_exec_evaluate(nami_exec *e, int64_t index, int64_t samples,
                               const nami_exec_source *source, nami_exec_result *out)
{
    int pending = nami_comm_pending(e->config.comm);
    e->train = false;
    e->samples = samples;
    e->source = source;
    nami_exec_begin(e, index);
    nami_exec_run(e, e->share.evaluate, pending);
    *out = e->result;
    return e->status;
}
