/* SPDX-License-Identifier: MIT */
/* order.h - an order: when each forward and backward of a position runs.
 *
 * An order is one file and one row in list.c. It is pure, appends compute actions only, and builds the
 * list of one position without looking at the others. template.c shows the whole of one.
 */
#ifndef NAMI_SCHED_ORDER_H
#define NAMI_SCHED_ORDER_H

#include "sched/schedule.h"

typedef struct nami_order {
    const char *name;    /* "wave" */
    const char *summary; /* one sentence */
    unsigned placements; /* those it can serve: sum of NAMI_ON(kind) */
    bool one_wave;       /* on the wave placement: drawn for W = 1 alone */
    bool sliced;         /* serves more than one token slice */
    bool windows; /* without a flush: held stays bounded however long the window is */
    /* Why the order does not admit the counts of `r`, as a failed status; NULL: admits all. */
    nami_status (*admits)(const nami_recipe *r);
    /* Append the compute actions of `position` to `out`. */
    void (*generate)(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out);
    /* The most (stage, unit) pairs that `position` holds at once: a promise that is validated. */
    int64_t (*held)(const nami_recipe *r, int position);
    /* When other orders serve the counts of `r` better, a sentence that says so, else NULL; NULL: never. */
    const char *(*advise)(const nami_recipe *r);
} nami_order;

#define NAMI_ON(kind) (1u << (kind))

/* The order called `name`, NULL when unknown. Local. */
const nami_order *nami_order_find(const char *name);
int nami_orders(void);                      /* how many */
const nami_order *nami_order_at(int index); /* 0 <= index < nami_orders() */

extern const nami_order nami_order_filldrain;
extern const nami_order nami_order_1f1b;
extern const nami_order nami_order_interleaved;
extern const nami_order nami_order_wave;
extern const nami_order nami_order_wave_paper;
extern const nami_order nami_order_zb_h1;
extern const nami_order nami_order_zb_h2;
extern const nami_order nami_order_zb_v;
extern const nami_order nami_order_wave_zb;
extern const nami_order nami_order_gems;
extern const nami_order nami_order_chimera;
extern const nami_order nami_order_chimera_doubling;
extern const nami_order nami_order_dualpipe;
extern const nami_order nami_order_dualpipev;
extern const nami_order nami_order_terapipe;
extern const nami_order nami_order_wpipe;
extern const nami_order nami_order_template;

#endif
