/* SPDX-License-Identifier: MIT */
/* transfer.c - slabs of arrays to and from the file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/inner.h"

static const nami_store_array *find(const nami_store *s, const char *name)
{
    for (int i = 0; i < s->arrays; i++)
        if (!strcmp(s->array[i].name, name))
            return &s->array[i];
    return NULL;
}

static nami_status write_bytes(nami_store *s, const char *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t n = pwrite(s->fd, data,
                           bytes < NAMI_STORE_PIECE ? bytes : NAMI_STORE_PIECE, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return nami_store_system(s, "cannot be written", n < 0 ? errno : EIO);
        data += n;
        at += n;
        bytes -= (size_t)n;
    }
    return NAMI_OK;
}

nami_status nami_store_write(nami_store *s, const char *name, int64_t from,
                             int64_t count, const void *data)
{
    NAMI_CHECK(s->writing);
    if (!s->placed)
        nami_store_place(s);
    if (s->failure != NAMI_OK || count == 0)
        return s->comm ? NAMI_OK : s->failure;
    const nami_store_array *a = find(s, name);
    NAMI_CHECK(a && from >= 0 && count >= 0 && from <= a->count - count);
    size_t width = nami_store_width(a->type);
    return nami_store_failed(s,
                             write_bytes(s, data, (size_t)count * width,
                                         (off_t)(a->offset + from * (int64_t)width)));
}

/* An array open for reading. */
typedef struct source {
    hid_t array, space;
    hid_t type; /* in memory */
    size_t width;
    int rank;
    hsize_t extent[NAMI_STORE_RANK];
} source;

/* Read the box of `size` at `start`; false when the library fails. */
static bool read_box(const source *a, const hsize_t *start, const hsize_t *size,
                     void *data)
{
    hid_t memory = H5Screate_simple(a->rank, size, NULL);
    bool ok =
        memory >= 0 &&
        H5Sselect_hyperslab(a->space, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
        H5Dread(a->array, a->type, memory, a->space, H5P_DEFAULT, data) >= 0;
    if (memory >= 0)
        H5Sclose(memory);
    return ok;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Read elements [from, from+count) of the flattened part of `a` that start[0..axis) fixes: whole rows of extent
 * `axis` in boxes, and the broken rows before and after one axis deeper. */
static bool read_range(const source *a, int axis, hsize_t *start, int64_t from,
                       int64_t count, char *data)
{
    int64_t row = 1;
    hsize_t size[NAMI_STORE_RANK];
    for (int i = axis + 1; i < a->rank; i++)
        row *= (int64_t)a->extent[i];
    int64_t most = NAMI_STORE_PIECE / (int64_t)a->width / row;
    while (count > 0) {
        int64_t skip = from % row, n;
        start[axis] = (hsize_t)(from / row);
        if (skip || count < row) {
            n = smaller(row - skip, count);
            if (!read_range(a, axis + 1, start, skip, n, data))
                return false;
        } else {
            int64_t rows = smaller(count / row, most > 1 ? most : 1);
            n = rows * row;
            for (int i = 0; i < a->rank; i++) {
                size[i] = i < axis ? 1 : i == axis ? (hsize_t)rows : a->extent[i];
                if (i > axis)
                    start[i] = 0;
            }
            if (!read_box(a, start, size, data))
                return false;
        }
        from += n;
        count -= n;
        data += (size_t)n * a->width;
    }
    return true;
}

/* What elements become in memory; `integers`: 64-bit ones whatever they are. */
static bool choose_type(source *a, bool integers)
{
    hid_t type = H5Dget_type(a->array);
    if (type < 0)
        return false;
    nami_store_type t = integers && nami_store_is_integer(type) ? NAMI_STORE_I64
                        : integers                              ? NAMI_STORE_TYPES
                                   : nami_store_type_of(type);
    H5Tclose(type);
    if (t == NAMI_STORE_TYPES)
        return false;
    a->type = nami_store_native(t);
    a->width = nami_store_width(t);
    return true;
}

/* Open for reading; false when it is not an array of a known type that holds [from, from+count). */
static bool open_source(const nami_store *s, const char *name, bool integers,
                        int64_t from, int64_t count, source *a)
{
    int64_t total = 1;
    *a = (source){.array = H5Dopen2(s->file, name, nami_store_own_array), .space = -1};
    if (a->array < 0)
        return false;
    a->space = H5Dget_space(a->array);
    if (a->space < 0 || !choose_type(a, integers))
        return false;
    a->rank = H5Sget_simple_extent_ndims(a->space);
    if (a->rank < 1 || a->rank > NAMI_STORE_RANK ||
        H5Sget_simple_extent_dims(a->space, a->extent, NULL) < 0)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] > INT64_MAX ||
            __builtin_mul_overflow(total, (int64_t)a->extent[i], &total))
            return false;
    return from >= 0 && count >= 0 && from <= total - count;
}

static nami_status read_locked(const nami_store *s, const char *name, bool integers,
                               int64_t from, int64_t count, void *data)
{
    source a;
    hsize_t start[NAMI_STORE_RANK] = {0};
    nami_status status = NAMI_OK;
    if (!open_source(s, name, integers, from, count, &a))
        status = nami_fail(NAMI_EINPUT,
                           "%s: array %s does not have %lld elements from %lld on",
                           s->path, name, (long long)count, (long long)from);
    else if (count > 0 && !read_range(&a, 0, start, from, count, data))
        status = nami_fail(NAMI_EINPUT, "%s: array %s cannot be read: %s", s->path,
                           name, nami_store_reason());
    if (a.space >= 0)
        H5Sclose(a.space);
    if (a.array >= 0)
        H5Dclose(a.array);
    return status;
}

nami_status nami_store_read_alone(nami_store *s, const char *name, int64_t from,
                                  int64_t count, void *data)
{
    NAMI_CHECK(!s->writing);
    nami_store_lock();
    nami_status status = read_locked(s, name, false, from, count, data);
    nami_store_unlock();
    return status;
}

nami_status nami_store_integers(nami_store *s, const char *name, int64_t from,
                                int64_t count, int64_t *data)
{
    NAMI_CHECK(!s->writing);
    nami_store_lock();
    nami_status status = read_locked(s, name, true, from, count, data);
    nami_store_unlock();
    return status;
}

nami_status nami_store_read(nami_store *s, const char *name, int64_t from,
                            int64_t count, void *data)
{
    return nami_comm_settle(s->comm, nami_store_read_alone(s, name, from, count, data));
}
