/* SPDX-License-Identifier: MIT */
/* images.h - sets of labelled images in HDF5, and what a model sees of an image.
 *
 * A set: arrays /images u8 [N,C,H,W] and /labels u8 or u16 [N]; attributes kind ("images"), samples, classes, checksum (of
 * the pixels, "crc32:9f1c02aa"), label_checksum (of the labels as little-endian bytes), mean and deviation (one number a
 * channel, of pixels divided by 255), names (of the classes, one a line, or ""), source.
 *
 * Labels are verified at open and kept; so are the pixels of a set of at most NAMI_DATA_WHOLE bytes by those who read them.
 */
#ifndef NAMI_DATA_IMAGES_H
#define NAMI_DATA_IMAGES_H

#include "data/data.h"

enum { NAMI_CHANNELS = 4, NAMI_IMAGE_SIDE = 65535, NAMI_CLASSES = 65536 };

typedef struct nami_image_facts {
    int64_t samples, channels, height, width, classes;
    double mean[NAMI_CHANNELS], deviation[NAMI_CHANNELS]; /* of pixels / 255 */
} nami_image_facts;

typedef struct nami_images nami_images;

/* Open. Collective on c; c NULL: this process alone. Status: NAMI_EINPUT missing, truncated, damaged, of tokens. */
nami_status nami_images_open(nami_comm *c, const char *path, nami_images **out);
void nami_images_close(nami_images *d); /* Collective; NULL allowed. */
const nami_image_facts *nami_images_facts(const nami_images *d);
const char *nami_images_names(const nami_images *d); /* of the classes; "" */
const char *nami_images_identity(
    const nami_images *d); /* checksums and sizes, for the checkpoint */

/* Read `count` <= NAMI_CHANNELS numbers of [least, 1e6] with blanks between from `text`, all of it. Local. */
bool nami_image_numbers(const char *text, double least, int64_t count, double *out);

/* Number of the image that global training sample `counter` >= 0 is: each epoch visits all `samples` once, in the order of
 * a keyed permutation. Local, pure. */
int64_t nami_image_index(int64_t samples, uint64_t key, int64_t counter);

/* Pixels u8 [C,H,W] of image `index`; valid until the next call. Local. Status: NAMI_EENV a failed read. */
nami_status nami_images_pixels(nami_images *d, int64_t index, const uint8_t **pixel);
int32_t nami_images_label(const nami_images *d, int64_t index);

/* How an image of a set becomes one of a model: padded with black by `pad` on each side; for training, shifted by up to
 * `crop` pixels (black moves in), mirrored with probability 1/2 and a square of side `cutout` set to the mean with
 * probability `erase`; then (pixel/255 - mean)/deviation. */
typedef struct nami_view {
    int64_t channels, height, width; /* stored */
    int64_t pad, crop, cutout;       /* pixels */
    bool flip;
    double erase;
    double mean[NAMI_CHANNELS], deviation[NAMI_CHANNELS];
} nami_view;

/* What chance does to one sample. */
typedef struct nami_chance {
    /* pixels that are cut off above and on the left; negative: added */
    int64_t down, right;
    bool mirror, cut;
    int64_t row, column; /* centre of the square, in the seen image */
} nami_chance;

/* The chances of global training sample `counter`: a function of (view, key, counter) alone. Local, pure. */
nami_chance nami_view_chance(const nami_view *v, uint64_t key, int64_t counter);

/* The seen image into out f32 [H + 2 pad, W + 2 pad, C], channels fastest; `chance` NULL: without augmentation. Local,
 * pure. */
void nami_view_see(const nami_view *v, const nami_chance *chance, const uint8_t *pixel,
                   float *out);

#endif
