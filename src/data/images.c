/* SPDX-License-Identifier: MIT */
/* images.c - an opened set of images. */
#include "data/images.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "data/flat.h"
#include "data/tokens.h"
#include "data/verify.h"

struct nami_images {
    nami_store *store;
    char *path, *sum, *label_sum, *names, *identity;
    nami_image_facts facts;
    int64_t pixels;  /* bytes of one image */
    int label_width; /* bytes of a stored label */
    void *label;     /* [samples] */
    nami_flat flat;  /* all pixels, a byte each */
    void *one;       /* [pixels] of a set that is not whole */
};

/* /images as it must be. Pure function of the file: equal on all ranks. */
static nami_status check_pixels(nami_images *d)
{
    nami_store_type type;
    int rank;
    int64_t extent[4], count;
    NAMI_TRY(nami_store_shape(d->store, "/images", &type, &rank, extent));
    if (rank == -1)
        return nami_fail(NAMI_EINPUT,
                         "%s is not a set of images: it has no array /images", d->path);
    if (rank != 4 || type != NAMI_STORE_U8 || extent[0] < 1 || extent[1] < 1 ||
        extent[1] > NAMI_CHANNELS || extent[2] < 1 || extent[2] > NAMI_IMAGE_SIDE ||
        extent[3] < 1 || extent[3] > NAMI_IMAGE_SIDE)
        return nami_fail(
            NAMI_EINPUT,
            "%s: /images is not an array [images,channels,height,width] of "
            "8-bit numbers with 1 to 4 channels and sides below 65536",
            d->path);
    d->facts.samples = extent[0];
    d->facts.channels = extent[1];
    d->facts.height = extent[2];
    d->facts.width = extent[3];
    d->pixels = extent[1] * extent[2] * extent[3];
    if (__builtin_mul_overflow(d->pixels, extent[0], &count))
        return nami_fail(NAMI_EINPUT, "%s: /images has more bytes than a file can hold",
                         d->path);
    d->flat = (nami_flat){d->store, "/images", count, 1, NULL};
    return NAMI_OK;
}

static nami_status check_labels(nami_images *d)
{
    nami_store_type type;
    int rank;
    int64_t extent[4];
    NAMI_TRY(nami_store_shape(d->store, "/labels", &type, &rank, extent));
    if (rank != 1 || (type != NAMI_STORE_U8 && type != NAMI_STORE_U16) ||
        extent[0] != d->facts.samples)
        return nami_fail(NAMI_EINPUT,
                         "%s: /labels is not a list of %lld 8-bit or 16-bit unsigned "
                         "numbers",
                         d->path, (long long)d->facts.samples);
    d->label_width = type == NAMI_STORE_U8 ? 1 : 2;
    return NAMI_OK;
}

bool nami_image_numbers(const char *text, double least, int64_t count, double *out)
{
    char word[64];
    for (int64_t i = 0; i < count; i++) {
        text += strspn(text, " ");
        size_t n = strcspn(text, " ");
        snprintf(word, sizeof word, "%.*s", n < 60 ? (int)n : 60, text);
        text += n;
        if (!nami_parse_real(word, &out[i]) || !(out[i] >= least && out[i] <= 1e6))
            return false;
    }
    return text[strspn(text, " ")] == '\0';
}

static nami_status read_numbers(nami_images *d, const char *name, double *out)
{
    char *text = NULL;
    nami_status status = nami_store_get_text(d->store, name, &text);
    if (status == NAMI_OK && !nami_image_numbers(text, 0, d->facts.channels, out))
        status = nami_fail(
            NAMI_EINPUT, "%s: attribute %s is not one number for each of %lld channels",
            d->path, name, (long long)d->facts.channels);
    nami_free(text);
    return status;
}

static nami_status check_attributes(nami_images *d)
{
    int64_t samples;
    NAMI_TRY(nami_store_get_int(d->store, "classes", &d->facts.classes));
    NAMI_TRY(nami_store_get_int(d->store, "samples", &samples));
    NAMI_TRY(nami_store_get_text(d->store, "checksum", &d->sum));
    NAMI_TRY(nami_store_get_text(d->store, "label_checksum", &d->label_sum));
    NAMI_TRY(nami_store_get_text(d->store, "names", &d->names));
    NAMI_TRY(read_numbers(d, "mean", d->facts.mean));
    NAMI_TRY(read_numbers(d, "deviation", d->facts.deviation));
    if (d->facts.classes < 1 || d->facts.classes > NAMI_CLASSES)
        return nami_fail(NAMI_EINPUT, "%s: %lld classes are not within 1 to 65536",
                         d->path, (long long)d->facts.classes);
    if (samples != d->facts.samples)
        return nami_fail(NAMI_EINPUT, "%s: it announces %lld images and holds %lld",
                         d->path, (long long)samples, (long long)d->facts.samples);
    d->identity = nami_strf("%s labels %s images:%lld %lldx%lldx%lld classes:%lld",
                            d->sum, d->label_sum, (long long)samples,
                            (long long)d->facts.channels, (long long)d->facts.height,
                            (long long)d->facts.width, (long long)d->facts.classes);
    return NAMI_OK;
}

static nami_status compare_sum(const nami_images *d, const char *what, uint32_t sum,
                               const char *want)
{
    char text[16];
    if (strcmp(nami_tokens_sum_text(text, sum), want) != 0)
        return nami_fail(NAMI_EINPUT,
                         "%s is damaged: its %s have checksum %s, expected %s", d->path,
                         what, text, want);
    return NAMI_OK;
}

/* Read all labels and check them. Local. */
static nami_status load_labels(nami_images *d)
{
    int64_t n = d->facts.samples;
    d->label = nami_calloc(NAMI_MEM_DATA, (size_t)n, (size_t)d->label_width);
    NAMI_TRY(nami_store_read_alone(d->store, "/labels", 0, n, d->label));
    uint32_t sum = nami_tokens_checksum(0, d->label, n, d->label_width);
    NAMI_TRY(compare_sum(d, "labels", sum, d->label_sum));
    int64_t bad = nami_tokens_outside(d->label, n, d->label_width, d->facts.classes);
    if (bad >= 0)
        return nami_fail(NAMI_EINPUT, "%s: label %lld is %d, outside the %lld classes",
                         d->path, (long long)bad, (int)nami_images_label(d, bad),
                         (long long)d->facts.classes);
    return NAMI_OK;
}

/* Each rank reads a part of the pixels: the file is read once by all together. */
static nami_status verify(nami_images *d, nami_comm *c)
{
    const nami_verify v = {.store = d->store,
                           .path = d->path,
                           .array = "/images",
                           .what = "pixels",
                           .checksum = d->sum,
                           .count = d->flat.count,
                           .width = 1};
    return nami_verify_array(&v, c);
}

static nami_status open_set(nami_images *d, nami_comm *c)
{
    NAMI_TRY(nami_store_open(c, d->path, &d->store));
    nami_status status = check_pixels(d);
    if (status == NAMI_OK)
        status = check_labels(d);
    NAMI_TRY(nami_comm_settle(c, status == NAMI_OK ? check_attributes(d) : status));
    NAMI_TRY(nami_comm_settle(c, load_labels(d)));
    return nami_flat_is_small(&d->flat) ? verify(d, c) : NAMI_OK;
}

nami_status nami_images_open(nami_comm *c, const char *path, nami_images **out)
{
    nami_images *d = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *d);
    d->path = nami_strdup(path);
    nami_status status = open_set(d, c);
    *out = status == NAMI_OK ? d : NULL;
    if (status != NAMI_OK)
        nami_images_close(d);
    return status;
}

void nami_images_close(nami_images *d)
{
    if (!d)
        return;
    if (d->store)
        (void)nami_store_close(d->store);
    nami_free(d->one);
    nami_free(d->flat.whole);
    nami_free(d->label);
    nami_free(d->identity);
    nami_free(d->names);
    nami_free(d->label_sum);
    nami_free(d->sum);
    nami_free(d->path);
    nami_free(d);
}

const nami_image_facts *nami_images_facts(const nami_images *d)
{
    return &d->facts;
}

const char *nami_images_names(const nami_images *d)
{
    return d->names;
}

const char *nami_images_identity(const nami_images *d)
{
    return d->identity;
}

int32_t nami_images_label(const nami_images *d, int64_t index)
{
    NAMI_CHECK(index >= 0 && index < d->facts.samples);
    return d->label_width == 1 ? ((const uint8_t *)d->label)[index]
                               : ((const uint16_t *)d->label)[index];
}

nami_status nami_images_pixels(nami_images *d, int64_t index, const uint8_t **pixel)
{
    NAMI_CHECK(index >= 0 && index < d->facts.samples);
    const void *found = NULL;
    nami_status status = nami_flat_get(&d->flat, index * d->pixels, d->pixels,
                                       d->pixels, &d->one, &found);
    *pixel = found;
    return status;
}

int64_t nami_image_index(int64_t samples, uint64_t key, int64_t counter)
{
    uint64_t epoch = nami_mix(key, (uint64_t)(counter / samples));
    return (int64_t)nami_permute(epoch, (uint64_t)(counter % samples),
                                 (uint64_t)samples);
}
