/* SPDX-License-Identifier: MIT */
/* sample.c - what the samples of a model consist of, and which of their targets count. */
#include <string.h>

#include "model/family.h"

static nami_model_sample masked_sample(const nami_model_options *o, int64_t time)
{
    return (nami_model_sample){.kind = NAMI_SAMPLE_MASKED,
                               .time = time,
                               .masked = o->predictions,
                               .words = 2 * time + 1,
                               .side = 1,
                               .targets = 2 * o->predictions + 1,
                               .losses = 2,
                               .classes = o->vocabulary};
}

nami_model_sample nami_model_sample_of(const nami_model *m, int64_t time)
{
    const nami_model_options *o = &m->options;
    if (m->family->masked)
        return masked_sample(o, time);
    if (!m->family->images)
        return (nami_model_sample){.kind = NAMI_SAMPLE_TOKENS,
                                   .time = time,
                                   .words = time,
                                   .targets = time,
                                   .losses = 1,
                                   .classes = o->vocabulary};
    return (nami_model_sample){.kind = NAMI_SAMPLE_IMAGE,
                               .time = 1,
                               .height = o->image_height,
                               .width = o->image_width,
                               .channels = o->image_channels,
                               .words =
                                   o->image_height * o->image_width * o->image_channels,
                               .targets = 1,
                               .losses = 1,
                               .classes = o->classes};
}

bool nami_model_takes_sentences(const nami_model_options *o)
{
    return nami_families[o->family]->masked;
}

void nami_model_counted(const nami_model_sample *s, const int32_t *target,
                        int64_t count, int64_t counted[NAMI_MODEL_LOSSES])
{
    const int64_t first = s->masked; /* numbers of rows are no targets */
    const int64_t end = s->losses > 1 ? s->targets - 1 : s->targets;
    for (int64_t i = 0; i < count; i++, target += s->targets) {
        for (int64_t k = first; k < end; k++)
            counted[0] += target[k] >= 0;
        if (s->losses > 1)
            counted[1] += target[end] >= 0;
    }
}

void nami_model_blank(const nami_model_sample *s, int32_t *token, int32_t *target)
{
    for (int64_t i = 0; token && i < s->words; i++)
        token[i] = i == s->words - 1 && s->side > 0; /* one token is real */
    for (int64_t i = 0; target && i < s->targets; i++)
        target[i] = i < s->masked ? 0 : -1;
}

void nami_model_make_up(const nami_model_sample *s, uint64_t seed, int32_t *token,
                        int32_t *target)
{
    const uint64_t classes = (uint64_t)s->classes, time = (uint64_t)s->time;
    const uint64_t length = time / 2 + nami_mix(seed, 1) % (time - time / 2) + 1;
    const uint64_t real = s->kind == NAMI_SAMPLE_MASKED ? length : time;
    for (int64_t i = 0; token && i < s->words; i++) {
        const uint64_t r = nami_mix(seed + 2, (uint64_t)i);
        const float pixel = (float)nami_normal(seed, (uint64_t)i);
        if (s->kind == NAMI_SAMPLE_IMAGE)
            memcpy(&token[i], &pixel, sizeof pixel);
        else if (i < s->time)
            token[i] = (int32_t)(r % classes);
        else
            token[i] = i < 2 * s->time ? i - s->time >= s->time / 3 : (int32_t)real;
    }
    for (int64_t i = 0; target && i < s->targets; i++) {
        const uint64_t r = nami_mix(seed + 3, (uint64_t)i);
        target[i] = r % 8 == 0 ? -1 : (int32_t)(r / 8 % classes);
    }
    for (int64_t k = 0; target && k < s->masked; k++) {
        const int64_t row = (int64_t)(nami_mix(seed + 4, 0) % real) + k;
        target[k] = row < (int64_t)real ? (int32_t)row : 0;
        if (row >= (int64_t)real)
            target[s->masked + k] = -1;
    }
    if (target && s->losses > 1)
        target[s->targets - 1] = (int32_t)(nami_mix(seed, 5) % 3) - 1;
}
