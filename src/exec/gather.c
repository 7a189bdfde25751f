/* SPDX-License-Identifier: MIT */
/* gather.c - slices of replicas: whose sums are whose, and updated weights on their way to the others.
 *
 * As gradients are summed in pieces while the backward goes on, weights are collected in pieces while the update does. On a
 * device the pieces go through the mirror of the gradients, which nobody needs any more.
 */
#include "exec/state.h"

/* Append the slices of parameter `i`, which begins at `data`; returns the end. */
static nami_reducer_span *add_spans(const nami_exec *e, int i, char *data,
                                    nami_reducer_span *out)
{
    const int param = e->share.param[i].param;
    for (int r = 0; r < nami_reducer_size(e->reducer); r++) {
        const nami_slice s = nami_slice_of(&e->blueprint, e->position, r, param);
        if (s.count > 0)
            *out++ = (nami_reducer_span){.data = data + (size_t)s.from * e->share.wide,
                                         .count = s.count,
                                         .member = r};
    }
    return out;
}

/* Whether there are slices to be exchanged. */
static bool slices(const nami_exec *e)
{
    return e->blueprint.bound != NULL && e->reducer != NULL;
}

void nami_spans_open(nami_exec *e)
{
    size_t uses = 0;
    nami_reducer_span *at;
    if (!slices(e))
        return;
    for (int l = 0; l < e->share.stages; l++)
        uses += (size_t)e->share.stage[l].uses;
    /* those of sums, and in front of each update those of weights */
    at = nami_calloc(NAMI_MEM_OTHER,
                     2 * uses * (size_t)nami_reducer_size(e->reducer) + 1, sizeof *at);
    e->span = at;
    for (int l = 0; l < e->share.stages; l++) {
        const nami_share_stage *t = &e->share.stage[l];
        nami_sums *s = &e->sums[l];
        s->span = nami_calloc(NAMI_MEM_OTHER, (size_t)t->uses + 1, sizeof(*s->span));
        for (int u = 0; u < t->uses; u++) {
            s->span[u] = at;
            at = add_spans(e, t->param[u], e->host_gradient + t->sum[u], at);
        }
        s->span[t->uses] = s->weights = at;
        at += (ptrdiff_t)t->uses * nami_reducer_size(e->reducer);
    }
}

void nami_spans_close(nami_exec *e)
{
    for (int l = 0; e->sums != NULL && l < e->share.stages; l++)
        nami_free((void *)e->sums[l].span);
    nami_free(e->span);
}

/* --- weights --- */

/* Where the host sees parameter `i`, updated in `slot`. */
static char *host_weight(nami_exec *e, int i, int slot)
{
    const nami_share_param *h = &e->share.param[i];
    int t = 0;
    if (e->config.backend->host)
        return nami_ring_weight(e, i, slot);
    while (h->term[t].local < 0)
        t++;
    return e->host_gradient + h->term[t].at;
}

/* Copy elements of parameter `i` between a device and what the host sees. */
static void copy(nami_exec *e, int i, int slot, nami_slice s, bool to_host)
{
    const size_t at = (size_t)s.from * e->share.wide;
    char *device = nami_ring_weight(e, i, slot) + at;
    char *host = host_weight(e, i, slot) + at;
    if (s.count > 0 && host != device)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, to_host ? host : device,
                          to_host ? device : host, (size_t)s.count * e->share.wide);
}

/* What is not on its way yet becomes a piece. */
static void send_piece(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    if (s->end == s->unsent)
        return;
    e->piece[e->pieces++] =
        (nami_piece){.local = local,
                     .gathers = true,
                     .span = s->unsent,
                     .spans = (int)(s->end - s->unsent),
                     .copied = nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE)};
    s->unsent = s->end;
    s->last = e->pieces;
}

void nami_gather_begin(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    s->unsent = s->end = s->weights;
    s->last = 0;
}

void nami_gather_add(nami_exec *e, int i, int slot)
{
    const nami_share_param *h = &e->share.param[i];
    nami_sums *s = &e->sums[h->local];
    size_t bytes = 0;
    if (!slices(e))
        return;
    copy(e, i, slot, h->own, true);
    s->end = add_spans(e, i, host_weight(e, i, slot), s->end);
    for (const nami_reducer_span *p = s->unsent; p < s->end; p++)
        bytes += (size_t)p->count * e->share.wide;
    if (bytes >= e->config.bucket)
        send_piece(e, h->local);
}

void nami_gather_end(nami_exec *e, int local)
{
    send_piece(e, local);
    nami_exec_progress(e);
}

static bool weights_ready(nami_exec *e, int local)
{
    const nami_sums *s = &e->sums[local];
    (void)nami_sums_progress(e);
    return e->started >= s->last && nami_reducer_done(e->reducer, s->job);
}

static void describe_weights(const nami_exec *e, int local, nami_text *out)
{
    nami_text_add(out, "the weights of stage %d from its %d replicas",
                  e->share.stage[local].stage, nami_reducer_size(e->reducer));
}

void nami_gather_finish(nami_exec *e, int local, int slot)
{
    if (!slices(e))
        return;
    nami_exec_wait(e, &(nami_awaited){.ready = weights_ready,
                                      .describe = describe_weights,
                                      .number = local,
                                      .phase = NAMI_PHASE_REDUCE});
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        int64_t end = h->own.from + h->own.count;
        if (h->local != local)
            continue;
        copy(e, i, slot, (nami_slice){.count = h->own.from}, false);
        copy(e, i, slot, (nami_slice){.from = end, .count = h->count - end}, false);
    }
}
