/* SPDX-License-Identifier: MIT */
/* decode_png.c - PNG by libpng's simplified interface (libpng 1.6). */
#include "config.h"

#include "data/decode.h"

#ifdef NAMI_HAVE_PNG
#include <png.h>

#include "base/memory.h"

nami_status nami_decode_png(const char *name, const unsigned char *file, size_t bytes,
                            int channels, nami_bitmap *out)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    const png_color black = {0, 0, 0};
    if (!png_image_begin_read_from_memory(&image, file, bytes))
        return nami_fail(NAMI_EINPUT, "%s is a damaged PNG file (%s)", name,
                         image.message);
    image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    nami_status status =
        nami_bitmap_make(name, image.height, image.width, channels, out);
    if (status == NAMI_OK &&
        !png_image_finish_read(&image, &black, out->pixel, 0, NULL))
        status = nami_fail(NAMI_EINPUT, "%s is a damaged PNG file (%s)", name,
                           image.message);
    png_image_free(&image);
    if (status != NAMI_OK) {
        nami_free(out->pixel);
        out->pixel = NULL;
    }
    return status;
}
#else
nami_status nami_decode_png(const char *name, const unsigned char *file, size_t bytes,
                            int channels, nami_bitmap *out)
{
    (void)file, (void)bytes, (void)channels, (void)out;
    return nami_fail(NAMI_EINPUT,
                     "%s is a PNG file, and this build has no libpng: install "
                     "libpng-dev and configure again",
                     name);
}
#endif
