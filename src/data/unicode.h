/* SPDX-License-Identifier: MIT */
/* unicode.h - UTF-8 and the classes of characters that tokenizers split at. */
#ifndef NAMI_DATA_UNICODE_H
#define NAMI_DATA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nami_char {
    NAMI_CHAR_LETTER, /* general category L */
    NAMI_CHAR_NUMBER, /* N */
    NAMI_CHAR_SPACE,  /* White_Space */
    NAMI_CHAR_OTHER
} nami_char;

nami_char nami_unicode_class(uint32_t c); /* Local, pure. */

typedef struct nami_unicode_range {
    uint32_t first, last;
} nami_unicode_range;

/* Whether `c` lies in one of `count` ranges, which ascend. Local, pure. */
bool nami_unicode_within(const nami_unicode_range *r, size_t count, uint32_t c);

/* Decode the character at p, of which `bytes` >= 1 are there, and return its bytes; what is no UTF-8 is U+FFFD of one byte.
 * Local, pure. */
int nami_unicode_next(const unsigned char *p, int64_t bytes, uint32_t *c);

#endif
