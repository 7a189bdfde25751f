/* SPDX-License-Identifier: MIT */
/* tokens.c - checksum, range check and text form of tokens. */
#include "data/tokens.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

int nami_tokens_width(int64_t vocabulary)
{
    return vocabulary <= 256 ? 1 : 2;
}

/* Element i as little-endian bytes. */
static void little(const void *token, int64_t i, int width, unsigned char *out)
{
    uint64_t x =
        width == 2 ? ((const uint16_t *)token)[i] : ((const uint64_t *)token)[i];
    for (int k = 0; k < width; k++)
        out[k] = (unsigned char)(x >> 8 * k);
}

uint32_t nami_tokens_checksum(uint32_t sum, const void *token, int64_t count, int width)
{
    if (width == 1)
        return (uint32_t)crc32_z(sum, token, (size_t)count);
    unsigned char bytes[4096];
    for (int64_t at = 0; at < count;) {
        size_t n = 0;
        for (; n < sizeof bytes && at < count; at++, n += (size_t)width)
            little(token, at, width, bytes + n);
        sum = (uint32_t)crc32_z(sum, bytes, n);
    }
    return sum;
}

const char *nami_tokens_sum_text(char buf[16], uint32_t sum)
{
    (void)snprintf(buf, 16, "crc32:%08x", (unsigned)sum);
    return buf;
}

uint32_t nami_tokens_combine(uint32_t first, uint32_t second, int64_t bytes)
{
    return (uint32_t)crc32_combine(first, second, (z_off_t)bytes);
}

int64_t nami_tokens_outside(const void *token, int64_t count, int width,
                            int64_t vocabulary)
{
    const uint8_t *byte = token;
    const uint16_t *word = token;
    for (int64_t i = 0; i < count; i++)
        if ((width == 1 ? byte[i] : word[i]) >= vocabulary)
            return i;
    return -1;
}

void nami_tokens_text(const char *kind, const int32_t *token, int64_t count,
                      nami_text *out)
{
    bool bytes = !strcmp(kind, "bytes");
    for (int64_t i = 0; i < count; i++) {
        if (!bytes)
            nami_text_add(out, "%d ", (int)token[i]);
        else if (token[i] > 0 && token[i] < 256)
            nami_text_add(out, "%c", (int)token[i]);
        else
            nami_text_add(out, "?");
    }
}
