/* SPDX-License-Identifier: MIT */
/* clear.c - setting memory to zero: sums of gradients, once a step.
 *
 * Large blocks go past the caches: a plain store reads its line from memory first, and what is cleared is larger than
 * the caches anyway.
 */
#include "backend/cpu/cpu.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

enum {
    PIECE = 1 << 16, /* bytes of a unit */
    PAST = 1 << 21   /* bytes from which on stores go past the caches */
};

typedef struct job {
    char *to;
    size_t bytes;
} job;

/* Zero `bytes` bytes, past the caches as far as whole lines reach. */
static void stream(char *to, size_t bytes)
{
#ifdef __SSE2__
    const size_t first = (64 - (uintptr_t)to % 64) % 64;
    if (bytes >= first + 64) {
        const size_t lines = (bytes - first) / 64 * 64;
        memset(to, 0, first);
        for (size_t i = 0; i < lines; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + first + i), _mm_setzero_si128());
        memset(to + first + lines, 0, bytes - first - lines);
        return;
    }
#endif
    memset(to, 0, bytes);
}

static void clear_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const job *j = args;
    const size_t from = (size_t)first * PIECE, upto = (size_t)end * PIECE;
    const size_t bytes = (upto < j->bytes ? upto : j->bytes) - from;
    if (j->bytes < PAST)
        memset(j->to + from, 0, bytes);
    else
        stream(j->to + from, bytes);
#ifdef __SSE2__
    _mm_sfence();
#endif
}

static int64_t pieces(const void *args)
{
    return (int64_t)((((const job *)args)->bytes + PIECE - 1) / PIECE);
}

static int64_t pieces_grain(const void *args)
{
    (void)args;
    return 8;
}

static const nami_cpu_kernel clear = {
    .range = clear_range, .units = pieces, .grain = pieces_grain};

void nami_cpu_clear(const nami_backend *b, void *to, size_t bytes)
{
    const job j = {to, bytes};
    nami_cpu_run(b, &clear, &j, NULL, 0);
}
