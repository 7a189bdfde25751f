/* SPDX-License-Identifier: MIT */
/* step.c - carry out a list of actions. */
#include "base/clock.h"
#include "base/memory.h"
#include "exec/state.h"

nami_graph_call nami_exec_call(nami_exec *e, int local, const nami_task *task)
{
    const nami_share_stage *t = &e->share.stage[local];
    void **param = e->pointer, **dparam = e->pointer + t->uses;
    char *sums = nami_sums_growing(e, local);
    for (int u = 0; u < t->uses; u++) {
        param[u] = e->parameter + e->share.param[t->param[u]].at;
        dparam[u] = sums + t->sum[u];
    }
    nami_graph_call c = {.param = param,
                         .dparam = e->train ? dparam : NULL,
                         .packed = e->packed + t->packed_at,
                         .transient = e->transient};
    if (task == NULL)
        return c;
    const nami_layout *l = e->config.layout;
    const nami_layout_samples *own = &e->share.samples;
    int64_t first = task->action.unit * own->micro, slice = task->action.slice;
    int64_t slices = nami_layout_slices(l);
    const nami_model_sample *s = &e->share.sample;
    int64_t piece =
        first * slices + slice * own->micro; /* of the step's token slices */
    c.input = task->in >= 0 ? e->message[task->in].data : NULL;
    if (t->stage == 0)
        c.input = e->tokens + piece * (s->words / slices);
    if (t->stage == l->train.place.stages - 1) {
        c.targets = e->targets + piece * (s->targets / slices);
        c.loss = e->losses + piece;
        c.best = e->train && !s->image ? NULL : c.loss + nami_exec_pieces(e);
        c.five = c.best ? c.best + nami_exec_pieces(e) : NULL;
    }
    c.output = task->out >= 0 ? e->message[task->out].data : NULL;
    c.doutput = task->dout >= 0 ? e->message[task->dout].data : NULL;
    c.dinput = task->din >= 0 ? e->message[task->din].data : NULL;
    c.kept =
        e->activation + t->kept_at + (size_t)(task->kept * slices + slice) * t->kept;
    if (task->held >= 0)
        c.held = e->activation + t->held_at + (size_t)task->held * t->held;
    c.seed = e->config.seed;
    c.step = e->step;
    c.first_sample = own->first + task->action.unit * own->stride;
    c.scale = e->scale;
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
    [NAMI_B] = {NAMI_WALK_B, NAMI_PHASE_B},
    [NAMI_BI] = {NAMI_WALK_BI, NAMI_PHASE_BI},
    [NAMI_BW] = {NAMI_WALK_BW, NAMI_PHASE_BW},
};

static double flops_of(const nami_graph *g, nami_kind kind)
{
    const nami_graph_sizes *s = nami_graph_bytes(g);
    if (kind == NAMI_F)
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

static void compute(nami_exec *e, const nami_task *task)
{
    const nami_share_stage *t = &e->share.stage[task->local];
    nami_kind kind = task->action.kind;
    bool adds = nami_semantics_of(kind)->adds_gradient;
    nami_message_wait(e, task->out);
    nami_message_wait(e, task->din);
    nami_message_use(e, task->in);
    nami_message_use(e, task->dout);
    if (e->train && !e->counted && t->stage == e->config.layout->train.place.stages - 1)
        nami_counts_wait(e);
    nami_timer timer = nami_timing_begin(e);
    if (adds)
        nami_sums_open(e, task->local);
    const nami_graph *g = e->train ? t->train : t->evaluate;
    nami_graph_call call = nami_exec_call(e, task->local, task);
    nami_walk w;
    nami_walk_begin(&w, g, computing[kind].walk, &call);
    while (nami_walk_next(&w))
        nami_exec_progress(e);
    if (adds)
        nami_sums_close(e, task->local);
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
                    e->sums[task->local].copied);
}

/* The first update of the list waits for what all of them need. */
static void update(nami_exec *e, const nami_task *task)
{
    if (!e->settled)
        nami_exec_settle(e);
    if (e->status != NAMI_OK)
        return;
    nami_timer timer = nami_timing_begin(e);
    nami_exec_update(e, task->local);
    nami_timing_end(e, timer, task->action, NAMI_PHASE_UPDATE, mark_behind(e, task));
}

static void carry_out(nami_exec *e, const nami_task *task)
{
    const nami_semantics *is = nami_semantics_of(task->action.kind);
    if (is->compute)
        compute(e, task);
    else if (is->sends || is->receives)
        communicate(e, task);
    else if (task->action.kind == NAMI_REDUCE)
        reduce(e, task);
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

/* Fill `count` samples, the `at`-th of this replica and `first`-th of the step on; those from `samples` on are padding
 * that does not count. */
static nami_status read_range(nami_exec *e, int64_t number, int64_t at, int64_t first,
                              int64_t count, int64_t samples,
                              const nami_exec_source *source)
{
    const nami_model_sample *s = &e->share.sample;
    int32_t *token = e->host_tokens ? e->host_tokens + at * s->words : NULL;
    int32_t *target = e->host_targets ? e->host_targets + at * s->targets : NULL;
    int64_t real = samples - first < count ? samples - first : count;
    real = real > 0 ? real : 0;
    if (real > 0)
        NAMI_TRY(source->read(source->context, number, first, real, token, target));
    for (int64_t i = real * s->words; i < count * s->words && token; i++)
        token[i] = 0;
    for (int64_t i = real * s->targets; i < count * s->targets && target; i++)
        target[i] = -1;
    return NAMI_OK;
}

/* Fill the samples of this replica: of a step at once where they follow each other. */
static nami_status read_samples(nami_exec *e, int64_t number, int64_t samples,
                                const nami_exec_source *source)
{
    const nami_layout_samples *own = &e->share.samples;
    int ranges = own->micro == own->stride ? 1 : own->units;
    int64_t each = nami_exec_samples(e) / ranges;
    nami_exec_finish_lane(
        e); /* nothing reads the samples of the step before any more */
    for (int i = 0; i < ranges; i++)
        NAMI_TRY(read_range(e, number, i * each, own->first + i * own->stride, each,
                            samples, source));
    arrange(e, e->host_tokens);
    arrange(e, e->host_targets);
    if (e->tokens != e->host_tokens)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->tokens,
                          e->host_tokens, e->share.tokens);
    if (e->targets != e->host_targets)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->targets,
                          e->host_targets, e->share.targets);
    return NAMI_OK;
}

/* Other ranks are on their way already: a source that fails ends the program. */
static void begin(nami_exec *e, int64_t number, int64_t samples,
                  const nami_exec_source *source)
{
    double start = nami_now();
    if (e->host_tokens != NULL || e->host_targets != NULL) {
        nami_status status = read_samples(e, number, samples, source);
        if (status != NAMI_OK)
            nami_die(status);
    }
    nami_prof_add(e->config.prof, NAMI_PHASE_DATA, start, nami_now());
    if (e->share.losses >
        0) /* another copy of the model may have some of the samples */
        nami_backend_zero(e->config.backend, NAMI_LANE_COMPUTE, e->losses,
                          e->share.losses);
    e->step = number;
    e->idle = nami_now();
    e->reached = e->started = 0;
    e->counted = e->settled = false;
    e->status = NAMI_OK;
    e->result = (nami_exec_result){0};
    for (int i = 0; i < e->share.stages; i++) {
        e->sums[i].depth = e->sums[i].added = 0;
        e->sums[i].state = NAMI_SUMS_GROWING;
    }
    if (e->train)
        nami_sums_expect(e);
    nami_counts_start(e);
}

static void run_list(nami_exec *e, const nami_route *route, int pending)
{
    for (int64_t i = 0; i < route->count; i++)
        carry_out(e, &route->task[i]);
    for (int b = 0; b < e->share.buffers; b++)
        nami_message_wait(e, b);
    if (!e->settled)
        nami_exec_settle(e);
    nami_exec_finish_lane(e);
    nami_timing_progress(e);
    NAMI_CHECK(nami_comm_pending(e->config.comm) == pending);
}

nami_status nami_exec_step(nami_exec *e, int64_t step, double rate,
                           const nami_exec_source *source, nami_exec_result *out)
{
    nami_prof *prof = e->config.prof;
    nami_prof_begin(prof);
    e->train = true;
    e->rate = rate;
    nami_exec_forget(e);
    int pending = nami_comm_pending(e->config.comm);
    begin(e, step, e->config.layout->batch, source);
    run_list(e, e->share.train, pending);
    *out = e->result;
    if (e->status != NAMI_OK)
        return e->status;
    nami_timer timer = nami_timing_begin(e);
    nami_exec_pack(e);
    double start = e->config.backend->host
                       ? timer.start
                       : nami_backend_moment(e->config.backend, timer.first);
    nami_prof_add(prof, NAMI_PHASE_UPDATE, start, nami_now());
    return NAMI_OK;
}

nami_status nami_exec_window(nami_exec *e, int64_t first_step, int count,
                             const double *rate, const nami_exec_source *source,
                             nami_exec_result *out)
{
    for (int i = 0; i < count; i++)
        NAMI_TRY(nami_exec_step(e, first_step + i, rate[i], source, &out[i]));
    return NAMI_OK;
}

nami_status nami_exec_evaluate(nami_exec *e, int64_t index, int64_t samples,
                               const nami_exec_source *source, nami_exec_result *out)
{
    int pending = nami_comm_pending(e->config.comm);
    e->train = false;
    begin(e, index, samples, source);
    run_list(e, e->share.evaluate, pending);
    *out = e->result;
    return e->status;
}
