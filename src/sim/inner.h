/* SPDX-License-Identifier: MIT */
/* inner.h - what the parts of the event simulation share. */
#ifndef NAMI_SIM_INNER_H
#define NAMI_SIM_INNER_H

#include "sim/sim.h"

/* What an action's start waited for last. */
typedef enum nami_cause {
    NAMI_CAUSE_OWN,      /* the action before it, or nothing */
    NAMI_CAUSE_OUTPUT,   /* its input, from the stage before */
    NAMI_CAUSE_GRADIENT, /* its gradient, from the stage after */
    NAMI_CAUSE_POSTED, /* its receive, which was posted after the message could leave */
    NAMI_CAUSE_LANE,   /* the REDUCE before it */
    NAMI_CAUSE_COPY,   /* UPDATE: a REDUCE; plus the copy that made it */
    NAMI_CAUSE_OTHER = 128 /* added when it is the other one of the pair that waited */
} nami_cause;

/* Where one position is. */
typedef struct nami_sim_place {
    double clock;       /* it computes up to here */
    double lane;        /* its REDUCEs run up to here */
    double first, last; /* start of its first and end of its last action */
    double busy;
    int64_t ending; /* index of the action that ended last */
    int peers, room;
    int *peer;    /* [peers] positions it sent to */
    double *free; /* [peers] when the link to that peer is free again */
} nami_sim_place;

typedef struct nami_sim {
    const nami_schedule *s;
    const nami_cost *cost;
    /* times are kept in units of 1/scale: S K/P for uniform costs, else 1 */
    double scale;
    bool uniform;    /* all stages cost the same */
    double *left[2]; /* [stages][units][slices] when output, gradient left its stage */
    double *posted
        [2]; /* the same: when the receive of it was posted; NULL without communication */
    double *reduced;       /* [copies][stages] end of its REDUCE */
    nami_sim_place *place; /* [positions] */
    uint8_t **cause;       /* [positions][count] nami_cause of each action */
    double **start;        /* [positions][count] of each computation */
    double full, emptying; /* end of the first backward, last forward of stage 0 */
    nami_prediction *out;
    nami_timeline *line; /* NULL when not asked for */
} nami_sim;

static inline int64_t nami_sim_at(const nami_sim *m, nami_action a, int stage)
{
    const nami_recipe *r = &m->s->recipe;
    return ((int64_t)stage * r->microbatches + a.unit) * r->slices + a.slice;
}

/* Whether entries `first` and `first` + 1 of `l` run as a pair. Local. */
static inline bool nami_sim_pair(const nami_sim *m, const nami_list *l, int64_t first)
{
    return !m->cost->apart && nami_list_pair(l, first);
}

/* Ranks among which the samples of a micro-batch are split at `stage`. Local. */
static inline int nami_sim_ranks(const nami_sim *m, int copy, int stage)
{
    const nami_place *p = &m->s->place;
    return m->s->recipe.split == NAMI_SPLIT_SAMPLE
               ? p->replicas[nami_place_of(p, copy, stage)]
               : 1;
}

/* Time of one action, in scaled units. Local. */
double nami_sim_duration(const nami_sim *m, nami_action a);

/* Time that a message across the boundary behind stage `b` takes between two positions, scaled. Local. */
double nami_sim_travel(const nami_sim *m, int b, int from, int to);

/* When a message that could leave `from` at `ready` does leave: later when links are serial and this one is taken.
 * Bytes are counted. Local. */
double nami_sim_depart(nami_sim *m, int b, int from, int to, double ready);

/* Room in *out for `positions` positions, all 0. Local. */
void nami_prediction_open(int positions, nami_prediction *out);

/* Turn what was simulated into the prediction. Local. */
void nami_sim_summarise(const nami_sim *m, nami_prediction *out);

/* Follow the causes back from the last end. Local. */
void nami_sim_critical(const nami_sim *m, nami_critical *out);

#endif
