/* SPDX-License-Identifier: MIT */
/* uneven_fit.h - whether some plan keeps a given time, and which of the fewest stages does; for uneven.c. */
#ifndef NAMI_PLAN_UNEVEN_FIT_H
#define NAMI_PLAN_UNEVEN_FIT_H

#include "plan/uneven_stage.h"

struct nami_uneven_choice;

typedef struct nami_uneven_fit {
    nami_uneven_model m;
    double limit;
    int none;   /* ranks + 1 */
    int unit;   /* stages have multiples of so many ranks: 1, or whole nodes */
    int node;   /* ranks of a node; 1: where ranks lie does not count */
    int kept;   /* remainders that choices are kept for: node, or 1 */
    int slots;  /* choices of t stages from a block: LIES * kept, or 1 */
    int anchor; /* ranks of the plan modulo those of a node */
    int *least
        [2]; /* [blocks][blocks+1] replicas by time, without and with recomputation */
    struct nami_uneven_choice *at; /* [stages + 1][blocks + 1][slots] */
    int *reach;                    /* [blocks] end of the longest span from a block */
    int *best;      /* [blocks + 1][slots] least ranks of all layers so far */
    bool *fresh[2]; /* [blocks + 1][slots] whether a layer was better than all before */
    nami_part *found; /* [stages] of the last feasible time */
    int parts;
} nami_uneven_fit;

/* Room for the plans of `r`, in which links are of the better class and ranks lie anywhere. Local. */
void nami_uneven_fit_open(nami_uneven_fit *s, const nami_uneven_request *r);
void nami_uneven_fit_close(nami_uneven_fit *s);

/* From now on: stages of whole nodes; or where in their nodes ranks lie, with real links. Local. */
void nami_uneven_fit_nodes(nami_uneven_fit *s);
void nami_uneven_fit_places(nami_uneven_fit *s);

/* Whether every place of all ranks is tried, so that the best of all plans is found. Local. */
bool nami_uneven_fit_exact(const nami_uneven_model *m);

/* Whether some plan keeps `limit` seconds; then it is in s->found. Local. */
bool nami_uneven_fit_within(nami_uneven_fit *s, double limit);

#endif
