/* SPDX-License-Identifier: MIT */
/* reduce_shared.c - sums through a memory window that all members see.
 *
 * Each member has two staging buffers and three counters in the window. Of chunk b it
 *   stages   copies its values into buffer b % 2, once all have taken the result of chunk b - 2;
 *   reduces  adds its slice of all members' buffers, once all have staged; the result goes into its own buffer;
 *   copies   takes the other slices, once all have reduced.
 * Only member m reads slice m of the staged values, so the result can replace them.
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
    board **board; /* [members] */
    char **buffer; /* [members] two buffers of `bucket` bytes, one after the other */
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
    return w->buffer[m] + (chunk & 1 ? r->bucket : 0);
}

static bool stage(nami_reducer *r)
{
    window *w = r->own;
    nami_chunk chunk;
    int64_t b = w->stage.chunk;
    if (!nami_reduce_chunk(r, &w->stage, &chunk) || !all_have(r, COPIED, b - 1))
        return false;
    memcpy(buffer_of(r, r->me, b), chunk.data,
           (size_t)chunk.count * (size_t)chunk.wide);
    nami_reduce_next(r, &w->stage);
    atomic_store_explicit(&w->board[r->me]->staged, b + 1, memory_order_release);
    return true;
}

static bool reduce(nami_reducer *r)
{
    window *w = r->own;
    nami_chunk chunk;
    int64_t b = w->reduce.chunk, from;
    if (b == w->stage.chunk || !all_have(r, STAGED, b + 1))
        return false;
    nami_reduce_chunk(r, &w->reduce, &chunk);
    int64_t count = nami_reduce_slice(r, &chunk, r->me, &from);
    size_t at = (size_t)from * (size_t)chunk.wide;
    for (int m = 0; m < r->members; m++)
        w->leaf[m] = buffer_of(r, m, b) + at;
    nami_tree_sum(w->leaf, r->members, chunk.data + at, count, chunk.wide);
    memcpy(buffer_of(r, r->me, b) + at, chunk.data + at,
           (size_t)count * (size_t)chunk.wide);
    nami_reduce_next(r, &w->reduce);
    atomic_store_explicit(&w->board[r->me]->reduced, b + 1, memory_order_release);
    return true;
}

static bool copy(nami_reducer *r)
{
    window *w = r->own;
    nami_chunk chunk;
    int64_t b = w->copy.chunk, from;
    if (b == w->reduce.chunk || !all_have(r, REDUCED, b + 1))
        return false;
    nami_reduce_chunk(r, &w->copy, &chunk);
    for (int m = 0; m < r->members; m++) {
        int64_t count = nami_reduce_slice(r, &chunk, m, &from);
        size_t at = (size_t)from * (size_t)chunk.wide;
        if (m != r->me)
            memcpy(chunk.data + at, buffer_of(r, m, b) + at,
                   (size_t)count * (size_t)chunk.wide);
    }
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
    r->bytes = 64 + sizeof(board) + 2 * r->bucket;
    MPI_Win native = allocate(r);
    if (native == MPI_WIN_NULL)
        return false;
    window *w = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *w);
    w->native = native;
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
