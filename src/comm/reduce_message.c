/* SPDX-License-Identifier: MIT */
/* reduce_message.c - sums by messages: slices to their owners, results to all.
 *
 * Two chunks are under way at a time, each in its own slot. In a slot the member first exchanges slices (scatter),
 * adds its own slice of all members, then exchanges the results (gather).
 */
#include <string.h>

#include "base/memory.h"
#include "comm/reduce.h"

typedef enum stage { IDLE, SCATTER, GATHER } stage;

typedef struct slot {
    stage stage;
    nami_chunk chunk;
    char *incoming;       /* [members] slices of `slice` bytes */
    char *result;         /* own slice, summed */
    MPI_Request *request; /* [2 * members] */
    int requests;
} slot;

typedef struct exchange {
    slot slot[2];
    size_t slice;      /* bytes of the largest slice */
    const void **leaf; /* [members] */
    nami_cursor start; /* next chunk to be started */
    nami_cursor end;   /* oldest chunk under way */
} exchange;

static int tag_of(int64_t chunk, stage s)
{
    return 2 * (int)(chunk & 1) + (s == GATHER);
}

static void post(nami_reducer *r, slot *s, void *data, int64_t count, int peer, int tag,
                 bool sending)
{
    int bytes = (int)count * s->chunk.wide;
    MPI_Request *request = &s->request[s->requests];
    if (bytes == 0)
        return;
    s->requests++;
    if (sending)
        MPI_Isend(data, bytes, MPI_BYTE, peer, tag, r->group, request);
    else
        MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, r->group, request);
}

/* Send slice m of the own values to member m; receive the own slice of all. */
static void post_scatter(nami_reducer *r, slot *s, int64_t chunk)
{
    const exchange *x = r->own;
    int64_t from, own = nami_reduce_slice(r, &s->chunk, r->me, &from);
    s->requests = 0;
    for (int m = 0; m < r->members; m++)
        if (m != r->me)
            post(r, s, s->incoming + (size_t)m * x->slice, own, m,
                 tag_of(chunk, SCATTER), false);
    for (int m = 0; m < r->members; m++) {
        int64_t count = nami_reduce_slice(r, &s->chunk, m, &from);
        if (m != r->me)
            post(r, s, s->chunk.data + from * s->chunk.wide, count, m,
                 tag_of(chunk, SCATTER), true);
    }
    s->stage = SCATTER;
}

static void sum_slice(nami_reducer *r, slot *s)
{
    exchange *x = r->own;
    int64_t from, count = nami_reduce_slice(r, &s->chunk, r->me, &from);
    char *own = s->chunk.data + from * s->chunk.wide;
    for (int m = 0; m < r->members; m++)
        x->leaf[m] = m == r->me ? own : s->incoming + (size_t)m * x->slice;
    nami_tree_sum(x->leaf, r->members, s->result, count, s->chunk.wide);
    memcpy(own, s->result, (size_t)count * (size_t)s->chunk.wide);
}

static void post_gather(nami_reducer *r, slot *s, int64_t chunk)
{
    int64_t from, own = nami_reduce_slice(r, &s->chunk, r->me, &from);
    s->requests = 0;
    for (int m = 0; m < r->members; m++) {
        int64_t count = nami_reduce_slice(r, &s->chunk, m, &from);
        if (m != r->me)
            post(r, s, s->chunk.data + from * s->chunk.wide, count, m,
                 tag_of(chunk, GATHER), false);
    }
    for (int m = 0; m < r->members; m++)
        if (m != r->me)
            post(r, s, s->result, own, m, tag_of(chunk, GATHER), true);
    s->stage = GATHER;
}

static bool begin(nami_reducer *r)
{
    exchange *x = r->own;
    slot *s = &x->slot[x->start.chunk & 1];
    if (s->stage != IDLE || !nami_reduce_chunk(r, &x->start, &s->chunk))
        return false;
    post_scatter(r, s, x->start.chunk);
    nami_reduce_next(r, &x->start);
    return true;
}

static bool move(nami_reducer *r, int64_t chunk)
{
    exchange *x = r->own;
    slot *s = &x->slot[chunk & 1];
    if (s->stage != SCATTER || !nami_comm_all_done(s->requests, s->request))
        return false;
    sum_slice(r, s);
    post_gather(r, s, chunk);
    return true;
}

static bool finish(nami_reducer *r)
{
    exchange *x = r->own;
    slot *s = &x->slot[x->end.chunk & 1];
    if (s->stage != GATHER || !nami_comm_all_done(s->requests, s->request))
        return false;
    s->stage = IDLE;
    r->first += nami_reduce_next(r, &x->end);
    return true;
}

static bool advance(nami_reducer *r)
{
    const exchange *x = r->own;
    return finish(r) || move(r, x->end.chunk) || move(r, x->end.chunk + 1) || begin(r);
}

static void close_exchange(nami_reducer *r)
{
    exchange *x = r->own;
    for (int i = 0; i < 2; i++) {
        nami_free(x->slot[i].incoming);
        nami_free(x->slot[i].result);
        nami_free(x->slot[i].request);
    }
    nami_free(x->leaf);
    nami_free(x);
}

void nami_reduce_by_messages(nami_reducer *r)
{
    exchange *x = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *x);
    size_t members = (size_t)r->members;
    x->slice = (r->bucket / members / 64 + 2) * 64;
    for (int i = 0; i < 2; i++) {
        x->slot[i].incoming = nami_alloc(NAMI_MEM_OTHER, members * x->slice);
        x->slot[i].result = nami_alloc(NAMI_MEM_OTHER, x->slice);
        x->slot[i].request =
            nami_calloc(NAMI_MEM_OTHER, 2 * members, sizeof(MPI_Request));
    }
    x->leaf = nami_calloc(NAMI_MEM_OTHER, members, sizeof *x->leaf);
    r->bytes = 2 * (members + 1) * x->slice;
    r->own = x;
    r->advance = advance;
    r->close = close_exchange;
}
