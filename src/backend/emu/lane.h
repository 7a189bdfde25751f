/* SPDX-License-Identifier: MIT */
/* lane.h - a queue of work and the thread that does it in order.
 *
 * A lane has a clock of its own: work with a set cost begins when it was queued or when the work before it
 * ended by this clock, whichever is later, and the thread sleeps until the clock's end of it. So a thread
 * that wakes late does not make the device late.
 */
#ifndef NAMI_BACKEND_EMU_LANE_H
#define NAMI_BACKEND_EMU_LANE_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/emu/pointers.h"

/* Addresses are those of the lanes, or of the host in a copy. */
typedef struct nami_emu_item {
    enum {
        NAMI_EMU_LAUNCH,
        NAMI_EMU_COPY,
        NAMI_EMU_ZERO,
        NAMI_EMU_MARK,
        NAMI_EMU_AFTER
    } kind;
    const nami_prepared *prepared;
    nami_emu_args args;
    void *to;
    const void *from;
    size_t bytes;
    double cost;   /* seconds of a copy */
    double queued; /* nami_now */
    int mark;      /* slot of its moment; AFTER: in the other lane */
    bool fails;
    /* AFTER: the lane whose item number `number` comes first */
    struct nami_emu_lane *other;
    int64_t number;
} nami_emu_item;

typedef struct nami_emu_lane {
    const struct nami_emu *emu;
    uint64_t key; /* of the delays */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more; /* items */
    pthread_cond_t less; /* one is done */
    nami_emu_item *ring; /* [capacity] a power of two */
    int64_t capacity;
    int64_t queued;       /* items so far */
    _Atomic int64_t done; /* items so far */
    int64_t marks;        /* so far */
    double moment[NAMI_BACKEND_MARKS];
    double clock; /* of the lane: end of what it did last */
    bool running, closing;
    _Atomic bool failed;
} nami_emu_lane;

/* Local. The thread starts with the first item. */
void nami_emu_lane_open(nami_emu_lane *l, const struct nami_emu *emu, uint64_t key);
void nami_emu_lane_stop(nami_emu_lane *l);  /* after all its work is done */
void nami_emu_lane_close(nami_emu_lane *l); /* after all lanes have stopped */

/* Append a copy of *item; returns its number, from 1. Local. Never waits for the lane. */
int64_t nami_emu_lane_add(nami_emu_lane *l, const nami_emu_item *item);

#endif
