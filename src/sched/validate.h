/* SPDX-License-Identifier: MIT */
/* validate.h - what the parts of the proof of a schedule share; validate.c says what is proved.
 *
 * All local. Status: NAMI_EPLAN naming position, entry and reason.
 */
#ifndef NAMI_SCHED_VALIDATE_H
#define NAMI_SCHED_VALIDATE_H

#include "sched/schedule.h"

/* What a stage has had at its end. */
enum {
    NAMI_PROOF_REDUCE = 1,
    NAMI_PROOF_UPDATE = 2,
    NAMI_PROOF_GATHER = 4,
    NAMI_PROOF_SCATTER = 8
};

typedef struct nami_proof {
    const nami_schedule *s;
    const nami_place *p;
    bool train;
    uint16_t *seen;  /* [stages][units][slices]: one bit a kind */
    int16_t *owner;  /* [units]: the copy that runs it, -1 before it is known */
    uint8_t *ending; /* [copies][stages]: what it had; no flush: of update `made` */
    int32_t *made;   /* [stages]: updates so far, without a flush */
    int32_t *added;  /* [stages]: gradients of update `made` so far */
    int position;    /* being looked at */
    int64_t index;
    nami_action a;
} nami_proof;

#define NAMI_BIT(kind) (1u << (kind))
enum { NAMI_PROOF_BACKWARDS = NAMI_BIT(NAMI_B) | NAMI_BIT(NAMI_BI) };

/* Fail at the entry being looked at. */
nami_status __attribute__((format(printf, 2, 3)))
nami_proof_object(const nami_proof *c, const char *format, ...);

/* The kinds that (stage, unit, slice) has had so far. */
uint16_t *nami_proof_seen(const nami_proof *c, int stage, int unit, int slice);

/* The kinds of messages that each (stage, micro-batch) of `copy` must have. */
unsigned nami_proof_messages(const nami_proof *c, int copy, int stage);

/* The entry being looked at is an action of a micro-batch; a sum, an update or a gather of a stage. */
nami_status nami_prove_unit(nami_proof *c);
nami_status nami_prove_update(nami_proof *c);

/* All lists have been read, each entry in its place: nothing is missing. */
nami_status nami_prove_complete(const nami_proof *c);

#endif
