/* SPDX-License-Identifier: MIT */
/* text.h - strings: a growing text, JSON values, the nearest known word. */
#ifndef NAMI_BASE_TEXT_H
#define NAMI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text that grows; {0} is empty. `data` is NUL-terminated or NULL when nothing was added. */
typedef struct nami_text {
    char *data;
    size_t length;   /* bytes without the NUL */
    size_t capacity; /* bytes allocated */
} nami_text;

/* Append formatted text. Local. */
void nami_text_add(nami_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append `s` as a quoted JSON string. Local. */
void nami_text_json(nami_text *t, const char *s);

/* Append a number as JSON: shortest digits that read back the same; NaN and infinity become null. Local. */
void nami_text_number(nami_text *t, double x);

/* The contents, "" when empty; valid until the next call on t. Local. */
const char *nami_text_get(const nami_text *t);
void nami_text_free(nami_text *t);

/* A copy of `s` (NULL gives NULL), freed with nami_free. Local. */
char *nami_strdup(const char *s);

/* Formatted copy, freed with nami_free. Local. */
char *nami_strf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Edit distance of two words (insert, delete, replace, swap of neighbours). Local. */
int nami_distance(const char *a, const char *b);

/* Index of the word of words[0..n) nearest to `s`, -1 when none is near enough to be meant. Local. */
int nami_nearest(const char *s, const char *const *words, int n);

/* Whole-string conversions; false when `s` is not exactly one number or it overflows. Local. */
bool nami_parse_int(const char *s, int64_t *out);
bool nami_parse_real(const char *s, double *out);

/* "90", "1:30", "1:30:00" (H:MM:SS), "90s", "15m", "2h", "5ms", "20us" to seconds. Local. */
bool nami_parse_duration(const char *s, double *seconds);

/* "s" behind a noun of which there are `n`, "" behind one of one. Local, pure. */
const char *nami_plural(int64_t n);

/* Bytes for people, "1.5 GiB", into buf[32]; returns buf. Local. */
const char *nami_human_bytes(double bytes, char buf[32]);

#endif
