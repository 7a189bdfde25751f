/* SPDX-License-Identifier: MIT */
/* decode.h - JPEG and PNG files in memory into pixels, by libjpeg and libpng where they were found. */
#ifndef NAMI_DATA_DECODE_H
#define NAMI_DATA_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A larger picture is refused before it is unpacked: a small file can announce any size. */
enum { NAMI_BITMAP_SIDE = 16384, NAMI_BITMAP_PIXELS = 1 << 26 };

typedef struct nami_bitmap {
    int64_t height, width, channels; /* 1 (grey) or 3 (red, green, blue) */
    uint8_t *pixel;                  /* [H,W,channels], owned: nami_free */
} nami_bitmap;

/* Decode `bytes` bytes of `file`, called `name` in messages, to `channels` channels; transparent parts become black. Local.
 * Status: NAMI_EINPUT neither JPEG nor PNG, damaged, too large; a format that this build lacks. */
nami_status nami_decode(const char *name, const unsigned char *file, size_t bytes,
                        int channels, nami_bitmap *out);

/* The parts of nami_decode. Local. */
nami_status nami_decode_jpeg(const char *name, const unsigned char *file, size_t bytes,
                             int channels, nami_bitmap *out);
nami_status nami_decode_png(const char *name, const unsigned char *file, size_t bytes,
                            int channels, nami_bitmap *out);

/* Refuse sizes beyond the limits, else allocate out->pixel. Local. Status: NAMI_EINPUT. */
nami_status nami_bitmap_make(const char *name, int64_t height, int64_t width,
                             int channels, nami_bitmap *out);

/* The middle square of `in`, scaled so that its shorter side is `side`, as planes out u8 [channels,side,side]; `side` 0: all
 * of it as it is, out [channels,H,W]. Triangle filter, as wide as the scale where it shrinks. Local, pure. */
void nami_bitmap_planes(const nami_bitmap *in, int64_t side, uint8_t *out);

#endif
