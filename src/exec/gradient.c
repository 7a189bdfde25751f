/* SPDX-License-Identifier: MIT */
/* gradient.c - sums of gradients in an order that no layout changes.
 *
 * Micro-batches add to partial sums, partial sums combine in the fixed binary tree (the largest power of two
 * below the count goes left), replicas in the same tree (comm/), copies of the model in pairs, uses of a parameter
 * in model order.
 * A stack does the tree: two complete sums of equal weight on top combine at once, the rest at the end.
 */
#include <limits.h>

#include "exec/state.h"

static char *sum_at(nami_exec *e, int local, int level)
{
    return e->gradient + (size_t)level * e->share.gradient +
           e->share.stage[local].sum_at;
}

/* How many backward passes a partial sum of one of several copies gets is not known before its REDUCE. */
static int passes_a_partial(const nami_exec *e)
{
    const nami_layout *l = e->config.layout;
    return l->train.place.copies > 1 ? INT_MAX
                                     : l->train.recipe.microbatches /
                                           nami_share_leaves(l) * nami_layout_slices(l);
}

char *nami_sums_growing(nami_exec *e, int local)
{
    return e->gradient + (size_t)e->sums[local].depth * e->share.gradient;
}

void nami_sums_open(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    if (s->added > 0)
        return;
    NAMI_CHECK(s->depth < e->share.levels);
    nami_backend_zero(e->config.backend, NAMI_LANE_COMPUTE, sum_at(e, local, s->depth),
                      (size_t)e->share.stage[local].sum_count * e->share.wide);
}

/* The two uppermost complete sums become one. */
static void combine(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    nami_arg_vector a = {.wide = e->config.layout->wide,
                         .count = e->share.stage[local].sum_count,
                         .a = sum_at(e, local, s->depth - 2),
                         .b = sum_at(e, local, s->depth - 1)};
    nami_backend_launch(e->config.backend, NAMI_LANE_COMPUTE, s->add, &a);
    s->weight[s->depth - 2] += s->weight[s->depth - 1];
    s->depth--;
}

/* The growing sum is complete. */
static void complete(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    s->added = 0;
    s->weight[s->depth++] = 1;
    while (s->depth > 1 && s->weight[s->depth - 1] == s->weight[s->depth - 2])
        combine(e, local);
}

void nami_sums_close(nami_exec *e, int local)
{
    if (++e->sums[local].added == passes_a_partial(e))
        complete(e, local);
}

static const nami_share_term *term_of(const nami_exec *e, const nami_share_move *m)
{
    return &e->share.param[m->param].term[m->term];
}

static size_t bytes_of(const nami_exec *e, const nami_share_move *m)
{
    return (size_t)e->share.param[m->param].count * e->share.wide;
}

void nami_sums_expect(nami_exec *e)
{
    for (int i = 0; i < e->share.moves; i++) {
        const nami_share_move *m = &e->share.move[i];
        if (!m->sends)
            e->exchanged[i] =
                nami_comm_receive(e->config.comm, e->host_exchange + term_of(e, m)->at,
                                  bytes_of(e, m), m->peer, m->tag);
    }
}

/* Send the sums of stage `local` that other positions wait for. */
static void exchange_send(nami_exec *e, int local)
{
    e->sums[local].state = NAMI_SUMS_SHARED;
    for (int i = 0; i < e->share.moves; i++) {
        const nami_share_move *m = &e->share.move[i];
        if (m->sends && term_of(e, m)->local == local)
            e->exchanged[i] =
                nami_comm_send(e->config.comm, e->host_gradient + term_of(e, m)->at,
                               bytes_of(e, m), m->peer, m->tag);
    }
}

/* Start sums over replicas in the order of their REDUCEs, which all replicas share. */
static void start_reductions(nami_exec *e)
{
    for (; e->started < e->reached; e->started++) {
        int local = e->order[e->started];
        const nami_share_stage *t = &e->share.stage[local];
        if (!nami_backend_done(e->config.backend, e->sums[local].copied))
            return;
        if (e->reducer != NULL)
            nami_reducer_start(e->reducer, e->host_gradient + t->sum_at, t->sum_count,
                               (int)e->share.wide);
        e->sums[local].state = NAMI_SUMS_REDUCING;
    }
}

bool nami_sums_progress(nami_exec *e)
{
    start_reductions(e);
    if (e->reducer != NULL && !nami_reducer_poll(e->reducer))
        return false;
    for (int i = 0; i < e->share.stages; i++) {
        if (e->sums[i].state == NAMI_SUMS_REDUCING)
            exchange_send(e, i);
    }
    return e->started == e->reached;
}

/* Copy to the host what MPI will read of a stage's sums: all with replicas, else what another position waits for. */
static void copy_to_host(nami_exec *e, int local)
{
    const nami_share_stage *t = &e->share.stage[local];
    nami_backend *b = e->config.backend;
    if (b->host)
        return;
    if (e->reducer != NULL)
        nami_backend_copy(b, NAMI_LANE_COMPUTE, e->host_gradient + t->sum_at,
                          e->gradient + t->sum_at,
                          (size_t)t->sum_count * e->share.wide);
    for (int i = 0; e->reducer == NULL && i < e->share.moves; i++) {
        const nami_share_move *m = &e->share.move[i];
        size_t at = term_of(e, m)->at;
        if (m->sends && term_of(e, m)->local == local)
            nami_backend_copy(b, NAMI_LANE_COMPUTE, e->host_gradient + at,
                              e->gradient + at, bytes_of(e, m));
    }
}

void nami_sums_reduce(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    const nami_layout *l = e->config.layout;
    if (l->train.place.copies > 1) {
        nami_sums_open(e, local); /* a copy may have had no micro-batch at all */
        complete(e, local);
    }
    while (s->depth > 1)
        combine(e, local);
    NAMI_CHECK(s->depth == 1 && s->added == 0 && s->weight[0] == nami_share_leaves(l));
    copy_to_host(e, local);
    s->copied = nami_backend_mark(e->config.backend, NAMI_LANE_COMPUTE);
    s->state = NAMI_SUMS_COMPLETE;
    e->order[e->reached++] = local;
    (void)nami_sums_progress(e);
}

static bool replicas_ready(nami_exec *e, int number)
{
    (void)number;
    return nami_sums_progress(e);
}

static void describe_replicas(const nami_exec *e, int number, nami_text *out)
{
    (void)number;
    nami_text_add(out, "the gradient sum of its %d replicas",
                  nami_reducer_size(e->reducer));
}

static bool exchange_ready(nami_exec *e, int number)
{
    return nami_comm_done(e->config.comm, &e->exchanged[number]);
}

static void describe_exchange(const nami_exec *e, int number, nami_text *out)
{
    const nami_share_move *m = &e->share.move[number];
    nami_text_add(out, "the gradient of %s %s rank %d",
                  e->config.model->param[e->share.param[m->param].param].name,
                  m->sends ? "to" : "from", m->peer);
}

/* What the host changed or received goes to the device before launches to come. */
static void return_to_device(nami_exec *e)
{
    if (e->config.backend->host)
        return;
    if (e->reducer != NULL)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->gradient,
                          e->host_gradient, e->share.gradient);
    if (e->share.exchange > 0)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->exchange,
                          e->host_exchange, e->share.exchange);
}

/* Where term `t` of parameter `i` lies. */
static char *term_at(nami_exec *e, int i, int t)
{
    const nami_share_term *term = &e->share.param[i].term[t];
    return (term->local >= 0 ? e->gradient : e->exchange) + term->at;
}

/* On every position in the same order, so all get the same bits: copies in pairs, then uses. */
static void add_terms(nami_exec *e)
{
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        for (int step = 1; step < h->terms; step *= 2) {
            for (int t = 0; t + step < h->terms; t += 2 * step) {
                nami_arg_vector a = {.wide = e->config.layout->wide,
                                     .count = h->count,
                                     .a = term_at(e, i, t),
                                     .b = term_at(e, i, t + step)};
                nami_backend_launch(e->config.backend, NAMI_LANE_COMPUTE,
                                    e->add_terms[i], &a);
            }
        }
    }
}

void nami_sums_settle(nami_exec *e)
{
    nami_exec_wait(e, &(nami_awaited){.ready = replicas_ready,
                                      .describe = describe_replicas,
                                      .phase = NAMI_PHASE_REDUCE});
    for (int i = 0; i < e->share.moves; i++)
        nami_exec_wait(e, &(nami_awaited){.ready = exchange_ready,
                                          .describe = describe_exchange,
                                          .number = i,
                                          .phase = NAMI_PHASE_WAIT});
    return_to_device(e);
    add_terms(e);
}

char *nami_sums_of(nami_exec *e, int i)
{
    return term_at(e, i, 0);
}
