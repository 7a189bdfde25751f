/* SPDX-License-Identifier: MIT */
/* memory.c - tagged memory: a header of one cache line lies before every block. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/status.h"

enum { LINE = 64 };
static const size_t huge_page = (size_t)2 << 20;

typedef struct head {
    void *base;     /* what free() takes */
    size_t bytes;   /* asked for */
    nami_tag tag;   /* counted under */
    uint32_t magic; /* guards against foreign and already freed pointers */
} head;

_Static_assert(sizeof(head) <= LINE, "the header fits the gap before a block");

static const uint32_t alive = 0x6e616d69u;
static _Atomic size_t now[NAMI_MEM_TAGS];
static _Atomic size_t peak[NAMI_MEM_TAGS];
static _Atomic long blocks;

static const char *const tag_name[NAMI_MEM_TAGS] = {
    [NAMI_MEM_OTHER] = "other",         [NAMI_MEM_PARAMETER] = "parameter",
    [NAMI_MEM_PACKED] = "packed",       [NAMI_MEM_GRADIENT] = "gradient",
    [NAMI_MEM_OPTIMIZER] = "optimizer", [NAMI_MEM_ACTIVATION] = "activation",
    [NAMI_MEM_TRANSIENT] = "transient", [NAMI_MEM_MESSAGE] = "message",
    [NAMI_MEM_DATA] = "data",
};

static head *head_of(void *block)
{
    head *h = (head *)(void *)((char *)block - LINE);
    NAMI_CHECK(h->magic == alive);
    return h;
}

static void count_up(nami_tag tag, size_t bytes)
{
    size_t sum = atomic_fetch_add(&now[tag], bytes) + bytes;
    size_t old = atomic_load(&peak[tag]);
    while (sum > old && !atomic_compare_exchange_weak(&peak[tag], &old, sum))
        ;
}

void nami_memory_note(nami_tag tag, ptrdiff_t bytes)
{
    NAMI_CHECK(tag >= 0 && tag < NAMI_MEM_TAGS);
    count_up(tag, (size_t)bytes); /* the sum wraps around to a smaller one */
}

/* `bytes` and room for the header before them; the block starts at base + alignment. */
static void *take(nami_tag tag, size_t bytes, size_t alignment)
{
    void *base = NULL;
    if (bytes > PTRDIFF_MAX - alignment ||
        posix_memalign(&base, alignment, alignment + bytes)) {
        nami_fail(
            NAMI_EENV,
            "memory exhausted: %zu bytes for '%s' refused, %zu bytes are in use for it",
            bytes, nami_memory_name(tag), nami_memory_now(tag));
        nami_die(NAMI_EENV);
    }
    if (alignment == huge_page)
        madvise(base, alignment + bytes, MADV_HUGEPAGE);
    char *block = (char *)base + alignment;
    *(head *)(void *)(block - LINE) =
        (head){.base = base, .bytes = bytes, .tag = tag, .magic = alive};
    count_up(tag, bytes);
    atomic_fetch_add(&blocks, 1);
    return block;
}

void *nami_alloc(nami_tag tag, size_t bytes)
{
    NAMI_CHECK(tag >= 0 && tag < NAMI_MEM_TAGS);
    if (bytes == 0)
        bytes = 1;
    return take(tag, bytes, bytes >= 2 * huge_page ? huge_page : LINE);
}

void *nami_calloc(nami_tag tag, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        nami_fail(NAMI_EENV,
                  "memory exhausted: %zu items of %zu bytes for '%s' exceed the "
                  "address space",
                  count, size, nami_memory_name(tag));
        nami_die(NAMI_EENV);
    }
    return memset(nami_alloc(tag, bytes), 0, bytes);
}

void *nami_realloc(nami_tag tag, void *old, size_t bytes)
{
    if (!old)
        return nami_alloc(tag, bytes);
    head *h = head_of(old);
    void *fresh = nami_alloc(h->tag, bytes);
    memcpy(fresh, old, h->bytes < bytes ? h->bytes : bytes);
    nami_free(old);
    return fresh;
}

void nami_free(void *block)
{
    if (!block)
        return;
    head *h = head_of(block);
    atomic_fetch_sub(&now[h->tag], h->bytes);
    atomic_fetch_sub(&blocks, 1);
    h->magic = 0;
    free(h->base);
}

size_t nami_memory_now(nami_tag tag)
{
    return atomic_load(&now[tag]);
}

size_t nami_memory_peak(nami_tag tag)
{
    return atomic_load(&peak[tag]);
}

const char *nami_memory_name(nami_tag tag)
{
    return tag >= 0 && tag < NAMI_MEM_TAGS ? tag_name[tag] : "unknown";
}

long nami_memory_blocks(void)
{
    return atomic_load(&blocks);
}

size_t nami_memory_resident(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*s %zu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t nami_memory_resident_peak(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage))
        return 0;
    return (size_t)usage.ru_maxrss * 1024; /* Linux counts KiB */
}
