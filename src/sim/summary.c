/* SPDX-License-Identifier: MIT */
/* summary.c - what a simulation says: makespan, bubble and phases, messages, activations and weights held. */
#include <math.h>

#include "base/memory.h"
#include "sched/staleness.h"
#include "sched/version.h"
#include "sim/inner.h"

void nami_prediction_open(int positions, nami_prediction *out)
{
    size_t n = (size_t)positions;
    *out = (nami_prediction){0};
    out->idle = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->busy = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->peak = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->weights = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->sent = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
    out->received = nami_calloc(NAMI_MEM_OTHER, n, sizeof(double));
}

void nami_prediction_free(nami_prediction *p)
{
    nami_free(p->idle);
    nami_free(p->busy);
    nami_free(p->peak);
    nami_free(p->weights);
    nami_free(p->sent);
    nami_free(p->received);
    nami_timeline_free(&p->timeline);
    *p = (nami_prediction){0};
}

/* Weights of each stage in shares of a stage: versions, and one more where forwards read a prediction. */
static double *weights_of(const nami_schedule *s)
{
    size_t stages = (size_t)s->place.stages, units = (size_t)s->recipe.microbatches;
    double *held = nami_alloc(NAMI_MEM_OTHER, stages * sizeof *held);
    int *ring = nami_alloc(NAMI_MEM_OTHER, stages * sizeof *ring);
    int32_t *delay = nami_alloc(NAMI_MEM_OTHER, 2 * units * sizeof *delay);
    nami_versions_count(s, ring);
    for (int i = 0; i < s->place.stages; i++) {
        held[i] = ring[i];
        if (s->recipe.weights != NAMI_WEIGHTS_PREDICT)
            continue;
        int32_t most = 0;
        nami_schedule_delays(s, i, delay, delay + units);
        for (size_t u = 0; u < units; u++)
            most = delay[u] > most ? delay[u] : most;
        held[i] += most > 0;
    }
    nami_free(delay);
    nami_free(ring);
    return held;
}

static double weights_on(const nami_place *p, const double *stage, int position)
{
    double held = 0.0;
    for (int64_t i = 0; i < (int64_t)p->copies * p->stages; i++)
        held += p->position[i] == position ? stage[i % p->stages] : 0.0;
    return held;
}

/* Computation of a position in the time when the pipeline is full. */
static double busy_while_full(const nami_sim *m, int position)
{
    const nami_list *l = &m->s->list[position];
    double busy = 0.0;
    for (int64_t i = 0; i < l->count; i++) {
        nami_kind kind = l->item[i].kind;
        if (!nami_semantics_of(kind)->compute && kind != NAMI_UPDATE)
            continue;
        double start = m->start[position][i],
               end = start + nami_sim_duration(m, l->item[i]);
        busy += fmax(0.0, fmin(end, m->emptying) - fmax(start, m->full));
    }
    return busy;
}

/* Ranks among which a position's samples are split. */
static int ranks_on(const nami_sim *m, int position)
{
    return m->s->recipe.split == NAMI_SPLIT_SAMPLE ? m->s->place.replicas[position] : 1;
}

/* Fill, steady state and drain. */
static void summarise_phases(const nami_sim *m, double first, double last,
                             nami_prediction *out)
{
    if (m->full < 0.0 || m->emptying <= m->full)
        return; /* forwards only, or never full */
    double steady = m->emptying - m->full, idle = 0.0, ranks = 0.0;
    for (int p = 0; p < m->s->place.positions; p++) {
        idle += ranks_on(m, p) * (steady - busy_while_full(m, p));
        ranks += ranks_on(m, p);
    }
    out->fill = (m->full - first) / m->scale;
    out->steady = steady / m->scale;
    out->drain = (last - m->emptying) / m->scale;
    out->steady_bubble = fmax(0.0, idle / (ranks * steady)); /* sums are rounded */
}

/* Messages of all ranks: a value goes from each rank to those with samples in common. */
static int64_t messages_of(const nami_sim *m)
{
    const nami_place *p = &m->s->place;
    int64_t messages = 0, each = m->s->recipe.slices;
    if (m->s->recipe.split != NAMI_SPLIT_SAMPLE)
        return nami_schedule_messages(m->s);
    if (m->s->purpose == NAMI_PURPOSE_TRAIN)
        each *= 2;
    for (int s = 0; s + 1 < p->stages; s++) {
        if (nami_place_of(p, 0, s) != nami_place_of(p, 0, s + 1))
            messages += each * m->s->recipe.microbatches *
                        nami_place_pairs(nami_sim_ranks(m, 0, s),
                                         nami_sim_ranks(m, 0, s + 1), m->cost->samples);
    }
    return messages;
}

void nami_sim_summarise(const nami_sim *m, nami_prediction *out)
{
    int positions = m->s->place.positions;
    double first = INFINITY, last = 0.0, idle = 0.0, ranks = 0.0;
    double chunks = (double)m->s->place.stages / positions;
    double *weights = weights_of(m->s);
    for (int p = 0; p < positions; p++) {
        first = fmin(first, m->place[p].first);
        last = fmax(last, m->place[p].last);
    }
    double makespan = last > first ? last - first : 0.0;
    for (int p = 0; p < positions; p++) {
        const nami_sim_place *q = &m->place[p];
        double span = q->last > q->first ? q->last - q->first : 0.0;
        idle += ranks_on(m, p) * (makespan - q->busy);
        ranks += ranks_on(m, p);
        out->idle[p] = (makespan - q->busy) / m->scale;
        out->busy[p] = q->busy / m->scale;
        if (span > 0.0)
            out->span_bubble = fmax(out->span_bubble, (span - q->busy) / span);
        out->peak[p] = (double)nami_schedule_held(m->s, p) /
                       (chunks * m->s->recipe.slices * ranks_on(m, p));
        out->weights[p] = weights_on(&m->s->place, weights, p) / chunks;
    }
    nami_free(weights);
    out->makespan = makespan / m->scale;
    out->bubble = makespan > 0.0 ? idle / (ranks * makespan) : 0.0;
    out->messages = messages_of(m);
    summarise_phases(m, first, last, out);
    nami_sim_critical(m, &out->critical);
}
