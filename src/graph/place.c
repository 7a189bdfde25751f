/* SPDX-License-Identifier: MIT */
/* place.c - where buffers lie: kept and held in a row, transient ones by lifetime. */
#include <stdlib.h>

#include "graph/plan.h"

/* Large first, then the earlier one, then the lower number: the order does not depend on qsort. */
struct key {
    size_t bytes;
    int first, item;
};

static int by_size(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static void sort_by_size(const nami_buffer *buffer, int *item, int n, nami_walk_kind w)
{
    struct key *key = nami_calloc(NAMI_MEM_OTHER, (size_t)n + 1, sizeof *key);
    for (int i = 0; i < n; i++)
        key[i] = (struct key){buffer[item[i]].bytes, buffer[item[i]].first[w], item[i]};
    qsort(key, (size_t)n, sizeof *key, by_size);
    for (int i = 0; i < n; i++)
        item[i] = key[i].item;
    nami_free(key);
}

/* Offset of the tightest gap that holds `need` bytes between the n items near[], sorted by offset;
 * behind the last of them when there is none. */
static size_t best_gap(const nami_buffer *buffer, const int *near, int n, size_t need)
{
    size_t end = 0, best = 0, best_gap = SIZE_MAX;
    for (int i = 0; i < n; i++) {
        const nami_buffer *b = &buffer[near[i]];
        size_t gap = b->place.offset > end ? b->place.offset - end : 0;
        if (gap >= need && gap < best_gap) {
            best_gap = gap;
            best = end;
        }
        size_t after = b->place.offset + nami_plan_round(b->bytes);
        end = after > end ? after : end;
    }
    return best_gap == SIZE_MAX ? end : best;
}

size_t nami_plan_pack(nami_buffer *buffer, int *item, int n, nami_walk_kind w)
{
    int *near = nami_calloc(NAMI_MEM_OTHER, (size_t)n + 1, sizeof *near);
    size_t total = 0;
    sort_by_size(buffer, item, n, w);
    for (int i = 0; i < n; i++) {
        nami_buffer *b = &buffer[item[i]];
        int nears = 0;
        for (int j = 0; j < i; j++) { /* insert those alive together, by offset */
            const nami_buffer *o = &buffer[item[j]];
            if (o->last[w] < b->first[w] || o->first[w] > b->last[w])
                continue;
            int k = nears++;
            for (; k > 0 && buffer[near[k - 1]].place.offset > o->place.offset; k--)
                near[k] = near[k - 1];
            near[k] = item[j];
        }
        size_t need = nami_plan_round(b->bytes);
        b->place.offset = best_gap(buffer, near, nears, need);
        total = b->place.offset + need > total ? b->place.offset + need : total;
    }
    nami_free(near);
    return total;
}

/* Where a buffer must lie, from the lists that touch it. */
static nami_region home(const nami_buffer *b)
{
    const int *f = b->first;
    bool back = f[NAMI_WALK_B] >= 0 || f[NAMI_WALK_BI] >= 0 || f[NAMI_WALK_BW] >= 0;
    if (b->keep || (f[NAMI_WALK_F] >= 0 && back))
        return NAMI_AT_KEPT;
    if (f[NAMI_WALK_BI] >= 0 && f[NAMI_WALK_BW] >= 0)
        return NAMI_AT_HELD;
    return NAMI_AT_TRANSIENT;
}

/* Place the transient buffers of list w. item: room for all buffers. */
static void place_transient(nami_graph *g, nami_walk_kind w, int *item)
{
    int n = 0;
    for (int i = 0; i < g->buffers; i++)
        if (g->buffer[i].place.region == NAMI_AT_TRANSIENT &&
            g->buffer[i].first[w] >= 0)
            item[n++] = i;
    size_t bytes = nami_plan_pack(g->buffer, item, n, w);
    if (bytes > g->sizes.transient)
        g->sizes.transient = bytes;
}

void nami_plan_place(nami_graph *g)
{
    for (int i = 0; i < g->buffers; i++) {
        nami_buffer *b = &g->buffer[i];
        if (b->place.region != NAMI_AT_NONE || b->bytes == 0)
            continue;
        b->place.region = home(b);
        size_t *end = b->place.region == NAMI_AT_KEPT   ? &g->sizes.kept
                      : b->place.region == NAMI_AT_HELD ? &g->sizes.held
                                                        : NULL;
        if (end) {
            b->place.offset = *end;
            *end += nami_plan_round(b->bytes);
        }
    }
    int *item = nami_calloc(NAMI_MEM_OTHER, (size_t)g->buffers + 1, sizeof *item);
    for (int w = 0; w < NAMI_WALKS; w++)
        place_transient(g, w, item);
    nami_free(item);
}
