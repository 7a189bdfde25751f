/* SPDX-License-Identifier: MIT */
/* image_sink.h - a set of images being written. */
#ifndef NAMI_DATA_IMAGE_SINK_H
#define NAMI_DATA_IMAGE_SINK_H

#include "data/images.h"
#include "data/sink.h"

typedef struct nami_image_sink {
    nami_sink base;         /* published and closed by the caller */
    nami_image_facts facts; /* mean and deviation at the end */
    int64_t written;        /* images so far */
    uint32_t sum, label_sum;
    uint64_t total[NAMI_CHANNELS], squares[NAMI_CHANNELS]; /* of pixels */
} nami_image_sink;

/* Start a set with the sizes of `facts` under a temporary name beside `path`. Local. */
nami_status nami_image_sink_open(const char *path, const nami_image_facts *facts,
                                 nami_image_sink *s);

/* Append `count` images u8 [count,C,H,W] with labels below the classes. Local. */
nami_status nami_image_sink_add(nami_image_sink *s, int64_t count, const uint8_t *pixel,
                                const uint16_t *label);

/* Write the attributes and bring everything to disk, still under the temporary name. Local. */
nami_status nami_image_sink_finish(nami_image_sink *s, const char *names,
                                   const char *source);

#endif
