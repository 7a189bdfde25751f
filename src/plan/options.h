/* SPDX-License-Identifier: MIT */
/* options.h - section [plan] of the deck: how stages and replicas are sought, and what was predicted. */
#ifndef NAMI_PLAN_OPTIONS_H
#define NAMI_PLAN_OPTIONS_H

#include "base/option.h"
#include "plan/ashpipe.h"

typedef enum nami_plan_method {
    NAMI_PLAN_DECK, /* nothing is sought */
    NAMI_PLAN_NAMI,
    NAMI_PLAN_ASHPIPE
} nami_plan_method;

typedef struct nami_plan_options {
    int method;     /* nami_plan_method */
    char *profile;  /* path of a profile, "" for none */
    int weights;    /* index: stash, 2bw, newest */
    int64_t stages; /* most */
    nami_ints levels;
    char *bandwidth, *connected; /* one word a level */
    double memory;               /* bytes of a rank; 0: run.memory, else any */
    double predicted;            /* seconds of a step; 0: nothing was predicted */
} nami_plan_options;

extern const nami_option_table nami_plan_option_table;

/* The levels of `ranks` ranks (0: as many as the levels have): those of the options, else nodes of the profile;
 * bandwidths that are not set are the profile's.
 * Local. Status: NAMI_EINPUT for words that make no sense or are missing, NAMI_EPLAN when ranks do not match. */
nami_status nami_plan_levels(const nami_plan_options *o, const nami_chain *chain,
                             int ranks, nami_plan_level level[NAMI_LEVELS_MOST],
                             int *levels);

/* Refuse keys that its method does not read. Local. Status: NAMI_EINPUT naming the key. */
nami_status nami_plan_check_keys(const nami_plan_options *o);

/* The policy of plan.weights. Local. */
nami_weights nami_plan_weights(const nami_plan_options *o);

#endif
