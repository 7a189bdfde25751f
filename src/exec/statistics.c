/* SPDX-License-Identifier: MIT */
/* statistics.c - numbers that replicas sum in the middle of an action: batch norm over replicas.
 *
 * The action waits for the same action of the other replicas. That closes no circle: all replicas of a position carry out
 * one list, and the lists are proven to finish in some order of all actions that lets each of them wait for earlier ones
 * alone. By induction over that order every replica comes to the action, and the last one to come lets all go on.
 * (docs/design/0017)
 */
#include "base/clock.h"
#include "exec/state.h"

enum { BUCKET = 1 << 14 }; /* bytes summed at a time: the statistics of 1024 channels */

nami_status nami_statistics_open(nami_exec *e)
{
    const nami_layout *l = e->config.layout;
    if (!l->shares)
        return NAMI_OK;
    bool several = nami_layout_replicas(l, e->position) > 1;
    return nami_reducer_open(e->config.comm, several ? e->position : -1, BUCKET, 0,
                             &e->sharing);
}

void nami_statistics_close(nami_exec *e)
{
    nami_reducer_close(e->sharing);
}

static bool sum_ready(nami_exec *e, int number)
{
    (void)number;
    return nami_reducer_poll(e->sharing);
}

static void describe_sum(const nami_exec *e, int number, nami_text *out)
{
    (void)number;
    nami_text_add(out, "the batch statistics of ");
    nami_action_print(e->shares, out);
    nami_text_add(out, " from its %d replicas", nami_reducer_size(e->sharing));
}

/* Sum `count` doubles of host memory over the replicas. */
static void sum(nami_exec *e, double *x, int64_t count)
{
    nami_reducer_start(e->sharing, x, count, sizeof *x);
    nami_exec_wait(e, &(nami_awaited){.ready = sum_ready,
                                      .describe = describe_sum,
                                      .phase = NAMI_PHASE_REDUCE});
}

void nami_statistics_share(nami_exec *e, const nami_task *task, const nami_walk *w,
                           nami_timer *timer)
{
    nami_backend *b = e->config.backend;
    int64_t count;
    double *x = nami_walk_shared(w, &count);
    if (x == NULL)
        return;
    const size_t bytes = (size_t)count * sizeof *x;
    e->shares = task->action;
    if (!b->host) {
        nami_backend_copy(b, NAMI_LANE_COMPUTE, e->host_shared, x, bytes);
        nami_exec_finish_lane(e);
    }
    const double start = nami_now();
    sum(e, b->host ? x : e->host_shared, count);
    timer->aside += nami_now() - start;
    if (!b->host)
        nami_backend_copy(b, NAMI_LANE_COMPUTE, x, e->host_shared, bytes);
}
