/* SPDX-License-Identifier: MIT */
/* links.c - time messages and sums between two ranks of a node, and of two nodes; the others wait politely. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "plan/measure.h"

enum { TAG = 1, BUCKET = 1 << 20, PINGS = 64 };

/* Two ranks that measure; both -1: there are none. */
typedef struct pair {
    int rank[2];
} pair;

/* Each rank's node: the lowest rank on it. */
static int *nodes_of(nami_comm *c)
{
    int ranks = nami_comm_size(c), own = nami_comm_node(c);
    int *node = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *node);
    nami_comm_gather(c, &own, sizeof own, node);
    return node;
}

/* The first two ranks whose nodes are the same, or are not. */
static pair find_pair(const int *node, int ranks, bool same)
{
    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++)
            if ((node[a] == node[b]) == same)
                return (pair){{a, b}};
    return (pair){{-1, -1}};
}

static void wait_for(nami_comm *c, nami_request request)
{
    nami_patience patience = {0};
    while (!nami_comm_done(c, &request))
        nami_patience_wait(c, &patience);
}

/* Seconds of one message of `bytes`: half of there and back, on the first rank of the pair; `first`: this is it. */
static double ping(nami_comm *c, char *data, size_t bytes, int peer, bool first)
{
    double start = nami_now();
    if (first)
        wait_for(c, nami_comm_send(c, data, bytes, peer, TAG));
    wait_for(c, nami_comm_receive(c, data, bytes, peer, TAG));
    if (!first)
        wait_for(c, nami_comm_send(c, data, bytes, peer, TAG));
    return (nami_now() - start) / 2;
}

/* The shortest of `repeats`: what the link can do when nothing else disturbs it. */
static double best_ping(nami_comm *c, char *data, size_t bytes, int peer, bool first,
                        int repeats)
{
    double best = 1e30;
    for (int i = 0; i <= repeats; i++) {
        double s = ping(c, data, bytes, peer, first);
        if (i > 0 && s < best) /* the first one makes the connection */
            best = s;
    }
    return best;
}

static double best_sum(nami_comm *c, nami_reducer *r, char *data, size_t bytes,
                       int repeats)
{
    double best = 1e30;
    for (int i = 0; i <= repeats; i++) {
        nami_patience patience = {0};
        double start = nami_now();
        nami_reducer_start(r, data, (int64_t)(bytes / 4), 4);
        while (!nami_reducer_poll(r))
            nami_patience_wait(c, &patience);
        double s = nami_now() - start;
        if (i > 0 && s < best)
            best = s;
    }
    return best;
}

/* Both ranks of the pair measure; the first one's numbers count. */
static void measure_pair(nami_comm *c, nami_reducer *r, const pair *p, size_t bytes,
                         int repeats, nami_chain_link *out)
{
    bool first = nami_comm_rank(c) == p->rank[0];
    int peer = p->rank[first ? 1 : 0];
    char *data = nami_alloc(NAMI_MEM_OTHER, bytes);
    memset(data, 0, bytes);
    out->latency = best_ping(c, data, 8, peer, first, PINGS);
    double moving = best_ping(c, data, bytes, peer, first, repeats) - out->latency;
    out->rate = (double)bytes / (moving > 1e-9 ? moving : 1e-9);
    out->reduce = (double)bytes / best_sum(c, r, data, bytes, repeats);
    nami_free(data);
}

static nami_status measure_class(nami_comm *c, const int *node, bool same, size_t bytes,
                                 int repeats, nami_chain_link *out)
{
    pair p = find_pair(node, nami_comm_size(c), same);
    nami_reducer *reducer = NULL;
    int rank = nami_comm_rank(c);
    bool own = rank == p.rank[0] || rank == p.rank[1];
    if (p.rank[0] < 0)
        return NAMI_OK;
    NAMI_TRY(nami_reducer_open(c, own ? 0 : -1, BUCKET, 0, &reducer));
    if (own) {
        measure_pair(c, reducer, &p, bytes, repeats, out);
        nami_reducer_close(reducer);
    }
    nami_comm_broadcast(c, out, sizeof *out, p.rank[0]);
    return NAMI_OK;
}

nami_status nami_measure_links(nami_comm *c, size_t bytes, int repeats, nami_chain *out)
{
    int *node = nodes_of(c);
    out->ranks_per_node = (int)nami_comm_max(c, nami_comm_node_size(c));
    nami_status status = measure_class(c, node, true, bytes, repeats, &out->inside);
    if (status == NAMI_OK)
        status = measure_class(c, node, false, bytes, repeats, &out->across);
    nami_free(node);
    return nami_comm_settle(c, status);
}
