/* SPDX-License-Identifier: MIT */
/* uneven_stage.h - time and bytes of one stage, for the files of uneven.h. */
#ifndef NAMI_PLAN_UNEVEN_STAGE_H
#define NAMI_PLAN_UNEVEN_STAGE_H

#include "plan/uneven.h"

/* How the class of a link is told. */
typedef enum nami_link_view {
    NAMI_LINKS_REAL, /* as the stage says */
    NAMI_LINKS_BEST, /* every link as the better class, two links at once: never slower than real */
    NAMI_LINKS_WORST
} nami_link_view;

/* A request, prepared. */
typedef struct nami_uneven_model {
    const nami_uneven_request *r;
    int blocks;
    nami_chain_sums sums;
    double *peak; /* [blocks][blocks + 1] transient bytes of a span */
    nami_link_view view;
    nami_chain_link best, worst;
    bool alike; /* all links are of one class */
} nami_uneven_model;

void nami_uneven_model_make(const nami_uneven_request *r, nami_uneven_model *out);
void nami_uneven_model_free(nami_uneven_model *m);

enum { NAMI_UNEVEN_IN, NAMI_UNEVEN_OUT, NAMI_UNEVEN_SUM, NAMI_UNEVEN_LINKS };

/* A stage: blocks [first, last) on `replicas` ranks. */
typedef struct nami_uneven_stage {
    int first, last, replicas;
    bool again; /* recomputes */
    bool across
        [NAMI_UNEVEN_LINKS]; /* its link leaves the node; the real view alone reads this */
} nami_uneven_stage;

/* Seconds of a step; *parts may be NULL, else its compute, transfer, reduce and seconds are set. Local. */
double nami_uneven_seconds(const nami_uneven_model *m, const nami_uneven_stage *s,
                           nami_part *parts);

/* Whether the seconds are at most `limit`; as above, but stops as soon as it knows. Local. */
bool nami_uneven_within(const nami_uneven_model *m, const nami_uneven_stage *s,
                        double limit);

/* The least of [low, high] replicas that do the stage within `limit`; more than the ranks when none do. Local. */
int nami_uneven_least(const nami_uneven_model *m, const nami_uneven_stage *s, int low,
                      int high, double limit);

/* Ranks that blocks [first, last) take at least within `limit`, a fraction perhaps. Local. */
static inline double nami_uneven_work(const nami_uneven_model *m, int first, int last,
                                      double limit)
{
    const nami_chain_sums *c = &m->sums;
    return (c->forward[last] - c->forward[first] + c->backward[last] -
            c->backward[first]) /
           limit * (1 - 1e-9);
}

/* Bytes of a rank with `behind` stages behind it; of s: first, last, replicas, again. Local. */
double nami_uneven_bytes(const nami_uneven_model *m, const nami_uneven_stage *s,
                         int behind);

/* Fewest replicas whose bytes fit; more than the ranks when none do. Local. */
int nami_uneven_fitting(const nami_uneven_model *m, const nami_uneven_stage *s,
                        int behind);

#endif
