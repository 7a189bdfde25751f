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

static size_t sum_bytes(const nami_exec *e, int local)
{
    return (size_t)e->share.stage[local].sum_count * e->share.wide;
}

/* How many backward passes a partial sum of one of several copies gets is not known before its REDUCE. */
static int passes_a_partial(const nami_exec *e)
{
    const nami_layout *l = e->config.layout;
    return l->train.place.copies > 1 ? INT_MAX
                                     : nami_recipe_group(&l->train.recipe) /
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
                      sum_bytes(e, local));
}

/* The two uppermost complete sums become one. */
static void combine(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    nami_arg_vector a = {.wide = e->config.layout->wide,
                         .count = e->share.stage[local].sum_count,
                         .a = sum_at(e, local, s->depth - 2),
                         .b = sum_at(e, local, s->depth - 1)};
    if (a.count > 0) /* a stage may have no parameters */
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
    return (size_t)m->slice.count * e->share.wide;
}

/* Of a sum made here, bytes into a gradient buffer; else into the exchange buffer, where own slices begin. */
static size_t place_of(const nami_exec *e, const nami_share_move *m)
{
    int64_t from = m->slice.from - (m->sends ? 0 : e->share.param[m->param].own.from);
    return term_of(e, m)->at + (size_t)from * e->share.wide;
}

void nami_sums_expect(nami_exec *e)
{
    for (int i = 0; i < e->share.moves; i++) {
        const nami_share_move *m = &e->share.move[i];
        if (!m->sends)
            e->exchanged[i] =
                nami_comm_receive(e->config.comm, e->host_exchange + place_of(e, m),
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
                nami_comm_send(e->config.comm, e->host_gradient + place_of(e, m),
                               bytes_of(e, m), m->peer, m->tag);
    }
}

/* Start a piece; returns the reducer's number. */
static int64_t start_piece(nami_exec *e, const nami_piece *p)
{
    const int wide = (int)e->share.wide;
    if (p->gathers)
        return nami_reducer_gather(e->reducer, p->span, p->spans, wide);
    if (e->blueprint.bound != NULL)
        return nami_reducer_scatter(e->reducer, p->span, p->spans, wide);
    return nami_reducer_start(e->reducer, e->host_gradient + p->at,
                              (int64_t)(p->bytes / e->share.wide), wide);
}

/* Start pieces in their order, which all replicas share. */
static void start_pieces(nami_exec *e)
{
    for (; e->started < e->pieces; e->started++) {
        const nami_piece *p = &e->piece[e->started];
        if (!nami_backend_done(e->config.backend, p->copied))
            return;
        if (e->reducer != NULL)
            e->sums[p->local].job = start_piece(e, p);
    }
}

bool nami_sums_progress(nami_exec *e)
{
    start_pieces(e);
    if (e->reducer != NULL && !nami_reducer_poll(e->reducer))
        return false;
    if (e->started < e->pieces)
        return false;
    for (int i = 0; i < e->share.stages; i++) {
        if (e->sums[i].state == NAMI_SUMS_COMPLETE)
            exchange_send(e, i);
    }
    return true;
}

/* Copy to the host what another position waits for of a stage's sums, where replicas do not need all of them. */
static void copy_moves(nami_exec *e, int local)
{
    for (int i = 0; i < e->share.moves; i++) {
        const nami_share_move *m = &e->share.move[i];
        size_t at = place_of(e, m);
        if (m->sends && term_of(e, m)->local == local)
            nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE,
                              e->host_gradient + at, e->gradient + at, bytes_of(e, m));
    }
}

/* Bytes into a gradient buffer of use `u` of a stage, or where its uses end. */
static size_t use_at(const nami_exec *e, int local, int u)
{
    const nami_share_stage *t = &e->share.stage[local];
    return u < t->uses ? t->sum[u] : t->sum_at + sum_bytes(e, local);
}

/* The sums of uses from `first` on that were kept back, which are complete here, go on their way. */
static void send_piece(nami_exec *e, int local, int first)
{
    nami_backend *b = e->config.backend;
    nami_sums *s = &e->sums[local];
    nami_piece *p = &e->piece[e->pieces++];
    const size_t at = use_at(e, local, first);
    *p = (nami_piece){
        .local = local, .at = at, .bytes = use_at(e, local, s->kept_back) - at};
    if (s->span != NULL) {
        p->span = s->span[first];
        p->spans = (int)(s->span[s->kept_back] - s->span[first]);
    }
    if (!b->host && e->reducer != NULL)
        nami_backend_copy(b, NAMI_LANE_COMPUTE, e->host_gradient + at, e->gradient + at,
                          p->bytes);
    p->copied = nami_backend_mark(b, NAMI_LANE_COMPUTE);
    s->kept_back = first;
}

/* Only where micro-batches add to one sum is it complete before all of them have ended. */
void nami_sums_hand(nami_exec *e, int local, int open)
{
    nami_sums *s = &e->sums[local];
    if (e->reducer == NULL || e->share.levels > 1 || open >= s->open ||
        e->config.layout->train.place.copies > 1)
        return;
    s->open = open;
    if (use_at(e, local, s->kept_back) - use_at(e, local, open) >= e->config.bucket)
        send_piece(e, local, open);
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
    if (!e->config.backend->host && e->reducer == NULL)
        copy_moves(e, local);
    send_piece(e, local, 0);
    s->state = NAMI_SUMS_COMPLETE;
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

/* The next sum of a stage grows from the ground. */
static void restart(nami_exec *e, int local)
{
    nami_sums *s = &e->sums[local];
    s->depth = s->added = 0;
    s->state = NAMI_SUMS_GROWING;
    s->open = e->share.stage[local].uses;
    s->kept_back = e->share.stage[local].uses;
}

void nami_sums_begin(nami_exec *e)
{
    e->pieces = e->started = 0;
    for (int i = 0; i < e->share.stages; i++)
        restart(e, i);
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

/* Where the own slice of term `t` of parameter `i` lies. */
static char *term_at(nami_exec *e, int i, int t)
{
    const nami_share_param *h = &e->share.param[i];
    const nami_share_term *term = &h->term[t];
    if (term->local < 0)
        return e->exchange + term->at;
    return e->gradient + term->at + (size_t)h->own.from * e->share.wide;
}

/* On every position in the same order, so all get the same bits: copies in pairs, then uses; of parameters that stage
 * `local` updates, -1: of all. */
static void add_terms(nami_exec *e, int local)
{
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        if ((local >= 0 && h->local != local) || h->own.count == 0)
            continue;
        for (int step = 1; step < h->terms; step *= 2) {
            for (int t = 0; t + step < h->terms; t += 2 * step) {
                nami_arg_vector a = {.wide = e->config.layout->wide,
                                     .count = h->own.count,
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
    add_terms(e, -1);
}

void nami_sums_finish(nami_exec *e, int local)
{
    const nami_share_stage *t = &e->share.stage[local];
    nami_exec_wait(e, &(nami_awaited){.ready = replicas_ready,
                                      .describe = describe_replicas,
                                      .phase = NAMI_PHASE_REDUCE});
    if (!e->config.backend->host && e->reducer != NULL)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, e->gradient + t->sum_at,
                          e->host_gradient + t->sum_at, sum_bytes(e, local));
    add_terms(e, local);
    restart(e, local);
    if (e->started == e->pieces) /* nothing is under way */
        e->pieces = e->started = 0;
}

char *nami_sums_of(nami_exec *e, int i)
{
    return term_at(e, i, 0);
}
