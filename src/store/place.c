/* SPDX-License-Identifier: MIT */
/* place.c - define arrays, and find where they lie in the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "store/inner.h"

/* Rank 0: make the array in the file. Nothing is written for its elements; they get their place at once. */
static nami_status create_array(const nami_store *s, const char *name,
                                nami_store_type type, int rank, const hsize_t *extent)
{
    nami_store_lock();
    hid_t space = H5Screate_simple(rank, extent, NULL);
    hid_t links = H5Pcreate(H5P_LINK_CREATE), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    hid_t array = H5Dcreate2(s->file, name, nami_store_native(type), space, links, how,
                             H5P_DEFAULT);
    nami_status status = NAMI_OK;
    if (array < 0 || H5Dclose(array) < 0)
        status = nami_fail(NAMI_EENV, "%s: array %s cannot be made: %s", s->path, name,
                           nami_store_reason());
    H5Pclose(how);
    H5Pclose(links);
    H5Sclose(space);
    nami_store_unlock();
    return status;
}

nami_status nami_store_define(nami_store *s, const char *name, nami_store_type type,
                              int rank, const int64_t *extent)
{
    hsize_t size[NAMI_STORE_RANK];
    int64_t count = 1;
    NAMI_CHECK(s->writing && !s->placed && rank >= 1 && rank <= NAMI_STORE_RANK);
    for (int i = 0; i < rank; i++) {
        NAMI_CHECK(extent[i] >= 0);
        size[i] = (hsize_t)extent[i];
        if (__builtin_mul_overflow(count, extent[i], &count) || count > INT64_MAX / 16)
            return nami_store_failed(
                s, nami_fail(NAMI_EINPUT, "%s: array %s is too large", s->path, name));
    }
    s->array = nami_realloc(NAMI_MEM_OTHER, s->array,
                            (size_t)(s->arrays + 1) * sizeof *s->array);
    s->array[s->arrays++] = (nami_store_array){
        .name = nami_strdup(name), .type = type, .count = count, .offset = -1};
    if (s->failure == NAMI_OK && nami_store_leads(s))
        return nami_store_failed(s, create_array(s, name, type, rank, size));
    return s->comm ? NAMI_OK : s->failure;
}

/* Rank 0: offsets from the library, and the end of the last array. */
static nami_status find_offsets(nami_store *s, int64_t *offset, hsize_t *bytes)
{
    nami_status status = NAMI_OK;
    nami_store_lock();
    for (int i = 0; i < s->arrays && status == NAMI_OK; i++) {
        hid_t array = H5Dopen2(s->file, s->array[i].name, H5P_DEFAULT);
        haddr_t at = array < 0 ? HADDR_UNDEF : H5Dget_offset(array);
        offset[i] = s->array[i].count ? (int64_t)at : -1;
        if (array < 0 || H5Dclose(array) < 0 ||
            (s->array[i].count && at == HADDR_UNDEF))
            status = nami_fail(NAMI_EENV, "%s: array %s has no place: %s", s->path,
                               s->array[i].name, nami_store_reason());
    }
    for (int i = 0; i < s->arrays && status == NAMI_OK; i++) {
        hsize_t end =
            (hsize_t)(offset[i] +
                      s->array[i].count * (int64_t)nami_store_width(s->array[i].type));
        if (s->array[i].count && end > *bytes)
            *bytes = end;
    }
    nami_store_unlock();
    return status;
}

/* Rank 0: give the file its size now, so that a full disk, a quota or a size limit is found before hours of results
 * depend on it. A file system that cannot reserve finds it at the write. */
static nami_status reserve(const nami_store *s, hsize_t bytes)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    char text[32], most[32];
    hsize_t slack = 65536; /* for attributes and names that are still to come */
    int fd = open(s->path, O_RDWR | O_CLOEXEC), error = 0;
    if (fd < 0)
        return nami_store_system(s, "cannot be opened again", errno);
    getrlimit(RLIMIT_FSIZE, &limit); /* a failure leaves no limit */
    if (fallocate(fd, 0, 0, (off_t)bytes) != 0 && errno != EOPNOTSUPP &&
        errno != ENOSYS)
        error = errno;
    if (!error && fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)bytes, (off_t)slack) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS)
        error = errno;
    const bool limited =
        limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes + slack;
    if (!error && limited)
        error = EFBIG;
    close(fd);
    if (error == EFBIG && limited)
        return nami_fail(
            NAMI_EENV,
            "%s needs %s, above the limit of this process for file sizes, %s: %s",
            s->path, nami_human_bytes((double)(bytes + slack), text),
            nami_human_bytes((double)limit.rlim_cur, most), strerror(error));
    if (error)
        return nami_fail(NAMI_EENV, "%s needs %s: %s", s->path,
                         nami_human_bytes((double)(bytes + slack), text),
                         strerror(error));
    return NAMI_OK;
}

/* Rank 0: from now on the library only adds small things at the end. */
static nami_status write_names(const nami_store *s)
{
    nami_status status = NAMI_OK;
    nami_store_lock();
    if (H5Fflush(s->file, H5F_SCOPE_LOCAL) < 0)
        status = nami_fail(NAMI_EENV, "%s cannot be written: %s", s->path,
                           nami_store_reason());
    nami_store_unlock();
    return status;
}

void nami_store_place(nami_store *s)
{
    int64_t *offset =
        nami_calloc(NAMI_MEM_OTHER, (size_t)s->arrays + 1, sizeof *offset);
    hsize_t bytes = 0;
    if (s->failure == NAMI_OK && nami_store_leads(s)) {
        nami_store_failed(s, find_offsets(s, offset, &bytes));
        if (s->failure == NAMI_OK)
            nami_store_failed(s, reserve(s, bytes));
        if (s->failure == NAMI_OK)
            nami_store_failed(s, write_names(s));
    }
    nami_store_failed(s, nami_comm_settle(s->comm, s->failure));
    if (s->failure == NAMI_OK && s->comm)
        nami_comm_broadcast(s->comm, offset, (size_t)s->arrays * sizeof *offset, 0);
    for (int i = 0; i < s->arrays; i++)
        s->array[i].offset = offset[i];
    nami_free(offset);
    s->placed = true;
    if (s->failure != NAMI_OK)
        return;
    s->fd = open(s->path, O_WRONLY | O_CLOEXEC);
    if (s->fd < 0)
        nami_store_failed(s,
                          nami_store_system(s, "cannot be opened on this rank", errno));
}
