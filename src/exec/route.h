/* SPDX-License-Identifier: MIT */
/* route.h - where the values of every action lie: buffers and slots chosen before the first step.
 *
 * A buffer holds one value of a stage boundary: an input, or a message on its way. Which buffer an action
 * uses is decided here, from a walk through all lists with unit costs. Each use of a buffer begins, in that
 * walk, after the use before it has ended; so waiting for a buffer can never close a circle, whatever the
 * real times are.
 */
#ifndef NAMI_EXEC_ROUTE_H
#define NAMI_EXEC_ROUTE_H

#include "sched/schedule.h"

/* An action with its places. Buffers are numbers below nami_route.buffers; -1: none. */
typedef struct nami_task {
    nami_action action;
    int local; /* the stage's index among those of the position */
    int in;    /* input of the stage: read by F, B, BI, BW; filled by RECV_F */
    int out;  /* made by F: the next stage's input here, or a message; sent by SEND_F */
    int dout; /* gradient of the output: read by B, BI, BW; filled by RECV_B */
    int din; /* made by B, BI: the gradient for the stage before, here or a message; sent by SEND_B */
    int kept; /* slot of saved activations of the unit, all its token slices */
    int data; /* slot of the unit from its F to its last backward: tokens and targets */
    int group; /* update that the unit, REDUCE or UPDATE belongs to: 0 with a flush */
    int from; /* UPDATE: slot of the weights that it reads; action.version is written */
    /* Of weights that are newest or predicted. Updates of the stage between the version that the unit's forward reads and
     * its own update; the same less those of its backward. UPDATE: means over its units. */
    double late, gap;
    int dies;       /* slot whose weights nobody reads behind this action; -1: none */
    bool completes; /* the last of its group that adds to the stage's gradients */
    int held;       /* slot between BI and BW */
    int peer;       /* position, of a send or receive */
    int tag;        /* of a send or receive */
} nami_task;

/* One list of one position. */
typedef struct nami_route {
    nami_task *task; /* [count] */
    int64_t count;
    int buffers; /* boundary values alive at once, at most */
    int stages;  /* of this position, in all copies of the model */
    int *stage;  /* [stages] their numbers: copy by copy, each ascending */
    int *copy;   /* [stages] their copies */
    int *kept;   /* [stages] slots, each of all token slices of a unit */
    int *held;   /* [stages] slots; 0 with a backward in one piece */
    bool *split; /* [stages] BI and BW run apart */
    bool *again; /* [stages] R runs the forward again: one slot of saved activations */
    int *data;   /* [stages] slots of units */
    int *versions; /* [stages] slots of weights */
} nami_route;

/* Routes of all positions of a lowered schedule into out[positions], zeroed on entry.
 *
 * Local. Status: NAMI_EPLAN for an action the executor does not carry out, or lists that cannot finish. */
nami_status nami_routes_make(const nami_schedule *s, nami_route *out);
void nami_routes_free(nami_route *route, int positions);

#endif
