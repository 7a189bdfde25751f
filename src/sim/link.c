/* SPDX-License-Identifier: MIT */
/* link.c - what messages cost: latency and bandwidth of the class of a link, and links that are taken. */
#include <math.h>

#include "base/memory.h"
#include "sim/inner.h"

/* Bytes of a message of one slice across the boundary behind stage `b`. */
static double bytes_of(const nami_sim *m, int b)
{
    return m->cost->bytes != NULL ? m->cost->bytes[b] / m->s->recipe.slices : 0.0;
}

static bool same_node(const nami_sim *m, int from, int to)
{
    int size = m->cost->ranks_per_node;
    return size == 0 || from / size == to / size;
}

/* Time that the bytes take, scaled. */
static double transfer(const nami_sim *m, int b, int from, int to)
{
    bool same = same_node(m, from, to);
    double bandwidth = same ? m->cost->bandwidth : m->cost->node_bandwidth;
    /* the ranks of the position that has fewer carry most */
    int r = nami_sim_ranks(m, 0, b), q = nami_sim_ranks(m, 0, b + 1);
    return bandwidth > 0.0 ? bytes_of(m, b) / (r < q ? r : q) / bandwidth * m->scale
                           : 0.0;
}

double nami_sim_travel(const nami_sim *m, int b, int from, int to)
{
    bool same = same_node(m, from, to);
    double latency = same ? m->cost->latency : m->cost->node_latency;
    return latency * m->scale + transfer(m, b, from, to);
}

/* When the link of `p` to `peer` is free again. */
static double *link_to(nami_sim_place *p, int peer)
{
    for (int i = 0; i < p->peers; i++) {
        if (p->peer[i] == peer)
            return &p->free[i];
    }
    if (p->peers == p->room) {
        p->room = p->room > 0 ? 2 * p->room : 4;
        p->peer =
            nami_realloc(NAMI_MEM_OTHER, p->peer, (size_t)p->room * sizeof *p->peer);
        p->free =
            nami_realloc(NAMI_MEM_OTHER, p->free, (size_t)p->room * sizeof *p->free);
    }
    p->peer[p->peers] = peer;
    p->free[p->peers] = 0.0;
    return &p->free[p->peers++];
}

double nami_sim_depart(nami_sim *m, int b, int from, int to, double ready)
{
    m->out->sent[from] += bytes_of(m, b);
    m->out->received[to] += bytes_of(m, b);
    if (!m->cost->serial)
        return ready;
    double *free = link_to(&m->place[from], to), leaves = fmax(ready, *free);
    *free = leaves + transfer(m, b, from, to);
    return leaves;
}
