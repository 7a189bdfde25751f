/* SPDX-License-Identifier: MIT */
/* timing.c - how long actions took: at once on a host backend, from the marks of its lane on a device. */
#include "base/clock.h"
#include "exec/state.h"

nami_timer nami_timing_begin(nami_exec *e)
{
    if (e->config.backend->host)
        return (nami_timer){.start = nami_now()};
    return (nami_timer){.first =
                            nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE)};
}

static void note(nami_exec *e, nami_action a, nami_phase phase, double start,
                 double end, double aside)
{
    nami_prof_add(e->config.prof, phase, start + aside, end);
    if (e->train)
        nami_prof_mark(e->config.prof, &(nami_prof_span){.start = start,
                                                         .end = end,
                                                         .unit = a.unit,
                                                         .stage = a.stage,
                                                         .slice = a.slice,
                                                         .kind = a.kind,
                                                         .copy = a.copy});
}

/* The oldest timing, which is complete. What lies between two of them is waiting. */
static void resolve(nami_exec *e)
{
    const nami_timing *t = &e->timing[e->timed++ % NAMI_TIMINGS];
    double start = nami_backend_moment(e->config.backend, t->first);
    double end = nami_backend_moment(e->config.backend, t->last);
    if (start > e->idle)
        nami_prof_add(e->config.prof, NAMI_PHASE_WAIT, e->idle, start);
    note(e, t->action, t->phase, start, end, t->aside);
    if (t->aside > 0) /* on a host backend the wait itself says so */
        nami_prof_add(e->config.prof, NAMI_PHASE_REDUCE, start, start + t->aside);
    e->idle = end;
}

void nami_timing_progress(nami_exec *e)
{
    while (
        e->timed < e->timings &&
        nami_backend_done(e->config.backend, e->timing[e->timed % NAMI_TIMINGS].last))
        resolve(e);
}

static bool oldest_ready(nami_exec *e, int number)
{
    (void)number;
    nami_timing_progress(e);
    return e->timings - e->timed < NAMI_TIMINGS;
}

static void describe_oldest(const nami_exec *e, int number, nami_text *out)
{
    (void)number;
    nami_text_add(out, "its %s device", e->config.backend->type->name);
}

void nami_timing_end(nami_exec *e, nami_timer t, nami_action a, nami_phase phase,
                     nami_event last)
{
    if (e->config.backend->host) {
        note(e, a, phase, t.start, nami_now(), t.aside);
        return;
    }
    nami_exec_wait(e, &(nami_awaited){.ready = oldest_ready,
                                      .describe = describe_oldest,
                                      .phase = NAMI_PHASE_WAIT});
    e->timing[e->timings++ % NAMI_TIMINGS] = (nami_timing){
        .first = t.first, .last = last, .action = a, .phase = phase, .aside = t.aside};
}
