/* SPDX-License-Identifier: MIT */
/* chain.h - what the blocks of a model and the links between ranks cost: a profile, from a file or measured.
 *
 * The file is text; docs/formats.md describes it. Times of a block are those of `samples` samples on one rank.
 */
#ifndef NAMI_PLAN_CHAIN_H
#define NAMI_PLAN_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum { NAMI_CHAIN_MOST = 65536 }; /* blocks of a file */

typedef struct nami_chain_block {
    char name[40];
    double forward, input, weight; /* seconds of a pass */
    /* bytes of the activation behind the block; its gradient is as large */
    double output;
    double kept;      /* bytes it keeps from forward to backward beside its input */
    double transient; /* bytes alive inside one pass */
    double parameter; /* bytes of its parameters */
    double packed;    /* bytes of their packed copies, one for each version */
} nami_chain_block;

/* Links of one class; a rate of 0: not measured. */
typedef struct nami_chain_link {
    double latency; /* seconds of a message beside its bytes */
    double rate;    /* bytes/s of messages between two ranks, one direction */
    /* bytes/s of a sum over replicas: bytes of the buffer / seconds, for 2 replicas */
    double reduce;
} nami_chain_link;

typedef struct nami_chain {
    int blocks;
    nami_chain_block *block;
    int64_t samples; /* 0: the file does not say; a plan is then for the same batch */
    int ranks_per_node;             /* 0: the file does not say */
    nami_chain_link inside, across; /* of a node, and between nodes */
} nami_chain;

/* Local; freed with nami_chain_free, also after a failure. Status: NAMI_EINPUT with place and reason. */
nami_status nami_chain_read(const char *path, nami_chain *out);
nami_status nami_chain_parse(const char *text, const char *where, nami_chain *out);
void nami_chain_free(nami_chain *c);

/* As a file that nami_chain_parse reads back, appended to `out`. Local. */
void nami_chain_write(const nami_chain *c, nami_text *out);

/* Times and bytes of `samples` samples instead, in proportion; nothing when the file does not say its own. Local. */
void nami_chain_scale(nami_chain *c, int64_t samples);

/* Sums over blocks [0, i), i = 0..blocks, so that a span [a, b) is the difference of two entries. */
typedef struct nami_chain_sums {
    double *forward, *backward, *parameter, *packed, *output, *kept; /* [blocks + 1] */
} nami_chain_sums;

void nami_chain_sums_make(const nami_chain *c, nami_chain_sums *out);
void nami_chain_sums_free(nami_chain_sums *s);

#endif
