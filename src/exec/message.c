/* SPDX-License-Identifier: MIT */
/* message.c - values that leave for, or come from, another position.
 *
 * On a host backend MPI reads and writes the buffers themselves. On a device each has a mirror on the host. Copies
 * run on lanes of their own, beside the computation, and begin when the launches that use the buffer are done.
 */
#include "exec/state.h"

/* Bytes of the own micro-batch. A stage's input comes in by RECV_F and its gradient leaves by SEND_B; the other two are
 * of its output. */
static size_t bytes_of(const nami_exec *e, const nami_message *m)
{
    const bool input = m->action.kind == NAMI_RECV_F || m->action.kind == NAMI_SEND_B;
    return e->share.crossing[m->action.stage + (input ? 0 : 1)];
}

/* Post one message for each rank that holds some of the samples. */
static void post(nami_exec *e, nami_message *m, bool sends)
{
    nami_comm *c = e->config.comm;
    const size_t sample = bytes_of(e, m) / (size_t)e->share.samples.micro;
    for (int i = 0; i < m->parts; i++) {
        const nami_layout_part *part = &m->part[i];
        char *at = (char *)m->host + (size_t)part->first * sample;
        const size_t bytes = (size_t)part->count * sample;
        m->request[i] = sends ? nami_comm_send(c, at, bytes, part->rank, m->tag)
                              : nami_comm_receive(c, at, bytes, part->rank, m->tag);
    }
    m->transit = sends ? NAMI_SENT : NAMI_EXPECTED;
}

static bool posted_done(nami_exec *e, nami_message *m)
{
    bool done = true;
    for (int i = 0; i < m->parts; i++)
        done = nami_comm_done(e->config.comm, &m->request[i]) && done;
    return done;
}

void nami_message_start(nami_exec *e, const nami_task *task, int b)
{
    nami_message *m = &e->message[b];
    NAMI_CHECK(m->transit == NAMI_AT_REST);
    m->action = task->action;
    m->part = e->share.part + (size_t)task->peer * (size_t)e->share.parts_most;
    m->parts = e->share.parts[task->peer];
    m->tag = task->tag;
    if (nami_semantics_of(task->action.kind)->receives) {
        post(e, m, false);
    } else if (m->host == m->data) {
        post(e, m, true);
    } else {
        nami_backend_after(e->config.backend, NAMI_LANE_OUT, m->busy);
        m->event = nami_backend_copy(e->config.backend, NAMI_LANE_OUT, m->host, m->data,
                                     bytes_of(e, m));
        m->transit = NAMI_LEAVING;
    }
}

/* Copy to the device once nothing that was launched needs the buffer as it is: other copies need not wait for that. */
static void enter(nami_exec *e, nami_message *m)
{
    nami_backend *b = e->config.backend;
    if (!nami_backend_done(b, m->busy))
        return;
    nami_backend_copy(b, NAMI_LANE_IN, m->data, m->host, bytes_of(e, m));
    m->event = nami_backend_mark(b, NAMI_LANE_IN);
    m->transit = NAMI_ENTERING;
}

/* Take buffer `b` as far as it can go now; whether it is at rest. */
static bool advance(nami_exec *e, int b)
{
    nami_message *m = &e->message[b];
    nami_backend *backend = e->config.backend;
    if (m->transit == NAMI_LEAVING && nami_backend_done(backend, m->event))
        post(e, m, true);
    if (m->transit == NAMI_SENT && posted_done(e, m))
        m->transit = NAMI_AT_REST;
    if (m->transit == NAMI_EXPECTED && posted_done(e, m))
        m->transit = m->host == m->data ? NAMI_AT_REST : NAMI_ARRIVED;
    if (m->transit == NAMI_ARRIVED)
        enter(e, m);
    if (m->transit == NAMI_ENTERING && nami_backend_done(backend, m->event))
        m->transit = NAMI_AT_REST;
    return m->transit == NAMI_AT_REST;
}

void nami_message_progress(nami_exec *e)
{
    for (int b = 0; b < e->share.buffers; b++)
        (void)advance(e, b);
}

/* "RECV_F of stage 2 micro-batch 7 from rank 1", with slices "micro-batch 7/3" */
static void describe(const nami_exec *e, int b, nami_text *out)
{
    const nami_message *m = &e->message[b];
    const nami_semantics *is = nami_semantics_of(m->action.kind);
    nami_text_add(out, "%s of stage %d micro-batch %d", is->name, m->action.stage,
                  m->action.unit);
    if (m->action.slice > 0)
        nami_text_add(out, "/%d", m->action.slice);
    int late = 0; /* the first part that is not there */
    while (late + 1 < m->parts && m->request[late] == 0)
        late++;
    nami_text_add(out, " %s rank %d", is->receives ? "from" : "to", m->part[late].rank);
}

void nami_message_wait(nami_exec *e, int b)
{
    if (b < 0)
        return;
    nami_exec_wait(e, &(nami_awaited){.ready = advance,
                                      .describe = describe,
                                      .number = b,
                                      .phase = NAMI_PHASE_WAIT});
}

static bool usable(nami_exec *e, int b)
{
    return advance(e, b) || e->message[b].transit == NAMI_ENTERING;
}

void nami_message_use(nami_exec *e, int b)
{
    if (b < 0)
        return;
    nami_exec_wait(e, &(nami_awaited){.ready = usable,
                                      .describe = describe,
                                      .number = b,
                                      .phase = NAMI_PHASE_WAIT});
    if (e->message[b].transit == NAMI_ENTERING)
        nami_backend_after(e->config.backend, NAMI_LANE_COMPUTE, e->message[b].event);
}
