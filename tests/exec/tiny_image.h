/* SPDX-License-Identifier: MIT */
/* tiny_image.h - a vision transformer and images for it: for tiny_other and tiny_source of tiny.h. */
#ifndef NAMI_TESTS_EXEC_TINY_IMAGE_H
#define NAMI_TESTS_EXEC_TINY_IMAGE_H

#include "family.h"
#include "tiny.h"

enum { SIZE = 8, CHANNELS = 3, CLASSES = 7, WORDS = SIZE * SIZE * CHANNELS };

/* Of eight blocks. */
static inline nami_model *tiny_vit(const tiny_problem *p)
{
    nami_model *m = NULL;
    nami_model_options o = {.layers = 3,
                            .width = 12,
                            .heads = 3,
                            .mlp_width = 20,
                            .patch = 4,
                            .image_height = SIZE,
                            .image_width = SIZE,
                            .image_channels = CHANNELS,
                            .classes = CLASSES,
                            .label_smoothing = 0.1};
    o.family = family_named("vit");
    assert_ok(nami_model_new(&o, p->dropout, &m));
    return m;
}

/* Noise around a pattern of the class. */
static inline nami_status tiny_image_read(void *context, int64_t step, int64_t first,
                                          int64_t count, int32_t *token,
                                          int32_t *target)
{
    (void)context;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t key = nami_mix((uint64_t)step, (uint64_t)(first + i));
        const int32_t class = (int32_t)(key % CLASSES);
        for (int64_t w = 0; w < WORDS && token; w++) {
            const float pixel = (float)(0.5 * nami_normal(key, (uint64_t)w) +
                                        nami_normal((uint64_t) class, (uint64_t)w));
            memcpy(&token[i * WORDS + w], &pixel, sizeof pixel);
        }
        if (target)
            target[i] = class;
    }
    return NAMI_OK;
}

#endif
