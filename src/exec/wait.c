/* SPDX-License-Identifier: MIT */
/* wait.c - waiting: politely, with everything moving, and not for ever. */
#include "base/clock.h"
#include "base/memory.h"
#include "exec/state.h"

void nami_exec_progress(nami_exec *e)
{
    nami_comm_progress(e->config.comm);
    if (e->reducer != NULL || !e->config.backend->host)
        (void)nami_sums_progress(e);
    if (!e->config.backend->host) {
        nami_message_progress(e);
        nami_timing_progress(e);
    }
}

static _Noreturn void stalled(const nami_exec *e, const nami_awaited *w)
{
    nami_text text = {0};
    w->describe(e, w->number, &text);
    nami_fail_clear();
    nami_die(
        nami_fail(NAMI_ELOST,
                  "rank %d (position %d) waits for %s, for %.0f s without progress in "
                  "step %lld",
                  e->rank, e->position, nami_text_get(&text), e->config.stall_seconds,
                  (long long)e->step));
}

/* A process that was stopped and goes on sees the clock jump; that is not waiting. */
enum { JUMP = 1 };

static void wait_longer(nami_exec *e, const nami_awaited *w, double start)
{
    nami_patience patience = {0};
    double waited = 0, last = start;
    int64_t activity = nami_comm_activity(e->config.comm);
    while (!w->ready(e, w->number)) {
        nami_exec_progress(e);
        nami_patience_wait(e->config.comm, &patience);
        double now = nami_now();
        waited += now - last < JUMP ? now - last : 0;
        last = now;
        if (activity != nami_comm_activity(e->config.comm)) /* a long sum moves on */
            waited = 0;
        activity = nami_comm_activity(e->config.comm);
        if (e->config.stall_seconds > 0 && waited > e->config.stall_seconds)
            stalled(e, w);
    }
}

void nami_exec_wait(nami_exec *e, const nami_awaited *w)
{
    if (w->ready(e, w->number))
        return;
    double start = nami_now();
    wait_longer(e, w, start);
    if (e->config.backend
            ->host) /* of a device it is the gaps that count, see timing.c */
        nami_prof_add(e->config.prof, w->phase, start, nami_now());
}

static bool lane_ready(nami_exec *e, int number)
{
    (void)number;
    return nami_backend_done(e->config.backend, e->lane_end);
}

static void describe_lane(const nami_exec *e, int number, nami_text *out)
{
    (void)number;
    nami_text_add(out, "its %s device", e->config.backend->type->name);
}

void nami_exec_finish_lane(nami_exec *e)
{
    e->lane_end = nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE);
    nami_exec_wait(e, &(nami_awaited){.ready = lane_ready,
                                      .describe = describe_lane,
                                      .phase = NAMI_PHASE_WAIT});
}
