/* SPDX-License-Identifier: MIT */
/* reduce_shared.c - sums through a memory window that all members see.
 *
 * Each member has two staging buffers and three counters in the window. Of chunk b it
 *   stages   copies its values into buffer b % 2, once all have taken the result of chunk b - 2;
 *   reduces  adds its slice of all members' buffers, once all have staged; the result goes into its own buffer;
 *   copies   takes the other slices, once all have reduced.
 * Only member m reads slice m of the staged values, so the result can replace them.
 * A scatter has no copying and a gather no reducing; the counter goes on without waiting.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "comm/reduce.h"

/* Chunks a member has finished with, one cache line each; written by that member alone. */
typedef struct board {
    _Alignas(64) _Atomic int64_t staged;
    _Alignas(64) _Atomic int64_t reduced;
    _Alignas(64) _Atomic int64_t copied;
} board;

typedef struct window {
    MPI_Win native;
    board **board;     /* [members] */
    char **buffer;     /* [members] two buffers of `each` bytes, one after the other */
    size_t each;       /* bytes: of a chunk, and of all regions of one */
    const void **leaf; /* [members] */
    nami_cursor stage, reduce, copy;
} window;

enum { STAGED, REDUCED, COPIED };

static int64_t counter(const board *b, int which)
{
    const _Atomic int64_t *x = which == STAGED    ? &b->staged
                               : which == REDUCED ? &b->reduced
                                                  : &b->copied;
    return atomic_load_explicit(x, memory_order_acquire);
}

static bool all_have(const nami_reducer *r, int which, int64_t chunks)
{
    const window *w = r->own;
    for (int m = 0; m < r->members; m++)
        if (counter(w->board[m], which) < chunks)
            return false;
    return true;
}

static char *buffer_of(const nami_reducer *r, int m, int64_t chunk)
{
    const window *w = r->own;
    return w->buffer[m] + (chunk & 1 ? w->each : 0);
}

/* Copy region m of a chunk of spans into a staging buffer, or from there to its place. */
static void move_region(const nami_reducer *r, const nami_chunk *chunk, int m,
                        char *buffer, bool staging)
{
    nami_reduce_run p = {.span = -1};
    while (nami_reduce_part(chunk, m, &p)) {
        char *at = buffer + (size_t)m * r->region + p.at * chunk->wide;
        size_t bytes = (size_t)p.count * (size_t)chunk->wide;
        memcpy(staging ? at : p.data, staging ? p.data : at, bytes);
    }
}

static bool stage(nami_reducer *r)
{
    window *w = r->own;
    nami_chunk chunk;
    int64_t b = w->stage.chunk;
    if (!nami_reduce_chunk(r, &w->stage, &chunk) || !all_have(r, COPIED, b - 1))
        return false;
    char *buffer = buffer_of(r, r->me, b);
    if (chunk.job.kind == NAMI_JOB_ALL)
        memcpy(buffer, chunk.data, (size_t)chunk.count * (size_t)chunk.wide);
    else if (chunk.job.kind == NAMI_JOB_GATHER)
        move_region(r, &chunk, r->me, buffer, true);
    else
        for (int m = 0; m < r->members; m++)
            move_region(r, &chunk, m, buffer, true);
    nami_reduce_next(r, &w->stage);
    atomic_store_explicit(&w->board[r->me]->staged, b + 1, memory_order_release);
    return true;
}

/* The sum of this member's slice, to its place and into the own buffer. */
static void sum_slice(nami_reducer *r, const nami_chunk *chunk, int64_t b)
{
    window *w = r->own;
    int64_t from, count = nami_reduce_slice(r, chunk, r->me, &from);
    size_t at = (size_t)from * (size_t)chunk->wide;
    for (int m = 0; m < r->members; m++)
        w->leaf[m] = buffer_of(r, m, b) + at;
    nami_tree_sum(w->leaf, r->members, chunk->data + at, count, chunk->wide);
    memcpy(buffer_of(r, r->me, b) + at, chunk->data + at,
           (size_t)count * (size_t)chunk->wide);
}

/* The sum of this member's region, to its place. */
static void sum_region(nami_reducer *r, const nami_chunk *chunk, int64_t b)
{
    window *w = r->own;
    nami_reduce_run p = {.span = -1};
    while (nami_reduce_part(chunk, r->me, &p)) {
        size_t at = (size_t)r->me * r->region + (size_t)(p.at * chunk->wide);
        for (int m = 0; m < r->members; m++)
            w->leaf[m] = buffer_of(r, m, b) + at;
        nami_tree_sum(w->leaf, r->members, p.data, p.count, chunk->wide);
    }
}

static bool reduce(nami_reducer *r)
{
    window *w = r->own;
    nami_chunk chunk;
    int64_t b = w->reduce.chunk;
    if (b == w->stage.chunk)
        return false;
    nami_reduce_chunk(r, &w->reduce, &chunk);
    if (chunk.job.kind != NAMI_JOB_GATHER && !all_have(r, STAGED, b + 1))
        return false;
    if (chunk.job.kind == NAMI_JOB_ALL)
        sum_slice(r, &chunk, b);
    else if (chunk.job.kind == NAMI_JOB_SCATTER)
        sum_region(r, &chunk, b);
    nami_reduce_next(r, &w->reduce);
    atomic_store_explicit(&w->board[r->me]->reduced, b + 1, memory_order_release);
    return true;
}

/* The slices of the others, from their buffers. */
static void copy_slices(const nami_reducer *r, const nami_chunk *chunk, int64_t b)
{
    for (int m = 0; m < r->members; m++) {
        int64_t from, count = nami_reduce_slice(r, chunk, m, &from);
        size_t at = (size_t)from * (size_t)chunk->wide;
        if (m != r->me)
            memcpy(chunk->data + at, buffer_of(r, m, b) + at,
                   (size_t)count * (size_t)chunk->wide);
    }
}

static bool copy(nami_reducer *r)
{
    static const int before[] = {[NAMI_JOB_ALL] = REDUCED, [NAMI_JOB_GATHER] = STAGED};
    window *w = r->own;
    nami_chunk chunk;
    int64_t b = w->copy.chunk;
    if (b == w->reduce.chunk)
        return false;
    nami_reduce_chunk(r, &w->copy, &chunk);
    nami_reduce_kind kind = chunk.job.kind;
    if (kind != NAMI_JOB_SCATTER && !all_have(r, before[kind], b + 1))
        return false;
    if (kind == NAMI_JOB_ALL)
        copy_slices(r, &chunk, b);
    for (int m = 0; kind == NAMI_JOB_GATHER && m < r->members; m++)
        if (m != r->me)
            move_region(r, &chunk, m, buffer_of(r, m, b), false);
    r->first += nami_reduce_next(r, &w->copy);
    atomic_store_explicit(&w->board[r->me]->copied, b + 1, memory_order_release);
    return true;
}

static bool advance(nami_reducer *r)
{
    return copy(r) || reduce(r) || stage(r);
}

static void close_window(nami_reducer *r)
{
    window *w = r->own;
    MPI_Win_unlock_all(w->native);
    MPI_Win_free(&w->native);
    nami_free(w->board);
    nami_free(w->buffer);
    nami_free(w->leaf);
    nami_free(w);
}

/* The window, or MPI_WIN_NULL on all members. */
static MPI_Win allocate(nami_reducer *r)
{
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info info;
    void *base;
    int ok, all;
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(r->group, &before);
    MPI_Comm_set_errhandler(r->group, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig",
                 "true"); /* each part near its member */
    ok = MPI_Win_allocate_shared((MPI_Aint)r->bytes, 1, info, r->group, &base, &win) ==
         MPI_SUCCESS;
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(r->group, before);
    MPI_Errhandler_free(&before);
    MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, r->group);
    if (ok && !all)
        MPI_Win_free(&win);
    return all ? win : MPI_WIN_NULL;
}

static void find_parts(nami_reducer *r, window *w)
{
    for (int m = 0; m < r->members; m++) {
        MPI_Aint bytes;
        int unit;
        char *base;
        MPI_Win_shared_query(w->native, m, &bytes, &unit, &base);
        w->board[m] = (board *)(((uintptr_t)base + 63) / 64 * 64);
        w->buffer[m] = (char *)(w->board[m] + 1);
    }
    atomic_init(&w->board[r->me]->staged, 0);
    atomic_init(&w->board[r->me]->reduced, 0);
    atomic_init(&w->board[r->me]->copied, 0);
}

bool nami_reduce_by_memory(nami_reducer *r)
{
    size_t regions = r->region * (size_t)r->members;
    size_t each = regions > r->bucket ? regions : r->bucket;
    r->bytes = 64 + sizeof(board) + 2 * each;
    MPI_Win native = allocate(r);
    if (native == MPI_WIN_NULL)
        return false;
    window *w = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *w);
    w->native = native;
    w->each = each;
    w->board = nami_calloc(NAMI_MEM_OTHER, (size_t)r->members, sizeof *w->board);
    w->buffer = nami_calloc(NAMI_MEM_OTHER, (size_t)r->members, sizeof *w->buffer);
    w->leaf = nami_calloc(NAMI_MEM_OTHER, (size_t)r->members, sizeof *w->leaf);
    find_parts(r, w);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, native);
    MPI_Barrier(
        r->group); /* nobody looks at a counter before its member has set it to zero */
    r->own = w;
    r->advance = advance;
    r->close = close_window;
    return true;
}
