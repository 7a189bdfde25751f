/* SPDX-License-Identifier: MIT */
/* arena.c - one file of memory, mapped twice. */
#include "backend/emu/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* all ones are NaN in f32, f64 and bf16, and -1 in whole numbers */
enum { POISON = 0xff };

/* The file's memory at `where` of a reserved range, untouchable. */
static bool map(int file, char *where, size_t bytes)
{
    return mmap(where, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
                0) == where;
}

nami_status nami_arena_open(nami_arena *a, size_t bytes)
{
    *a = (nami_arena){.page = (size_t)sysconf(_SC_PAGESIZE)};
    a->bytes = (bytes + a->page - 1) / a->page * a->page;
    int file = memfd_create("nami-emu", MFD_CLOEXEC);
    void *range = mmap(NULL, 2 * a->bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool good = file >= 0 && range != MAP_FAILED;
    good = good && ftruncate(file, (off_t)a->bytes) == 0;
    good = good && map(file, range, a->bytes);
    good = good && map(file, (char *)range + a->bytes, a->bytes);
    int why = errno;
    if (file >= 0)
        close(file);
    if (good) {
        a->host = range;
        return NAMI_OK;
    }
    if (range != MAP_FAILED)
        munmap(range, 2 * a->bytes);
    return nami_fail(NAMI_EENV,
                     "backend emu: %zu bytes of address space twice were refused: %s "
                     "(emu.memory sets the size)",
                     a->bytes, strerror(why));
}

void nami_arena_close(nami_arena *a)
{
    while (a->first)
        nami_arena_give(a, a->host + a->first->at);
    if (a->host)
        munmap(a->host, 2 * a->bytes);
    *a = (nami_arena){0};
}

/* The link behind which `span` bytes are free, and where; NULL when there is no room. */
static nami_arena_block **find_gap(nami_arena *a, size_t span, size_t *at)
{
    nami_arena_block **link = &a->first;
    *at = 0;
    for (; *link; link = &(*link)->next) {
        if ((*link)->at - *at >= span)
            return link;
        *at = (*link)->at + (*link)->span;
    }
    return a->bytes - *at >= span ? link : NULL;
}

void *nami_arena_take(nami_arena *a, nami_tag tag, size_t bytes)
{
    if (bytes > a->bytes)
        return NULL;
    size_t use = (bytes + a->page - 1) / a->page * a->page, at;
    nami_arena_block **link = find_gap(a, use + a->page, &at);
    if (!link)
        return NULL;
    nami_arena_block *b = nami_alloc(NAMI_MEM_OTHER, sizeof *b);
    *b = (nami_arena_block){
        .next = *link, .at = at, .span = use + a->page, .bytes = bytes, .tag = tag};
    *link = b;
    char *host = a->host + at, *lane = nami_arena_lane(a, host);
    if (use > 0 && mprotect(lane, use, PROT_READ | PROT_WRITE) != 0)
        nami_die(nami_fail(NAMI_EENV, "backend emu: %zu bytes cannot be mapped: %s",
                           use, strerror(errno)));
    if (use > 0)
        memset(lane, POISON, use);
    nami_memory_note(tag, (ptrdiff_t)bytes);
    return host;
}

void nami_arena_give(nami_arena *a, void *block)
{
    if (!block)
        return;
    nami_arena_block **link = &a->first;
    while (*link && a->host + (*link)->at != block)
        link = &(*link)->next;
    NAMI_CHECK(*link);
    nami_arena_block *b = *link;
    char *lane = nami_arena_lane(a, block);
    size_t use = b->span - a->page;
    NAMI_CHECK(use == 0 || (madvise(lane, use, MADV_REMOVE) == 0 &&
                            mprotect(lane, use, PROT_NONE) == 0));
    nami_memory_note(b->tag, -(ptrdiff_t)b->bytes);
    *link = b->next;
    nami_free(b);
}

size_t nami_arena_used(const nami_arena *a)
{
    size_t sum = 0;
    for (const nami_arena_block *b = a->first; b; b = b->next)
        sum += b->span;
    return sum;
}
