/* SPDX-License-Identifier: MIT */
/* uneven_stage.c - time and bytes of one stage; the formulas are in uneven.h. */
#include "plan/uneven_stage.h"

#include <math.h>

#include "base/memory.h"

static nami_chain_link mix(const nami_chain_link *a, const nami_chain_link *b,
                           bool better)
{
    double (*low)(double, double) = better ? fmin : fmax;
    double (*high)(double, double) = better ? fmax : fmin;
    return (nami_chain_link){.latency = low(a->latency, b->latency),
                             .rate = high(a->rate, b->rate),
                             .reduce = high(a->reduce, b->reduce)};
}

void nami_uneven_model_make(const nami_uneven_request *r, nami_uneven_model *out)
{
    int n = r->chain->blocks;
    bool one = r->ranks_per_node == 0 || r->ranks_per_node >= r->ranks;
    const nami_chain_link *across = one ? &r->inside : &r->across;
    *out = (nami_uneven_model){.r = r,
                               .blocks = n,
                               .alike = one,
                               .best = mix(&r->inside, across, true),
                               .worst = mix(&r->inside, across, false)};
    nami_chain_sums_make(r->chain, &out->sums);
    out->peak =
        nami_calloc(NAMI_MEM_OTHER, (size_t)n * (size_t)(n + 1), sizeof *out->peak);
    for (int a = 0; a < n; a++) {
        double transient = 0, between = 0;
        for (int b = a + 1; b <= n; b++) {
            transient = fmax(transient, r->chain->block[b - 1].transient);
            between = b - 1 > a ? fmax(between, r->chain->block[b - 2].output) : 0;
            out->peak[(int64_t)a * (n + 1) + b] = transient + between;
        }
    }
}

void nami_uneven_model_free(nami_uneven_model *m)
{
    nami_chain_sums_free(&m->sums);
    nami_free(m->peak);
}

static double span(const double *sum, const nami_uneven_stage *s)
{
    return sum[s->last] - sum[s->first];
}

/* The part of a mini-batch that the busiest rank has. */
static double share_of(const nami_uneven_model *m, int replicas)
{
    double batch = (double)m->r->chain->samples;
    return batch > 0 ? ceil(batch / replicas) / batch : 1.0 / replicas;
}

static double bytes_in(const nami_uneven_model *m, const nami_uneven_stage *s)
{
    return s->first > 0 ? m->r->chain->block[s->first - 1].output : 0;
}

static double bytes_out(const nami_uneven_model *m, const nami_uneven_stage *s)
{
    return s->last < m->blocks ? m->r->chain->block[s->last - 1].output : 0;
}

/* The links of a stage: to the stage before, behind, and among its replicas. */
typedef struct links {
    const nami_chain_link *link[NAMI_UNEVEN_LINKS];
    bool across[NAMI_UNEVEN_LINKS];
} links;

static links links_of(const nami_uneven_model *m, const nami_uneven_stage *s)
{
    links l;
    for (int i = 0; i < NAMI_UNEVEN_LINKS; i++) {
        bool across = m->view == NAMI_LINKS_REAL && !m->alike && s->across[i];
        l.across[i] = across;
        l.link[i] = m->view == NAMI_LINKS_BEST    ? &m->best
                    : m->view == NAMI_LINKS_WORST ? &m->worst
                    : across                      ? &m->r->across
                                                  : &m->r->inside;
    }
    return l;
}

static double message(const nami_chain_link *l, double bytes)
{
    return bytes > 0 ? l->latency + bytes / l->rate : 0;
}

/* Seconds that a byte of gradients takes in a sum over r replicas. */
static double sum_rate(const nami_chain_link *l, int r)
{
    return r > 1 ? 2.0 * (r - 1) / r / l->reduce : 0;
}

/* A load of a rank: its part of a mini-batch, and the replicas that sum. A stage has those of its replicas; a bound for
 * many numbers of replicas has the least of both. */
typedef struct load {
    double share;
    int replicas;
} load;

/* Seconds of the links; *transfer and *sums those of the two kinds alone. */
static double link_seconds(const nami_uneven_model *m, const nami_uneven_stage *s,
                           load w, double *transfer, double *sums)
{
    links l = links_of(m, s);
    double class[2] = {0};
    double in = message(l.link[NAMI_UNEVEN_IN], w.share * bytes_in(m, s));
    double out = message(l.link[NAMI_UNEVEN_OUT], w.share * bytes_out(m, s));
    *sums = sum_rate(l.link[NAMI_UNEVEN_SUM], w.replicas) * span(m->sums.parameter, s);
    *transfer = in + out;
    if (m->view == NAMI_LINKS_BEST &&
        !m->alike) /* whichever way they share two links */
        return fmax(fmax(in, out), fmax(*sums, (in + out + *sums) / 2));
    class[l.across[NAMI_UNEVEN_IN]] += in;
    class[l.across[NAMI_UNEVEN_OUT]] += out;
    class[l.across[NAMI_UNEVEN_SUM]] += *sums;
    return fmax(class[0], class[1]);
}

static double forward_seconds(const nami_uneven_model *m, const nami_uneven_stage *s,
                              double share)
{
    return share * span(m->sums.forward, s) * (s->again ? 2 : 1);
}

/* From the start of the forward to the end of the last sum. */
static double chain_seconds(const nami_uneven_model *m, const nami_uneven_stage *s,
                            load w)
{
    const nami_chain_block *block = m->r->chain->block;
    const nami_chain_link *link = links_of(m, s).link[NAMI_UNEVEN_SUM];
    double done = forward_seconds(m, s, w.share), end = 0;
    double rate = sum_rate(link, w.replicas);
    for (int k = s->last - 1; k >= s->first; k--) {
        done += w.share * (block[k].input + block[k].weight);
        end = fmax(end, done) + rate * block[k].parameter;
    }
    bool sums = w.replicas > 1 && span(m->sums.parameter, s) > 0;
    return end + (sums ? 2 * link->latency : 0);
}

double nami_uneven_seconds(const nami_uneven_model *m, const nami_uneven_stage *s,
                           nami_part *parts)
{
    double transfer, sums;
    load w = {share_of(m, s->replicas), s->replicas};
    double link = link_seconds(m, s, w, &transfer, &sums);
    double seconds = fmax(chain_seconds(m, s, w), link);
    if (parts != NULL) {
        parts->compute =
            forward_seconds(m, s, w.share) + w.share * span(m->sums.backward, s);
        parts->transfer = transfer;
        parts->reduce = sums;
        parts->seconds = seconds;
    }
    return seconds;
}

/* Whether the seconds of a load are at most `limit`; stops as soon as it knows. */
static bool within(const nami_uneven_model *m, const nami_uneven_stage *s, load w,
                   double limit)
{
    double transfer, sums;
    if (link_seconds(m, s, w, &transfer, &sums) > limit)
        return false;
    double work = forward_seconds(m, s, w.share) + w.share * span(m->sums.backward, s);
    if (work > limit * (1 + 1e-12)) /* sums of sums are rounded otherwise */
        return false;
    const nami_chain_block *first = &m->r->chain->block[s->first];
    const nami_chain_block *last = &m->r->chain->block[s->last - 1];
    const nami_chain_link *link = links_of(m, s).link[NAMI_UNEVEN_SUM];
    double latency = link->latency;
    double forward = forward_seconds(m, s, w.share);
    double late = work + sum_rate(link, w.replicas) * first->parameter;
    double early = forward + w.share * (last->input + last->weight) + sums;
    if (fmax(late, early) > limit * (1 + 1e-12)) /* two of the ways to the end */
        return false;
    if ((work + sums + 2 * latency) * (1 + 1e-12) <= limit)
        return true;
    return chain_seconds(m, s, w) <= limit;
}

bool nami_uneven_within(const nami_uneven_model *m, const nami_uneven_stage *s,
                        double limit)
{
    return within(m, s, (load){share_of(m, s->replicas), s->replicas}, limit);
}

/* Fewer replicas than this cannot do the stage within `limit`. */
static double fewest(const nami_uneven_model *m, const nami_uneven_stage *s,
                     double limit)
{
    const nami_chain_link *l = &m->best;
    double work =
        span(m->sums.forward, s) * (s->again ? 2 : 1) + span(m->sums.backward, s);
    double in = bytes_in(m, s), out = bytes_out(m, s);
    double rest = limit * (m->alike ? 1 : 2) - l->latency * ((in > 0) + (out > 0));
    if (rest <= 0 || limit <= 0)
        return INFINITY;
    return fmax(1, ceil(fmax(work / limit, (in + out) / l->rate / rest) * (1 - 1e-12)));
}

/* The least of [low, high] replicas that do the stage within `limit`, 0 when none do. More replicas have smaller shares
 * and slower sums: the share of `high` with the sums of `low` is a bound for all between. */
static int least_of(const nami_uneven_model *m, const nami_uneven_stage *s, int low,
                    int high, double limit)
{
    while (within(m, s, (load){share_of(m, high), low}, limit)) {
        if (low == high)
            return low;
        int middle = low + (high - low) / 2;
        int left = least_of(m, s, low, middle, limit);
        if (left > 0)
            return left;
        low = middle + 1;
    }
    return 0;
}

int nami_uneven_least(const nami_uneven_model *m, const nami_uneven_stage *s, int low,
                      int high, double limit)
{
    int none = m->r->ranks + 1;
    double start = fmax(low, fewest(m, s, limit));
    if (!(start <= high) ||
        sum_rate(&m->best, (int)start) * span(m->sums.parameter, s) > limit)
        return none; /* more replicas have slower sums */
    int found = least_of(m, s, (int)start, high, limit);
    return found > 0 ? found : none;
}

/* Bytes of the two kinds: whatever the replicas, and those of a whole mini-batch. */
static void bytes_parts(const nami_uneven_model *m, const nami_uneven_stage *s,
                        int behind, double *fixed, double *shared)
{
    const nami_uneven_request *r = m->r;
    int before = s->first > 0, flight = behind + 1;
    double versions = nami_partition_versions(r->policy, before + behind + 1, before);
    double parameter = span(m->sums.parameter, s);
    double kept =
        span(m->sums.kept, s) + m->sums.output[s->last - 1] - m->sums.output[s->first];
    *fixed =
        versions * (parameter + span(m->sums.packed, s)) + (1 + r->states) * parameter;
    *shared = (s->again ? 1 : flight) * kept + (flight + 2) * bytes_in(m, s) +
              2 * bytes_out(m, s) +
              m->peak[(int64_t)s->first * (m->blocks + 1) + s->last];
}

double nami_uneven_bytes(const nami_uneven_model *m, const nami_uneven_stage *s,
                         int behind)
{
    double fixed, shared;
    bytes_parts(m, s, behind, &fixed, &shared);
    return fixed + share_of(m, s->replicas) * shared;
}

int nami_uneven_fitting(const nami_uneven_model *m, const nami_uneven_stage *s,
                        int behind)
{
    double fixed, shared, batch = (double)m->r->chain->samples;
    int none = m->r->ranks + 1;
    bytes_parts(m, s, behind, &fixed, &shared);
    if (fixed + shared <= m->r->memory)
        return 1;
    double share = (m->r->memory - fixed) / shared;
    if (!(share > 0) || (batch > 0 && share * batch < 1))
        return none;
    double least = batch > 0 ? ceil(batch / floor(share * batch)) : ceil(1 / share);
    nami_uneven_stage t = *s;
    for (t.replicas = least > 2 ? (int)fmin(least - 1, none) : 1; t.replicas < none;
         t.replicas++) {
        if (nami_uneven_bytes(m, &t, behind) <= m->r->memory) /* despite rounding */
            return t.replicas;
    }
    return none;
}
