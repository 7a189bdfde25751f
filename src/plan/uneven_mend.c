/* SPDX-License-Identifier: MIT */
/* uneven_mend.c - a plan with the links that it really has, improved by single steps; idle ranks. */
#include "plan/uneven_mend.h"

#include <math.h>

/* Stage i of a plan, whose first rank is `rank`. */
static nami_uneven_stage stage_of(const nami_uneven_model *m, const nami_part *part,
                                  int parts, int i, int rank)
{
    const nami_part *p = &part[i];
    nami_uneven_stage t = {p->first, p->last, p->replicas, p->recompute, {false}};
    int node = m->r->ranks_per_node;
    if (m->alike)
        return t;
    int low = i > 0 ? rank - part[i - 1].replicas : rank;
    int end = rank + p->replicas;
    int high = i + 1 < parts ? end + part[i + 1].replicas : end;
    t.across[NAMI_UNEVEN_IN] = low / node != (end - 1) / node;
    t.across[NAMI_UNEVEN_OUT] = rank / node != (high - 1) / node;
    t.across[NAMI_UNEVEN_SUM] = rank / node != (end - 1) / node;
    return t;
}

double nami_uneven_slowest(const nami_uneven_model *m, nami_part *part, int parts)
{
    double slowest = 0;
    for (int i = 0, rank = 0; i < parts; rank += part[i++].replicas) {
        nami_uneven_stage t = stage_of(m, part, parts, i, rank);
        slowest = fmax(slowest, nami_uneven_seconds(m, &t, &part[i]));
    }
    return slowest;
}

/* Choose recomputation of every stage by memory; false when one does not fit. */
static bool settle(const nami_uneven_model *m, nami_part *part, int parts)
{
    for (int i = 0; i < parts; i++) {
        nami_uneven_stage t = stage_of(m, part, parts, i, 0);
        for (t.again = false;; t.again = true) {
            part[i].bytes = nami_uneven_bytes(m, &t, parts - 1 - i);
            if (part[i].bytes <= m->r->memory)
                break;
            if (t.again)
                return false;
        }
        part[i].recompute = t.again;
    }
    return true;
}

/* Take the trial when it fits and is faster; with `even`, when it is not slower and the stages together are faster. */
static bool take(const nami_uneven_model *m, nami_part *trial, bool even,
                 nami_partition *out)
{
    double sum = 0, before = 0;
    if (!settle(m, trial, out->parts))
        return false;
    double seconds = nami_uneven_slowest(m, trial, out->parts);
    for (int i = 0; i < out->parts; i++) {
        sum += trial[i].seconds;
        before += out->part[i].seconds;
    }
    bool good = even ? seconds <= out->seconds && sum < before * (1 - 1e-9)
                     : seconds < out->seconds * (1 - 1e-9);
    if (!good)
        return false;
    out->seconds = seconds;
    for (int i = 0; i < out->parts; i++)
        out->part[i] = trial[i];
    return true;
}

static void copy(nami_part *to, const nami_partition *from)
{
    for (int i = 0; i < from->parts; i++)
        to[i] = from->part[i];
}

/* Move one block over a cut or one replica from stage to stage, wherever that makes the slowest stage faster. */
static bool improve(const nami_uneven_model *m, nami_part *trial, nami_partition *out)
{
    bool better = false;
    for (int i = 0; i + 1 < out->parts; i++)
        for (int step = -1; step <= 1; step += 2) {
            copy(trial, out);
            trial[i].last = trial[i + 1].first += step;
            if (trial[i].last > trial[i].first && trial[i + 1].last > trial[i].last)
                better = take(m, trial, false, out) || better;
        }
    for (int i = 0; i < out->parts; i++)
        for (int j = 0; j < out->parts; j++) {
            copy(trial, out);
            if (i == j || --trial[i].replicas == 0)
                continue;
            trial[j].replicas++;
            better = take(m, trial, false, out) || better;
        }
    return better;
}

/* Give idle ranks to stages that get faster by it. */
static void spread(const nami_uneven_model *m, nami_part *trial, nami_partition *out)
{
    bool any = true;
    while (any && out->ranks < m->r->ranks) {
        any = false;
        for (int i = 0; i < out->parts && out->ranks < m->r->ranks; i++) {
            copy(trial, out);
            trial[i].replicas++;
            if (!take(m, trial, true, out))
                continue;
            out->ranks++;
            any = true;
        }
    }
}

void nami_uneven_mend(nami_uneven_model *m, nami_part *trial, nami_partition *out)
{
    enum { ROUNDS = 20 };
    m->view = NAMI_LINKS_REAL;
    (void)settle(m, out->part, out->parts);
    out->seconds = nami_uneven_slowest(m, out->part, out->parts);
    for (int i = 0; i < ROUNDS && out->bound < out->seconds * (1 - 1e-5); i++)
        if (!improve(m, trial, out))
            break;
    for (int i = 0; i < out->parts; i++)
        out->ranks += out->part[i].replicas;
    spread(m, trial, out);
    for (int i = 0; i < out->parts; i++)
        out->part[i].versions = nami_partition_versions(m->r->policy, out->parts, i);
}
