/* SPDX-License-Identifier: MIT */
/* arena.h - the address space of the imitated device.
 *
 * Memory is mapped twice. Its addresses on the host fault when they are touched; the lanes use the same
 * memory at a fixed offset. There, blocks that are not alive and the page after each block fault too.
 * Fresh memory is full of NaN in every floating type.
 */
#ifndef NAMI_BACKEND_EMU_ARENA_H
#define NAMI_BACKEND_EMU_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct nami_arena_block {
    struct nami_arena_block *next; /* in order of address */
    size_t at;                     /* bytes from the start */
    size_t span;                   /* bytes, whole pages, with the guard page */
    size_t bytes;                  /* asked for */
    nami_tag tag;
} nami_arena_block;

typedef struct nami_arena {
    char *host;   /* start of the addresses that the host sees */
    size_t bytes; /* of the device; also the distance to the lanes' addresses */
    size_t page;
    nami_arena_block *first;
} nami_arena;

/* Local. Status: NAMI_EENV when the system refuses. Closed with nami_arena_close. */
nami_status nami_arena_open(nami_arena *a, size_t bytes);
void nami_arena_close(nami_arena *a);

/* A block of `bytes`, poisoned and counted under `tag`; NULL when there is no room. Local. */
void *nami_arena_take(nami_arena *a, nami_tag tag, size_t bytes);
void nami_arena_give(nami_arena *a, void *block); /* NULL allowed */

/* Bytes taken, whole pages. Local. */
size_t nami_arena_used(const nami_arena *a);

static inline bool nami_arena_has(const nami_arena *a, const void *p)
{
    return (const char *)p >= a->host && (const char *)p < a->host + a->bytes;
}

/* Where the lanes find the device address p. */
static inline void *nami_arena_lane(const nami_arena *a, const void *p)
{
    return (char *)(uintptr_t)p + a->bytes;
}

#endif
