/* SPDX-License-Identifier: MIT */
/* memory.h - tagged memory with a balance.
 *
 * Every byte the program asks for goes through here, so that "predicted = allocated" can be asserted
 * per tag and a leak is seen at exit. Blocks are aligned to 64 bytes, large ones to 2 MiB.
 * Exhausted memory ends the program by nami_die(NAMI_EENV): no caller checks for NULL.
 */
#ifndef NAMI_BASE_MEMORY_H
#define NAMI_BASE_MEMORY_H

#include <stddef.h>

typedef enum nami_tag {
    NAMI_MEM_OTHER,      /* lists, strings, tables */
    NAMI_MEM_PARAMETER,  /* parameters: master copies and versions */
    NAMI_MEM_PACKED,     /* parameters in the compute type and layout */
    NAMI_MEM_GRADIENT,   /* gradient sums */
    NAMI_MEM_OPTIMIZER,  /* optimiser state */
    NAMI_MEM_ACTIVATION, /* saved from forward to backward, per micro-batch in flight */
    NAMI_MEM_TRANSIENT,  /* alive inside one action; library scratchpads */
    NAMI_MEM_MESSAGE,    /* activations and gradients sent, received and staged */
    NAMI_MEM_DATA,       /* samples read ahead */
    NAMI_MEM_TAGS
} nami_tag;

/* `bytes` of uninitialised memory; at least one byte. Local. */
void *nami_alloc(nami_tag tag, size_t bytes);

/* `count` items of `size` bytes, zeroed; dies when the product overflows. Local. */
void *nami_calloc(nami_tag tag, size_t count, size_t size);

/* Change the size of `old` (NULL allowed), keeping its tag and contents. Local. */
void *nami_realloc(nami_tag tag, void *old, size_t bytes);

/* Give back; NULL allowed. Local. */
void nami_free(void *block);

/* Count `bytes` more of a device's own memory under `tag` (negative: fewer). Local. */
void nami_memory_note(nami_tag tag, ptrdiff_t bytes);

/* Bytes asked for under `tag` now, and the most so far. Local. */
size_t nami_memory_now(nami_tag tag);
size_t nami_memory_peak(nami_tag tag);

/* The name of a tag, "activation". Local. */
const char *nami_memory_name(nami_tag tag);

/* Blocks not given back; 0 at exit, or there is a leak. Local. */
long nami_memory_blocks(void);

/* Resident size of this process and its maximum, bytes; 0 when the system does not tell. Local. */
size_t nami_memory_resident(void);
size_t nami_memory_resident_peak(void);

#endif
