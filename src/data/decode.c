/* SPDX-License-Identifier: MIT */
/* decode.c - which decoder a file needs. */
#include "data/decode.h"

#include <string.h>

#include "base/memory.h"

nami_status nami_bitmap_make(const char *name, int64_t height, int64_t width,
                             int channels, nami_bitmap *out)
{
    if (height < 1 || width < 1 || height > NAMI_BITMAP_SIDE ||
        width > NAMI_BITMAP_SIDE || height * width > NAMI_BITMAP_PIXELS)
        return nami_fail(NAMI_EINPUT,
                         "%s is a picture of %lld x %lld, where at most %d pixels and "
                         "sides of 1 to %d are expected",
                         name, (long long)width, (long long)height, NAMI_BITMAP_PIXELS,
                         NAMI_BITMAP_SIDE);
    *out = (nami_bitmap){.height = height, .width = width, .channels = channels};
    out->pixel = nami_calloc(NAMI_MEM_DATA, (size_t)(height * width), (size_t)channels);
    return NAMI_OK;
}

nami_status nami_decode(const char *name, const unsigned char *file, size_t bytes,
                        int channels, nami_bitmap *out)
{
    *out = (nami_bitmap){0};
    if (bytes >= 3 && !memcmp(file, "\xff\xd8\xff", 3))
        return nami_decode_jpeg(name, file, bytes, channels, out);
    if (bytes >= 8 && !memcmp(file, "\211PNG\r\n\032\n", 8))
        return nami_decode_png(name, file, bytes, channels, out);
    return nami_fail(NAMI_EINPUT, "%s is neither a JPEG nor a PNG file%s", name,
                     bytes == 0 ? ": it is empty" : "");
}
