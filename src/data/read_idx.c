/* SPDX-License-Identifier: MIT */
/* read_idx.c - the IDX files of the MNIST family: big-endian header, then bytes.
 *
 * Bytes 0 0, type (8: unsigned bytes), number of dimensions, one 32-bit number a dimension, data with the last index
 * fastest; after the files' description on the MNIST page (cvdfoundation/mnist README).
 */
#include "data/pictures.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/images.h"

enum { BYTES = 8, MOST_DIMENSIONS = 3 };

static uint32_t big32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The magic number: unsigned bytes in `dimensions` dimensions. */
static nami_status check_magic(const char *name, const unsigned char *p, int dimensions)
{
    const char *what = dimensions == 3 ? "images" : "labels";
    if (p[0] != 0 || p[1] != 0 || p[2] < 8 || p[2] > 14)
        return nami_fail(
            NAMI_EINPUT,
            "%s is not an IDX file: it starts with %02x %02x %02x %02x where "
            "00 00 08 %02x is expected",
            name, p[0], p[1], p[2], p[3], (unsigned)dimensions);
    if (p[2] != BYTES)
        return nami_fail(NAMI_EINPUT,
                         "%s holds numbers of IDX type %02x, where unsigned bytes (08) "
                         "are expected",
                         name, p[2]);
    if (p[3] != dimensions)
        return nami_fail(
            NAMI_EINPUT,
            "%s is an IDX file of %d dimension%s, where %d %s expected for "
            "%s; the order is IMAGES LABELS ... OUT",
            name, p[3], nami_plural(p[3]), dimensions, dimensions == 1 ? "is" : "are",
            what);
    return NAMI_OK;
}

/* Read the header of `dimensions` extents, and check that the data is there. */
static nami_status read_header(nami_source *s, int dimensions, int64_t *extent)
{
    unsigned char p[4 + 4 * MOST_DIMENSIONS];
    size_t bytes = 4 + 4 * (size_t)dimensions, got;
    const char *name = nami_source_name(s);
    NAMI_TRY(nami_source_some(s, p, bytes, &got));
    if (got >= 4)
        NAMI_TRY(check_magic(name, p, dimensions));
    if (got < bytes)
        return nami_fail(NAMI_EINPUT,
                         "%s has %d bytes, less than the %d of an IDX header", name,
                         (int)got, (int)bytes);
    int64_t all = 1;
    for (int i = 0; i < dimensions; i++) {
        extent[i] = big32(p + 4 + (ptrdiff_t)4 * i);
        if (extent[i] == 0 || (i > 0 && extent[i] > NAMI_IMAGE_SIDE))
            return nami_fail(
                NAMI_EINPUT, "%s: dimension %d is %lld, where 1 to %lld is expected",
                name, i, (long long)extent[i], i > 0 ? 65535LL : 4294967295LL);
        if (__builtin_mul_overflow(all, extent[i], &all))
            return nami_fail(NAMI_EINPUT,
                             "%s announces more bytes than a file can hold", name);
    }
    char *what = dimensions == 1
                     ? nami_strf("%lld labels", (long long)extent[0])
                     : nami_strf("%lld images of %lld x %lld", (long long)extent[0],
                                 (long long)extent[1], (long long)extent[2]);
    nami_status status = nami_source_expect(s, all, what);
    nami_free(what);
    return status;
}

typedef struct labels {
    uint8_t *all; /* [samples] */
    int64_t at;   /* handed out */
} labels;

/* All labels, and how many classes there must be. */
static nami_status read_labels(nami_pictures *p)
{
    labels *l = p->own;
    l->all = nami_alloc(NAMI_MEM_DATA, (size_t)p->samples);
    NAMI_TRY(nami_source_read(p->source[1], l->all, (size_t)p->samples));
    for (int64_t i = 0; i < p->samples; i++)
        p->classes = l->all[i] >= p->classes ? l->all[i] + 1 : p->classes;
    return NAMI_OK;
}

static nami_status read_idx(nami_pictures *p, int64_t count, uint8_t *pixel,
                            uint16_t *label)
{
    labels *l = p->own;
    NAMI_CHECK(l->at + count <= p->samples);
    for (int64_t i = 0; i < count; i++)
        label[i] = l->all[l->at++];
    return nami_source_read(p->source[0], pixel,
                            (size_t)(count * p->height * p->width));
}

static void drop_idx(nami_pictures *p)
{
    labels *l = p->own;
    nami_free(l->all);
    nami_free(l);
}

nami_status nami_idx_open(const char *images, const char *label, const char *spool,
                          nami_pictures *p)
{
    int64_t extent[3] = {0}, count = 0;
    NAMI_TRY(nami_source_open_declared(images, spool, &p->source[0]));
    NAMI_TRY(nami_source_open_declared(label, spool, &p->source[1]));
    NAMI_TRY(read_header(p->source[0], 3, extent));
    NAMI_TRY(read_header(p->source[1], 1, &count));
    if (count != extent[0])
        return nami_fail(NAMI_EINPUT, "%s has %lld images, but %s has %lld labels",
                         nami_source_name(p->source[0]), (long long)extent[0],
                         nami_source_name(p->source[1]), (long long)count);
    p->samples = count;
    p->channels = 1;
    p->height = extent[1];
    p->width = extent[2];
    p->own = nami_calloc(NAMI_MEM_OTHER, 1, sizeof(labels));
    p->read = read_idx;
    p->drop = drop_idx;
    return read_labels(p);
}
