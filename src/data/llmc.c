/* SPDX-License-Identifier: MIT */
/* llmc.c - the header of a token shard of llm.c. */
#include "data/llmc.h"

enum { HEADER = 1024 }; /* bytes */

static int32_t little32(const unsigned char *p)
{
    return (int32_t)(p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                     (uint32_t)p[3] << 24);
}

/* What a wrong magic number of llm.c stands for. */
static nami_status other_file(const char *name, int32_t magic)
{
    if (magic == 20240801)
        return nami_fail(
            NAMI_EINPUT,
            "%s holds 32-bit tokens (magic %d, Llama 3), which data sets of "
            "at most 65536 tokens cannot hold",
            name, (int)magic);
    if (magic == 20240522)
        return nami_fail(NAMI_EINPUT,
                         "%s is an llm.c evaluation file (magic %d), not a token shard",
                         name, (int)magic);
    if (magic == 20240326)
        return nami_fail(NAMI_EINPUT,
                         "%s is an llm.c checkpoint (magic %d), not a token shard",
                         name, (int)magic);
    return nami_fail(
        NAMI_EINPUT,
        "%s is not an llm.c token shard: magic %d where 20240520 is expected", name,
        (int)magic);
}

nami_status nami_llmc_header(nami_source *s, int64_t *tokens)
{
    unsigned char header[HEADER];
    const char *name = nami_source_name(s);
    int64_t length = nami_source_length(s);
    if (length < HEADER)
        return nami_fail(NAMI_EINPUT,
                         "%s has %lld bytes, less than the 1024 of an llm.c header",
                         name, (long long)length);
    NAMI_TRY(nami_source_read(s, header, sizeof header));
    if (little32(header) != 20240520)
        return other_file(name, little32(header));
    if (little32(header + 4) != 1)
        return nami_fail(NAMI_EINPUT,
                         "%s is an llm.c token shard of version %d, expected 1", name,
                         (int)little32(header + 4));
    *tokens = little32(header + 8);
    if (*tokens < 0 || HEADER + 2 * *tokens != length)
        return nami_fail(NAMI_EINPUT,
                         "%s announces %lld tokens and has %lld bytes, where 1024 + 2 "
                         "bytes a token are expected: it is truncated or damaged",
                         name, (long long)*tokens, (long long)length);
    return NAMI_OK;
}
