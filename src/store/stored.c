/* SPDX-License-Identifier: MIT */
/* stored.c - whether the file can hold what its arrays announce: a small file must not ask for unbounded work or memory. */
#include "store/inner.h"

/* Deflate makes at most 258 bytes of two bits: RFC 1951, 3.2.5. */
enum { DEFLATE_RATIO = 1032 };

static nami_status refuse(const nami_store *s, const char *name, const char *what)
{
    return nami_fail(NAMI_EINPUT, "%s: array %s %s", s->path, name, what);
}

/* How many bytes may be unpacked from one; 0: packed by what nami does not unpack. */
static int64_t ratio_of(hid_t made)
{
    int64_t ratio = 1;
    int filters = H5Pget_nfilters(made);
    for (int i = 0; i < filters; i++) {
        unsigned flags, config;
        size_t values = 0;
        H5Z_filter_t filter =
            H5Pget_filter2(made, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        if (filter == H5Z_FILTER_DEFLATE && ratio == 1)
            ratio = DEFLATE_RATIO;
        else if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
            return 0;
    }
    return filters < 0 ? 0 : ratio;
}

/* Bytes of the chunks that cover the array, unpacked, and their number; false when they are too many to count. */
static bool count_chunks(hid_t made, const int64_t extent[4], int rank, int64_t *bytes,
                         int64_t *chunks)
{
    hsize_t size[NAMI_STORE_RANK];
    *chunks = 1;
    if (H5Pget_chunk(made, NAMI_STORE_RANK, size) != rank)
        return false;
    for (int i = 0; i < rank; i++) {
        int64_t side = size[i] > 0 && size[i] <= INT64_MAX ? (int64_t)size[i] : 0;
        if (side == 0)
            return false;
        int64_t across = extent[i] / side + (extent[i] % side > 0);
        if (__builtin_mul_overflow(*bytes, side, bytes) ||
            __builtin_mul_overflow(*chunks, across, chunks))
            return false;
    }
    return !__builtin_mul_overflow(*bytes, *chunks, bytes);
}

/* Whether all chunks were written: one that was not reads as zeros. */
static bool has_chunks(hid_t array, int64_t want)
{
#if H5_VERSION_GE(1, 10, 5)
    hsize_t have = 0;
    hid_t space = H5Dget_space(array);
    bool ok = space >= 0 && (want == 0 || H5Dget_num_chunks(array, space, &have) >= 0);
    if (space >= 0)
        H5Sclose(space);
    return ok && have >= (hsize_t)want;
#else
    (void)array;
    return want >= 0;
#endif
}

/* Bytes that the file can hold of the array. */
static hsize_t stored_bytes(const nami_store *s, hid_t array)
{
    hsize_t file = 0, stored = H5Dget_storage_size(array);
    if (H5Fget_filesize(s->file, &file) < 0)
        return 0;
    return stored < file ? stored : file;
}

static nami_status check(const nami_store *s, const char *name, hid_t array, hid_t made,
                         const int64_t extent[4], int rank)
{
    hid_t type = H5Dget_type(array);
    int64_t bytes = type < 0 ? 0 : (int64_t)H5Tget_size(type), chunks = 0;
    int64_t ratio = ratio_of(made);
    H5D_layout_t layout = H5Pget_layout(made);
    if (type >= 0)
        H5Tclose(type);
    if (layout == H5D_VIRTUAL || H5Pget_external_count(made) != 0)
        return refuse(s, name,
                      "has its elements in other files, which nami does not "
                      "open");
    if (ratio == 0)
        return refuse(s, name,
                      "is packed by another filter than deflate, which nami "
                      "does not unpack; 'h5repack -f GZIP=4 OLD NEW' converts "
                      "it");
    bool ok = bytes > 0;
    if (layout == H5D_CHUNKED)
        ok = ok && count_chunks(made, extent, rank, &bytes, &chunks) &&
             has_chunks(array, chunks);
    for (int i = 0; layout != H5D_CHUNKED && i < rank; i++)
        ok = ok && !__builtin_mul_overflow(bytes, extent[i], &bytes);
    if (!ok || (hsize_t)(bytes / ratio) > stored_bytes(s, array))
        return refuse(s, name, "announces more elements than the file stores");
    return NAMI_OK;
}

nami_status nami_store_stored(const nami_store *s, const char *name, hid_t array,
                              const int64_t extent[4], int rank)
{
    hid_t made = H5Dget_create_plist(array);
    if (made < 0)
        return refuse(s, name, "cannot be read");
    nami_status status = check(s, name, array, made, extent, rank);
    H5Pclose(made);
    return status;
}
