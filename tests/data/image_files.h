/* SPDX-License-Identifier: MIT */
/* image_files.h - files of images for the tests of data/: IDX, CIFAR, PNG, JPEG. */
#ifndef TESTS_DATA_IMAGE_FILES_H
#define TESTS_DATA_IMAGE_FILES_H

#include "config.h"

#include "data/files.h"

#include <sys/stat.h>
#ifdef NAMI_HAVE_JPEG
#include <jpeglib.h>
#endif
#ifdef NAMI_HAVE_PNG
#include <png.h>
#endif

#include "base/rng.h"
#include "data/images.h"

static inline void big32(unsigned char *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> (24 - 8 * i));
}

/* An IDX file of unsigned bytes; extents after the first are left out when 0. Freed with nami_free. */
static inline unsigned char *idx(const uint8_t *data, int64_t n, int64_t height,
                                 int64_t width, size_t *bytes)
{
    int dimensions = height ? 3 : 1;
    size_t head = 4 + 4 * (size_t)dimensions,
           all = (size_t)(n * (height ? height * width : 1));
    unsigned char *p = nami_calloc(NAMI_MEM_OTHER, head + all, 1);
    p[2] = 8;
    p[3] = (unsigned char)dimensions;
    big32(p + 4, (uint32_t)n);
    if (height) {
        big32(p + 8, (uint32_t)height);
        big32(p + 12, (uint32_t)width);
    }
    memcpy(p + head, data, all);
    *bytes = head + all;
    return p;
}

/* `bytes` random bytes below `limit`; freed with nami_free. */
static inline uint8_t *noise_below(size_t bytes, int limit, uint64_t seed)
{
    uint8_t *p = nami_alloc(NAMI_MEM_OTHER, bytes);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)(nami_mix(seed, i) % (uint64_t)limit);
    return p;
}

/* Import two files or one. */
static inline nami_status import_images(nami_import_format format, const char *first,
                                        const char *second, const char *out,
                                        double split)
{
    char *input[2] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second};
    nami_import im = {.format = format,
                      .input = input,
                      .inputs = second ? 2 : 1,
                      .output = out,
                      .split = split};
    return nami_import_run(&im);
}

#ifdef NAMI_HAVE_PNG
/* A PNG of [H,W,channels]; *bytes of it, freed with nami_free. */
static inline unsigned char *png(const uint8_t *pixel, int height, int width,
                                 int channels, size_t *bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    png_alloc_size_t length = 0;
    assert_true(png_image_write_to_memory(&image, NULL, &length, 0, pixel, 0, NULL));
    unsigned char *p = nami_alloc(NAMI_MEM_OTHER, length);
    assert_true(png_image_write_to_memory(&image, p, &length, 0, pixel, 0, NULL));
    *bytes = length;
    return p;
}
#endif

#ifdef NAMI_HAVE_JPEG
/* A JPEG of [H,W,channels] (4: inks) of the best quality; freed with nami_free. */
static inline unsigned char *jpeg(const uint8_t *pixel, int height, int width,
                                  int channels, bool progressive, size_t *bytes)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long length = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &length);
    c.image_width = (JDIMENSION)width;
    c.image_height = (JDIMENSION)height;
    c.input_components = channels;
    c.in_color_space = channels == 1   ? JCS_GRAYSCALE
                       : channels == 3 ? JCS_RGB
                                       : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 100, TRUE);
    if (progressive)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row[1] = {
            (JSAMPROW)(uintptr_t)(pixel + (size_t)c.next_scanline *
                                              (size_t)(width * channels))};
        assert_int_equal(jpeg_write_scanlines(&c, row, 1), 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    unsigned char *p = nami_alloc(NAMI_MEM_OTHER, length);
    memcpy(p, data, length);
    free(data);
    *bytes = length;
    return p;
}
#endif

#endif
