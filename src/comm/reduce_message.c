/* SPDX-License-Identifier: MIT */
/* reduce_message.c - sums by messages: slices to their owners, results to all.
 *
 * Two chunks are under way at a time, each in its own slot. In a slot the member first exchanges slices (scatter),
 * adds its own slice of all members, then exchanges the results (gather). A chunk of spans does one of the two, with
 * regions in the place of slices; their parts go as they lie.
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
    MPI_Aint *at;      /* [parts] of the region under way: addresses, */
    int *bytes;        /* and lengths */
    int parts;
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

/* Note the parts of region m; returns how many. */
static int list_parts(exchange *x, const nami_chunk *chunk, int m)
{
    nami_reduce_run p = {.span = -1};
    int n = 0;
    while (nami_reduce_part(chunk, m, &p)) {
        if (n == x->parts) {
            x->parts = 2 * n + 16;
            x->at =
                nami_realloc(NAMI_MEM_OTHER, x->at, (size_t)x->parts * sizeof *x->at);
            x->bytes = nami_realloc(NAMI_MEM_OTHER, x->bytes,
                                    (size_t)x->parts * sizeof *x->bytes);
        }
        MPI_Get_address(p.data, &x->at[n]);
        x->bytes[n++] = (int)p.count * chunk->wide;
    }
    return n;
}

/* Region m from where its parts lie to `peer`, or from there to where they belong. */
static void post_region(nami_reducer *r, slot *s, int m, int peer, int tag,
                        bool sending)
{
    exchange *x = r->own;
    MPI_Datatype parts;
    MPI_Request *request = &s->request[s->requests];
    int n = list_parts(x, &s->chunk, m);
    if (n == 0)
        return;
    s->requests++;
    MPI_Type_create_hindexed(n, x->bytes, x->at, MPI_BYTE, &parts);
    MPI_Type_commit(&parts);
    if (sending)
        MPI_Isend(MPI_BOTTOM, 1, parts, peer, tag, r->group, request);
    else
        MPI_Irecv(MPI_BOTTOM, 1, parts, peer, tag, r->group, request);
    MPI_Type_free(&parts);
}

static bool has_spans(const slot *s)
{
    return s->chunk.job.kind != NAMI_JOB_ALL;
}

/* Elements of the own slice or region. */
static int64_t own_count(const nami_reducer *r, const slot *s, int64_t *from)
{
    *from = 0;
    return has_spans(s) ? nami_reduce_region(&s->chunk, r->me)
                        : nami_reduce_slice(r, &s->chunk, r->me, from);
}

/* Send slice m of the own values to member m; receive the own slice of all. */
static void post_scatter(nami_reducer *r, slot *s, int64_t chunk)
{
    const exchange *x = r->own;
    const int tag = tag_of(chunk, SCATTER);
    int64_t from, own = own_count(r, s, &from);
    s->requests = 0;
    for (int m = 0; m < r->members; m++)
        if (m != r->me)
            post(r, s, s->incoming + (size_t)m * x->slice, own, m, tag, false);
    for (int m = 0; m < r->members; m++) {
        if (m == r->me)
            continue;
        if (has_spans(s)) {
            post_region(r, s, m, m, tag, true);
            continue;
        }
        int64_t count = nami_reduce_slice(r, &s->chunk, m, &from);
        post(r, s, s->chunk.data + from * s->chunk.wide, count, m, tag, true);
    }
    s->stage = SCATTER;
}

/* Sum `count` own elements at `own`, of which the others' begin at byte `at` of what came in. */
static void sum_part(nami_reducer *r, slot *s, char *own, size_t at, int64_t count)
{
    exchange *x = r->own;
    for (int m = 0; m < r->members; m++)
        x->leaf[m] = m == r->me ? own : s->incoming + (size_t)m * x->slice + at;
    nami_tree_sum(x->leaf, r->members, s->result + at, count, s->chunk.wide);
    memcpy(own, s->result + at, (size_t)count * (size_t)s->chunk.wide);
}

static void sum_own(nami_reducer *r, slot *s)
{
    const int wide = s->chunk.wide;
    int64_t from, count = own_count(r, s, &from);
    nami_reduce_run p = {.span = -1};
    if (!has_spans(s))
        sum_part(r, s, s->chunk.data + from * wide, 0, count);
    while (has_spans(s) && nami_reduce_part(&s->chunk, r->me, &p))
        sum_part(r, s, p.data, (size_t)(p.at * wide), p.count);
}

static void post_gather(nami_reducer *r, slot *s, int64_t chunk)
{
    const int tag = tag_of(chunk, GATHER);
    int64_t from, own = own_count(r, s, &from);
    bool spans = has_spans(s);
    s->requests = 0;
    for (int m = 0; m < r->members; m++) {
        if (m != r->me && spans)
            post_region(r, s, m, m, tag, false);
        if (m == r->me || spans)
            continue;
        int64_t count = nami_reduce_slice(r, &s->chunk, m, &from);
        post(r, s, s->chunk.data + from * s->chunk.wide, count, m, tag, false);
    }
    for (int m = 0; m < r->members; m++) {
        if (m != r->me && spans)
            post_region(r, s, r->me, m, tag, true);
        else if (m != r->me)
            post(r, s, s->result, own, m, tag, true);
    }
    s->stage = GATHER;
}

static bool begin(nami_reducer *r)
{
    exchange *x = r->own;
    slot *s = &x->slot[x->start.chunk & 1];
    if (s->stage != IDLE || !nami_reduce_chunk(r, &x->start, &s->chunk))
        return false;
    if (s->chunk.job.kind == NAMI_JOB_GATHER)
        post_gather(r, s, x->start.chunk);
    else
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
    sum_own(r, s);
    s->requests = 0;
    s->stage = GATHER;
    if (!has_spans(s))
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
    nami_free(x->at);
    nami_free(x->bytes);
    nami_free(x);
}

void nami_reduce_by_messages(nami_reducer *r)
{
    exchange *x = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *x);
    size_t members = (size_t)r->members;
    x->slice = (r->bucket / members / 64 + 2) * 64; /* also of a region */
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
