/* SPDX-License-Identifier: MIT */
/* tokens.h - tokens as numbers of one or two bytes: checksum, range check, text form. */
#ifndef NAMI_DATA_TOKENS_H
#define NAMI_DATA_TOKENS_H

#include <stdint.h>

#include "base/text.h"

/* Bytes a token takes in a data set of this vocabulary: 1 up to 256, else 2. Local. */
int nami_tokens_width(int64_t vocabulary);

/* Continue CRC-32 `sum` (0 at the start) over `count` tokens of `width` bytes (1, 2; 8 of offsets), taken as little-endian
 * bytes. Local. */
uint32_t nami_tokens_checksum(uint32_t sum, const void *token, int64_t count,
                              int width);

/* A checksum as data sets write it, "crc32:9f1c02aa", into buf; returns buf. Local. */
const char *nami_tokens_sum_text(char buf[16], uint32_t sum);

/* Checksum of two parts in a row from those of the parts; `bytes` is the length of the second. Local. */
uint32_t nami_tokens_combine(uint32_t first, uint32_t second, int64_t bytes);

/* Index of the first token >= vocabulary, -1 when there is none. Local. */
int64_t nami_tokens_outside(const void *token, int64_t count, int width,
                            int64_t vocabulary);

/* Append tokens as people read them: of kind "bytes" the bytes themselves (a NUL, which a text cannot hold, as "?"),
 * of any other kind their numbers, each followed by a blank. Local. */
void nami_tokens_text(const char *kind, const int32_t *token, int64_t count,
                      nami_text *out);

#endif
