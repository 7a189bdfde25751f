/* SPDX-License-Identifier: MIT */
/* meter.c - what steps cost over all ranks. */
#include "train/meter.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "train/gap.h"

/* What a rank says of its step. */
typedef struct packet {
    int64_t wishes;
    double first, last, busy, flops, seconds;
} packet;

/* Column of a kind in the table of stage times, -1: none. */
static int column_of(int kind)
{
    if (kind == NAMI_F)
        return 0;
    if (kind == NAMI_B || kind == NAMI_BI)
        return 1;
    return kind == NAMI_BW ? 2 : -1;
}

/* Seconds by which this rank's clock is ahead of rank 0's: nothing on one node. */
static double measure_offset(nami_comm *c)
{
    enum { ROUNDS = 9 };
    int ranks = nami_comm_size(c), rank = nami_comm_rank(c);
    nami_comm_place *place = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *place);
    double *clock = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *clock);
    double best = INFINITY, found = 0;
    nami_comm_places(c, place);
    bool same = !strcmp(place[rank].host, place[0].host);
    for (int i = 0; i < ROUNDS; i++) {
        double before = nami_now();
        nami_comm_barrier(c);
        double after = nami_now();
        nami_comm_gather(c, &after, sizeof after, clock);
        if (after - before < best) { /* the shortest wait is the closest meeting */
            best = after - before;
            found = after - clock[0];
        }
    }
    nami_free(clock);
    nami_free(place);
    return same ? 0 : found;
}

/* Send `bytes` to `peer` and get them back, `rounds` times; seconds of one way. */
static double ping(nami_comm *c, void *data, size_t bytes, int peer, bool first,
                   int rounds)
{
    double best = INFINITY;
    for (int i = 0; i < rounds; i++) {
        double start = nami_now();
        for (int half = 0; half < 2; half++) {
            bool sends = first == (half == 0);
            nami_request r = sends ? nami_comm_send(c, data, bytes, peer, 0)
                                   : nami_comm_receive(c, data, bytes, peer, 0);
            nami_patience patience = {0};
            while (!nami_comm_done(c, &r))
                nami_patience_wait(c, &patience);
        }
        best = fmin(best, (nami_now() - start) / 2);
    }
    return best;
}

/* Slowest hop of a boundary between neighbouring positions. Collective. */
static double measure_hop(nami_job *job)
{
    nami_comm *c = job->comm;
    const nami_layout *l = &job->layout;
    int position = nami_job_position(job), replica = nami_job_replica(job);
    size_t bytes = (size_t)(l->micro * nami_layout_crossing(l, job->model)) *
                   nami_dtype_size(l->act);
    void *data = nami_calloc(NAMI_MEM_OTHER, 1, bytes);
    double worst = 0;
    for (int phase = 0; phase < 2; phase++) { /* even pairs, then odd ones */
        bool first = position % 2 == phase;
        int other = first ? position + 1 : position - 1;
        nami_comm_barrier(c);
        if (other >= 0 && other < l->recipe.positions &&
            replica < nami_layout_replicas(l, other))
            worst = fmax(worst, ping(c, data, bytes,
                                     nami_layout_rank(l, other, replica), first, 10));
    }
    nami_free(data);
    return nami_comm_max(c, worst);
}

static double sum_over_ranks(nami_comm *c, double own)
{
    int ranks = nami_comm_size(c);
    double *all = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *all), sum = 0;
    nami_comm_gather(c, &own, sizeof own, all);
    for (int r = 0; r < ranks; r++)
        sum += all[r];
    nami_free(all);
    return sum;
}

/* Tables for the stages of the layout. */
static void make_tables(nami_meter *m, const nami_job *job)
{
    size_t cells = 3 * (size_t)nami_layout_stages(&job->layout);
    m->stage = nami_calloc(NAMI_MEM_OTHER, cells, sizeof(double));
    m->stages = nami_calloc(NAMI_MEM_OTHER, cells, sizeof(double));
}

void nami_meter_turn(nami_meter *m, nami_job *job)
{
    nami_meter before = *m;
    nami_meter_close(m);
    m->peak = before.peak;
    m->offset = before.offset;
    m->flops_before = before.flops_before;
    make_tables(m, job);
    m->hop = measure_hop(job);
    nami_comm_barrier(job->comm);
}

void nami_meter_open(nami_meter *m, nami_job *job)
{
    *m = (nami_meter){0};
    make_tables(m, job);
    m->offset = measure_offset(job->comm);
    m->hop = measure_hop(job);
    nami_comm_barrier(job->comm);
    m->peak = sum_over_ranks(job->comm,
                             nami_backend_peak(job->backend, job->layout.act, 0.1));
}

void nami_meter_close(nami_meter *m)
{
    nami_free(m->stage);
    nami_free(m->stages);
    *m = (nami_meter){0};
}

/* Read the spans of this rank's step. */
static packet own_packet(nami_meter *m, const nami_prof *prof, bool steady)
{
    packet p = {.first = INFINITY, .last = -INFINITY};
    for (int i = 0; i < nami_prof_kept(prof); i++) {
        const nami_prof_span *span = &prof->span[i];
        int column = column_of(span->kind);
        if (!nami_semantics_of((nami_kind)span->kind)->compute)
            continue;
        p.first = fmin(p.first, span->start - m->offset);
        p.last = fmax(p.last, span->end - m->offset);
        p.busy += span->end - span->start;
        if (steady && column >= 0) {
            m->stage[3 * span->stage + column] += span->end - span->start;
            m->stages[3 * span->stage + column] += 1;
        }
    }
    p.flops = prof->flops - m->flops_before;
    m->flops_before = prof->flops;
    return p;
}

static void join(const packet *all, int ranks, int count, double peak,
                 nami_meter_step *out)
{
    double first = INFINITY, last = -INFINITY, busy = 0;
    *out = (nami_meter_step){.count = count, .seconds = all[0].seconds / count};
    for (int r = 0; r < ranks; r++) {
        out->wishes |= (int)all[r].wishes;
        out->flops += all[r].flops;
        first = fmin(first, all[r].first);
        last = fmax(last, all[r].last);
        busy += all[r].busy;
    }
    out->makespan = last - first;
    out->idle = ranks * out->makespan - busy;
    out->bubble = out->idle / (ranks * out->makespan);
    out->share = out->flops / (all[0].seconds * peak);
}

void nami_meter_end(nami_meter *m, nami_job *job, const nami_meter_window *w,
                    nami_meter_step *out)
{
    int ranks = nami_comm_size(job->comm);
    packet own = own_packet(m, &job->prof, w->steady);
    packet *all = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *all);
    own.wishes = w->wishes;
    own.seconds = nami_now() - w->start;
    nami_comm_gather(job->comm, &own, sizeof own, all);
    join(all, ranks, w->count, m->peak, out);
    nami_free(all);
    if (!w->steady)
        return;
    m->steps += w->count;
    m->seconds += out->seconds * w->count;
    m->makespan += out->makespan;
    m->idle += out->idle;
    m->flops += out->flops;
    m->tokens += w->tokens;
}

/* Parts of a micro-batch that stage `s` works on one by one, or its ranks beside each other. */
static int parts_of(const nami_layout *l, int s)
{
    const nami_place *p = &l->train.place;
    int ranks = l->recipe.split == NAMI_SPLIT_SAMPLE ? p->replicas[p->position[s]] : 1;
    return ranks * nami_layout_slices(l);
}

/* Mean times of every stage over the ranks that ran it, of a whole micro-batch, into mean[3][stages]. */
static void mean_stages(const nami_meter *m, nami_comm *c, const nami_layout *l,
                        double *mean)
{
    int stages = nami_layout_stages(l);
    size_t cells = 3 * (size_t)stages, ranks = (size_t)nami_comm_size(c);
    double *sums = nami_calloc(NAMI_MEM_OTHER, cells * ranks, sizeof *sums);
    double *counts = nami_calloc(NAMI_MEM_OTHER, cells * ranks, sizeof *counts);
    nami_comm_gather(c, m->stage, cells * sizeof *sums, sums);
    nami_comm_gather(c, m->stages, cells * sizeof *counts, counts);
    for (size_t i = 0; i < cells; i++) {
        double sum = 0, count = 0;
        for (size_t r = 0; r < ranks; r++) {
            sum += sums[r * cells + i];
            count += counts[r * cells + i];
        }
        mean[i % 3 * (size_t)stages + i / 3] =
            count > 0 ? parts_of(l, (int)(i / 3)) * sum / count : 0;
    }
    nami_free(counts);
    nami_free(sums);
}

/* What a device made leaves it at once, whatever the lists have in between: then they are simulated without messages
 * of their own. */
static nami_status simulate(const nami_job *job, const nami_cost *cost,
                            nami_prediction *out)
{
    nami_schedule bare = {0};
    if (job->backend->host)
        return nami_simulate(&job->layout.train, cost, true, out);
    nami_status status =
        nami_schedule_generate(&job->layout.train.recipe, NAMI_PURPOSE_TRAIN, &bare);
    if (status == NAMI_OK)
        status = nami_simulate(&bare, cost, true, out);
    nami_schedule_free(&bare);
    return status;
}

void nami_meter_predict(const nami_meter *m, nami_job *job, nami_prediction *out)
{
    int stages = nami_layout_stages(&job->layout);
    double *mean = nami_calloc(NAMI_MEM_OTHER, 3 * (size_t)stages, sizeof *mean);
    *out = (nami_prediction){.bubble = NAN};
    mean_stages(m, job->comm, &job->layout, mean);
    nami_cost cost = {.stage_f = mean,
                      .stage_bi = mean + stages,
                      .stage_bw = mean + 2 * (size_t)stages,
                      .latency = m->step_hop > 0 ? m->step_hop : m->hop,
                      .apart = !job->backend->host};
    if (m->steps > 0 && simulate(job, &cost, out) != NAMI_OK) {
        nami_prediction_free(out);
        *out = (nami_prediction){.bubble = NAN};
    }
    nami_fail_clear();
    nami_free(mean);
}

static nami_span to_span(const nami_prof_span *s, double zero)
{
    return (nami_span){.action = {.kind = s->kind,
                                  .copy = s->copy,
                                  .stage = s->stage,
                                  .slice = s->slice,
                                  .unit = s->unit},
                       .start = s->start - zero,
                       .end = s->end - zero};
}

void nami_meter_timeline(nami_meter *m, nami_job *job, nami_timeline *out)
{
    nami_comm *c = job->comm;
    int ranks = nami_comm_size(c), kept = nami_prof_kept(&job->prof);
    int most = (int)nami_comm_max(c, kept);
    size_t bytes = (size_t)most * sizeof(nami_prof_span);
    nami_prof_span *own = nami_calloc(NAMI_MEM_OTHER, 1, bytes + 1);
    nami_prof_span *all = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, bytes + 1);
    int *count = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *count);
    double zero = INFINITY;
    for (int i = 0; i < kept; i++) {
        own[i] = job->prof.span[i];
        own[i].start -= m->offset;
        own[i].end -= m->offset;
        zero = fmin(zero, own[i].start);
    }
    zero = nami_comm_min(c, zero);
    nami_comm_gather(c, &kept, sizeof kept, count);
    if (bytes > 0)
        nami_comm_gather(c, own, bytes, all);
    *out = (nami_timeline){
        .positions = ranks,
        .span = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *out->span),
        .count = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *out->count)};
    for (int r = 0; r < ranks; r++) {
        out->count[r] = count[r];
        out->span[r] =
            nami_calloc(NAMI_MEM_OTHER, (size_t)count[r] + 1, sizeof **out->span);
        for (int i = 0; i < count[r]; i++)
            out->span[r][i] = to_span(&all[(size_t)r * (size_t)most + (size_t)i], zero);
    }
    if (nami_comm_rank(c) == 0)
        m->step_hop = nami_gap_hop(out, &job->layout);
    nami_comm_broadcast(c, &m->step_hop, sizeof m->step_hop, 0);
    nami_free(count);
    nami_free(all);
    nami_free(own);
}
