/* SPDX-License-Identifier: MIT */
/* image_sink.c - a set of images being written. */
#include "data/image_sink.h"

#include <math.h>

#include "base/memory.h"
#include "data/tokens.h"

nami_status nami_image_sink_open(const char *path, const nami_image_facts *facts,
                                 nami_image_sink *s)
{
    *s = (nami_image_sink){.facts = *facts};
    const int64_t extent[4] = {facts->samples, facts->channels, facts->height,
                               facts->width};
    NAMI_TRY(nami_sink_begin(path, &s->base));
    NAMI_TRY(nami_store_define(s->base.store, "/images", NAMI_STORE_U8, 4, extent));
    nami_store_type type =
        nami_tokens_width(facts->classes) == 1 ? NAMI_STORE_U8 : NAMI_STORE_U16;
    return nami_store_define(s->base.store, "/labels", type, 1, extent);
}

/* Continue checksum, sums and sums of squares, which are exact: below 2^64 for 2^48 pixels. */
static void count_pixels(nami_image_sink *s, int64_t count, const uint8_t *pixel)
{
    int64_t plane = s->facts.height * s->facts.width;
    s->sum = nami_tokens_checksum(s->sum, pixel, count * s->facts.channels * plane, 1);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < s->facts.channels; c++, pixel += plane)
            for (int64_t e = 0; e < plane; e++) {
                s->total[c] += pixel[e];
                s->squares[c] += (uint64_t)pixel[e] * pixel[e];
            }
}

static nami_status add_labels(nami_image_sink *s, int64_t count, const uint16_t *label)
{
    uint8_t narrow[4096];
    if (nami_tokens_width(s->facts.classes) == 2) {
        s->label_sum = nami_tokens_checksum(s->label_sum, label, count, 2);
        return nami_store_write(s->base.store, "/labels", s->written, count, label);
    }
    for (int64_t at = 0; at < count;) {
        int64_t n = 0;
        while (n < (int64_t)sizeof narrow && at + n < count) {
            narrow[n] = (uint8_t)label[at + n];
            n++;
        }
        s->label_sum = nami_tokens_checksum(s->label_sum, narrow, n, 1);
        NAMI_TRY(
            nami_store_write(s->base.store, "/labels", s->written + at, n, narrow));
        at += n;
    }
    return NAMI_OK;
}

nami_status nami_image_sink_add(nami_image_sink *s, int64_t count, const uint8_t *pixel,
                                const uint16_t *label)
{
    const nami_image_facts *f = &s->facts;
    int64_t bytes = f->channels * f->height * f->width;
    NAMI_CHECK(s->written + count <= f->samples);
    for (int64_t i = 0; i < count; i++)
        NAMI_CHECK(label[i] < f->classes);
    count_pixels(s, count, pixel);
    NAMI_TRY(nami_store_write(s->base.store, "/images", s->written * bytes,
                              count * bytes, pixel));
    NAMI_TRY(add_labels(s, count, label));
    s->written += count;
    return NAMI_OK;
}

static void find_moments(nami_image_sink *s)
{
    double pixels =
        (double)s->facts.samples * (double)(s->facts.height * s->facts.width);
    for (int64_t c = 0; c < s->facts.channels; c++) {
        double mean = (double)s->total[c] / pixels;
        double square = (double)s->squares[c] / pixels;
        s->facts.mean[c] = mean / 255;
        s->facts.deviation[c] = sqrt(fmax(square - mean * mean, 0)) / 255;
    }
}

static nami_status set_numbers(nami_image_sink *s, const char *name,
                               const double *number)
{
    nami_text text = {0};
    for (int64_t c = 0; c < s->facts.channels; c++)
        nami_text_add(&text, "%s%.9f", c ? " " : "", number[c]);
    nami_status status = nami_store_set_text(s->base.store, name, nami_text_get(&text));
    nami_text_free(&text);
    return status;
}

static nami_status set_sum(nami_image_sink *s, const char *name, uint32_t sum)
{
    char text[16];
    return nami_store_set_text(s->base.store, name, nami_tokens_sum_text(text, sum));
}

static nami_status set_attributes(nami_image_sink *s, const char *names,
                                  const char *source)
{
    nami_store *store = s->base.store;
    NAMI_TRY(nami_store_set_text(store, "kind", "images"));
    NAMI_TRY(nami_store_set_int(store, "samples", s->facts.samples));
    NAMI_TRY(nami_store_set_int(store, "classes", s->facts.classes));
    NAMI_TRY(set_sum(s, "checksum", s->sum));
    NAMI_TRY(set_sum(s, "label_checksum", s->label_sum));
    NAMI_TRY(set_numbers(s, "mean", s->facts.mean));
    NAMI_TRY(set_numbers(s, "deviation", s->facts.deviation));
    NAMI_TRY(nami_store_set_text(store, "names", names));
    return nami_store_set_text(store, "source", source);
}

nami_status nami_image_sink_finish(nami_image_sink *s, const char *names,
                                   const char *source)
{
    const nami_image_facts *f = &s->facts;
    NAMI_CHECK(s->written == f->samples);
    find_moments(s);
    NAMI_TRY(set_attributes(s, names, source));
    char *summary = nami_strf(
        "%lld images of %lld x %lld, %lld channel%s, %lld classes, crc32 %08x",
        (long long)f->samples, (long long)f->height, (long long)f->width,
        (long long)f->channels, nami_plural(f->channels), (long long)f->classes,
        (unsigned)s->sum);
    nami_status status = nami_sink_end(&s->base, summary);
    nami_free(summary);
    return status;
}
