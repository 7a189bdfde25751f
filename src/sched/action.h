/* SPDX-License-Identifier: MIT */
/* action.h - one entry of a schedule, and the lists that make one.
 *
 * A training step is data: for each pipeline position an ordered list of actions.
 */
#ifndef NAMI_SCHED_ACTION_H
#define NAMI_SCHED_ACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

typedef enum nami_kind {
    NAMI_F,      /* forward of a stage */
    NAMI_B,      /* backward: BI and BW in one */
    NAMI_BI,     /* backward with respect to the input */
    NAMI_BW,     /* backward with respect to the weights */
    NAMI_R,      /* recompute the forward, before its B or BI */
    NAMI_SEND_F, /* send the stage's output to the stage after it */
    NAMI_RECV_F, /* receive the stage's input from the stage before it */
    NAMI_SEND_B, /* send the gradient of the stage's input to the stage before it */
    NAMI_RECV_B, /* receive the gradient of the stage's output from the stage after it */
    NAMI_REDUCE, /* sum the stage's gradients over replicas (and copies, and tied uses) */
    NAMI_REDUCE_SCATTER, /* the same, each replica keeping its slice */
    NAMI_GATHER,         /* gather updated slices */
    NAMI_UPDATE,         /* optimiser step of the stage */
    NAMI_DRAIN,          /* end of a window: nothing is in flight */
    NAMI_KINDS
} nami_kind;

/* This action and the next one are a pair: they start together, once both have their data, and what
 * they make leaves when both have ended. Whoever runs them one after the other loses only time. */
enum { NAMI_FLAG_PAIR = 1 };

typedef struct nami_action {
    uint8_t kind;  /* nami_kind */
    uint8_t copy;  /* copy of the model, 0 unless bidirectional */
    uint8_t flags; /* NAMI_FLAG_... */
    /* weight version read or made, modulo the versions kept; 0 with flush */
    uint8_t version;
    uint16_t stage; /* 0-based, of the stage that acts */
    uint16_t slice; /* token slice, 0 unless sliced */
    /* micro-batch (or mini-batch without flush); -1 for REDUCE, UPDATE, DRAIN with flush */
    int32_t unit;
} nami_action;

_Static_assert(sizeof(nami_action) == 12, "an action is 12 bytes");

/* The actions of one position, in order. */
typedef struct nami_list {
    nami_action *item;
    int64_t count, capacity;
} nami_list;

/* What the semantics table says of a kind. Validator, simulator and executor all read it. */
typedef struct nami_semantics {
    const char *name; /* "SEND_F" */
    char letter;      /* in the text form: F B I W R, or 0 */
    bool compute;     /* occupies the position's processor */
    bool sends, receives;
    bool per_unit;       /* belongs to one unit; else to a stage */
    bool needs_input;    /* reads the stage's input activation */
    bool needs_gradient; /* reads the gradient of the stage's output */
    bool makes_output;   /* makes the stage's output activation */
    bool makes_gradient; /* makes the gradient of the stage's input */
    bool opens_saved;    /* from here on saved activations of the unit are held */
    bool closes_saved;   /* ... until here (B or BW) */
    bool reads_weights;  /* reads a weight version */
    bool adds_gradient;  /* adds to the gradient sums */
} nami_semantics;

extern const nami_semantics nami_semantics_table[NAMI_KINDS];

/* The row of `kind`. Local. */
static inline const nami_semantics *nami_semantics_of(nami_kind kind)
{
    NAMI_CHECK((int)kind >= 0 && kind < NAMI_KINDS);
    return &nami_semantics_table[kind];
}

/* Append `a`. Local. */
void nami_list_add(nami_list *l, nami_action a);
void nami_list_free(nami_list *l);

/* An action of copy 0, slice 0, version 0. Local. */
static inline nami_action nami_action_of(nami_kind kind, int stage, int unit)
{
    return (nami_action){.kind = (uint8_t)kind, .stage = (uint16_t)stage, .unit = unit};
}

/* The same in `copy` of the model. Local. */
static inline nami_action nami_action_in(nami_kind kind, int copy, int stage, int unit)
{
    nami_action a = nami_action_of(kind, stage, unit);
    a.copy = (uint8_t)copy;
    return a;
}

/* Whether a pair of actions, the entries `first` and `first` + 1 of `l`, begins there. Local. */
static inline bool nami_list_pair(const nami_list *l, int64_t first)
{
    return first >= 0 && first + 1 < l->count &&
           (l->item[first].flags & NAMI_FLAG_PAIR) != 0;
}

/* "2F0" (stage kind micro-batch), with communication "2SEND_F0"; then, each only when it is not 0, "/3" the
 * token slice, "@1" the copy, "v2" the weight version, "+" for an action that overlaps the next one.
 * Appended to out. Local. */
void nami_action_print(nami_action a, nami_text *out);

/* Read one such word. Local. Status: NAMI_EINPUT with the word and what was expected. */
nami_status nami_action_parse(const char *word, nami_action *out);

#endif
