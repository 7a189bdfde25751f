/* SPDX-License-Identifier: MIT */
/* decode_jpeg.c - JPEG by libjpeg. */
#include "config.h"

#include "data/decode.h"

#ifdef NAMI_HAVE_JPEG
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

#include "base/memory.h"

enum { SCANS = 200 }; /* of a progressive file: each costs a pass over all pixels */

/* A decoder that comes back from errors. */
typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    char reason[JMSG_LENGTH_MAX];
    unsigned char *row; /* of four inks */
} decoder;

static void give_up(j_common_ptr jpeg)
{
    decoder *d = jpeg->client_data;
    jpeg->err->format_message(jpeg, d->reason);
    longjmp(d->back, 1);
}

/* Warnings mean damaged data. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0)
        give_up(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    decoder *d = jpeg->client_data;
    if (d->jpeg.input_scan_number <= SCANS)
        return;
    snprintf(d->reason, sizeof d->reason, "more than %d scans", SCANS);
    longjmp(d->back, 1);
}

/* Four inks, stored inverted as Adobe does, to `channels` channels. */
static void from_inks(const unsigned char *in, int64_t width, int channels,
                      uint8_t *out)
{
    for (int64_t x = 0; x < width; x++, in += 4) {
        int r = in[0] * in[3] / 255, g = in[1] * in[3] / 255, b = in[2] * in[3] / 255;
        if (channels == 1) {
            *out++ = (uint8_t)((299 * r + 587 * g + 114 * b + 500) / 1000);
            continue;
        }
        *out++ = (uint8_t)r;
        *out++ = (uint8_t)g;
        *out++ = (uint8_t)b;
    }
}

static void read_rows(decoder *d, nami_bitmap *out)
{
    bool inks = d->jpeg.out_color_space == JCS_CMYK;
    if (inks)
        d->row = nami_alloc(NAMI_MEM_DATA, 4 * (size_t)out->width);
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        uint8_t *row =
            out->pixel + d->jpeg.output_scanline * out->width * out->channels;
        JSAMPROW rows[1] = {inks ? d->row : row};
        if (jpeg_read_scanlines(&d->jpeg, rows, 1) == 1 && inks)
            from_inks(d->row, out->width, (int)out->channels, row);
    }
}

static nami_status decode(decoder *d, const char *name, const unsigned char *file,
                          size_t bytes, int channels, nami_bitmap *out)
{
    if (setjmp(d->back))
        return nami_fail(NAMI_EINPUT, "%s is a damaged JPEG file (%s)", name,
                         d->reason);
    jpeg_mem_src(&d->jpeg, (unsigned char *)(uintptr_t)file, (unsigned long)bytes);
    jpeg_read_header(&d->jpeg, TRUE);
    bool inks = d->jpeg.num_components == 4;
    d->jpeg.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    NAMI_TRY(nami_bitmap_make(name, d->jpeg.image_height, d->jpeg.image_width, channels,
                              out));
    jpeg_start_decompress(&d->jpeg);
    read_rows(d, out);
    jpeg_finish_decompress(&d->jpeg);
    return NAMI_OK;
}

nami_status nami_decode_jpeg(const char *name, const unsigned char *file, size_t bytes,
                             int channels, nami_bitmap *out)
{
    decoder *d = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *d);
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = give_up;
    d->errors.emit_message = on_message;
    d->jpeg.client_data = d;
    jpeg_create_decompress(&d->jpeg);
    d->progress.progress_monitor = on_progress;
    d->jpeg.progress = &d->progress;
    nami_status status = decode(d, name, file, bytes, channels, out);
    jpeg_destroy_decompress(&d->jpeg);
    nami_free(d->row);
    nami_free(d);
    if (status != NAMI_OK) {
        nami_free(out->pixel);
        out->pixel = NULL;
    }
    return status;
}
#else
nami_status nami_decode_jpeg(const char *name, const unsigned char *file, size_t bytes,
                             int channels, nami_bitmap *out)
{
    (void)file, (void)bytes, (void)channels, (void)out;
    return nami_fail(NAMI_EINPUT,
                     "%s is a JPEG file, and this build has no libjpeg: install "
                     "libjpeg-dev and configure again",
                     name);
}
#endif
