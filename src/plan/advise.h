/* SPDX-License-Identifier: MIT */
/* advise.h - which schedule, W or V, P x D, micro-batch size and recomputation suit a model, by simulation.
 *
 * Every layout that `nami run` could be asked for is a candidate. Times come from the simulator with prices of blocks,
 * bytes from the executor's own budget; both are what nami plan would say of the same deck.
 */
#ifndef NAMI_PLAN_ADVISE_H
#define NAMI_PLAN_ADVISE_H

#include "exec/layout.h"
#include "sim/sim.h"

/* What things cost. */
typedef struct nami_advise_costs {
    double flops;     /* FLOP/s of one rank; not read where blocks take set times */
    double overhead;  /* seconds of a block and pass beside its FLOPs */
    double latency;   /* seconds of a message */
    double bandwidth; /* bytes/s of a message; 0: infinite */
    double update;    /* bytes/s that the optimiser moves; 0: infinite */
} nami_advise_costs;

typedef struct nami_advise_request {
    const nami_model *model;
    const nami_optim_options *optim;
    nami_backend *backend; /* that the budget plans for */
    nami_advise_costs costs;
    int ranks;
    double limit;  /* bytes of one rank */
    int64_t batch; /* samples a step */
    int partials;  /* gradient sums a step; 0: as many as replicas */
    bool zero;     /* replicas keep slices of the optimiser's state */
    nami_dtype act;
    int top; /* candidates kept, 1 to NAMI_ADVICE_MOST */
} nami_advise_request;

enum { NAMI_ADVICE_MOST = 100 };

/* One candidate. */
typedef struct nami_advice_row {
    nami_recipe recipe; /* of one pipeline; microbatches are M / D */
    bool plain;         /* 1F1B with a flush on a line */
    int replicas;       /* D */
    int64_t micro;      /* B samples a micro-batch */
    double seconds;     /* of a step */
    double bubble;
    double bytes;     /* of the fullest rank; a lower bound where it cannot run */
    int64_t messages; /* of a step, all replicas */
    double sent;      /* bytes of these messages */
} nami_advice_row;

/* The best first; equal times: fewer bytes, then plain 1F1B. One row a layout, with its best M. */
typedef struct nami_advice_list {
    nami_advice_row row[NAMI_ADVICE_MOST];
    int rows, most;
} nami_advice_list;

typedef enum nami_refusal {
    NAMI_REFUSED_MEMORY, /* a position needs more than the limit */
    NAMI_REFUSED_BLOCKS, /* fewer blocks than stages */
    NAMI_REFUSED_COUNTS, /* the order does not admit P and M, or the layout does not */
    NAMI_REFUSED_SLOWER, /* as slow as the last one kept, or slower */
    NAMI_REFUSALS
} nami_refusal;

typedef struct nami_advice {
    nami_advice_list best;  /* that can be trained */
    nami_advice_list only;  /* that can only be simulated so far */
    nami_advice_list plain; /* the best of plain 1F1B */
    int64_t tried;          /* candidates */
    int64_t refused[NAMI_REFUSALS];
    char example[NAMI_REFUSALS][256]; /* the first reason of each kind */
    double least; /* bytes of the smallest one refused for memory; infinite: none */
} nami_advice;

/* Rank all candidates.
 *
 * Local. Names of the rows' recipes are those of the presets. `out` needs no release.
 * Status: NAMI_EENV when the backend cannot plan the model; NAMI_EPLAN when no candidate can be trained, with counts. */
nami_status nami_advise(const nami_advise_request *r, nami_advice *out);

/* The row as section [pipeline] of a deck, appended to `out`. Local. */
void nami_advice_fragment(const nami_advice_row *row, nami_text *out);

/* "hanayo W=2": schedule with the size it reads, into buf[48]; returns buf. Local. */
const char *nami_advice_name(const nami_advice_row *row, char buf[48]);

#endif
