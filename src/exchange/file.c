/* SPDX-License-Identifier: MIT */
/* file.c - open files of arrays, by what their first bytes say. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "exchange/inner.h"

nami_status nami_exchange_get(const nami_exchange_file *p, int64_t at, size_t bytes,
                              void *out)
{
    if (at < 0 || at > p->bytes || bytes > (size_t)(p->bytes - at))
        return nami_fail(NAMI_EINPUT,
                         "%s: %zu bytes at %lld are wanted, and the file has %lld: it "
                         "is cut short or damaged",
                         p->path, bytes, (long long)at, (long long)p->bytes);
    for (size_t done = 0; done < bytes;) {
        ssize_t got =
            pread(p->fd, (char *)out + done, bytes - done, (off_t)(at + (int64_t)done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return nami_fail(NAMI_EENV, "%s cannot be read: %s", p->path,
                             strerror(errno));
        if (got == 0)
            return nami_fail(NAMI_EINPUT, "%s got shorter while it was read", p->path);
        done += (size_t)got;
    }
    return NAMI_OK;
}

/* --- arrays --- */

nami_status nami_exchange_dense(const nami_exchange_file *p, nami_exchange_array *a,
                                int64_t *count)
{
    int64_t n = 1;
    bool fits = true, empty = false;
    for (int i = a->rank - 1; i >= 0; i--) {
        a->stride[i] = n;
        empty = empty || a->dim[i] == 0;
        if (a->dim[i] > 0)
            fits = fits && !__builtin_mul_overflow(n, a->dim[i], &n);
    }
    if (!fits || n > INT64_MAX / 256)
        return nami_fail(NAMI_EINPUT, "%s: array %s has more elements than can be",
                         p->path, a->name);
    *count = empty ? 0 : n;
    return NAMI_OK;
}

/* The last element, counted from the first; false on overflow. */
static bool find_last(const nami_exchange_array *a, int64_t *last, bool *empty)
{
    bool fits = true;
    *last = 0;
    *empty = false;
    for (int i = 0; i < a->rank; i++) {
        int64_t way;
        if (a->dim[i] < 0 || a->stride[i] < 0)
            return false;
        if (a->dim[i] == 0)
            *empty = true;
        else
            fits = fits && !__builtin_mul_overflow(a->dim[i] - 1, a->stride[i], &way) &&
                   !__builtin_add_overflow(*last, way, last);
    }
    return fits || *empty;
}

nami_status nami_exchange_add(nami_exchange *x, nami_exchange_array *a,
                              nami_extent where, int64_t offset)
{
    const nami_exchange_file *p = &x->part[x->parts - 1];
    const int64_t most = where.bytes * 8 / a->type->bits;
    int64_t last = 0;
    bool empty = false,
         good = offset >= 0 && offset <= most && find_last(a, &last, &empty);
    if (good && !empty)
        good = last < most - offset;
    if (!good) {
        nami_status status =
            nami_fail(NAMI_EINPUT, "%s: array %s reaches outside of its %lld elements",
                      p->path, a->name, (long long)most);
        nami_free(a->name);
        return status;
    }
    if (x->arrays == x->room) {
        x->room = x->room ? 2 * x->room : 64;
        x->array =
            nami_realloc(NAMI_MEM_OTHER, x->array, (size_t)x->room * sizeof *x->array);
    }
    a->part = x->parts - 1;
    a->at = where.at + offset * a->type->bits / 8;
    x->array[x->arrays++] = *a;
    return NAMI_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const nami_exchange_array *)a)->name,
                  ((const nami_exchange_array *)b)->name);
}

static nami_status sort(nami_exchange *x, const char *path)
{
    if (x->arrays == 0)
        return nami_fail(NAMI_EINPUT, "%s holds no arrays with names", path);
    qsort(x->array, (size_t)x->arrays, sizeof *x->array, by_name);
    for (int i = 1; i < x->arrays; i++)
        if (by_name(&x->array[i - 1], &x->array[i]) == 0)
            return nami_fail(NAMI_EINPUT, "%s: there are two arrays %s", path,
                             x->array[i].name);
    return NAMI_OK;
}

/* --- files --- */

typedef nami_status (*open_arrays)(nami_exchange *x);

/* The reader for a file that starts with head[0..n); NULL: none. */
static open_arrays reader_of(const unsigned char *head, ssize_t n)
{
    uint64_t length;
    if (n >= 4 && !memcmp(head, "PK\3\4", 4))
        return nami_torch_open_zip;
    if (n >= 2 && head[0] == 0x80 && head[1] == 2)
        return nami_torch_open_legacy;
    if (n < 9)
        return NULL;
    memcpy(&length, head, 8);
    return head[8] == '{' && length <= INT64_C(1) << 40 ? nami_safetensors_open : NULL;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

bool nami_exchange_is(const char *path)
{
    static const char *const end[] = {".safetensors", ".pt",  ".pth",
                                      ".th",          ".bin", ".index.json"};
    unsigned char head[16];
    for (size_t i = 0; i < sizeof end / sizeof *end; i++)
        if (ends_with(path, end[i]))
            return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, head, sizeof head);
    close(fd);
    return reader_of(head, n) != NULL;
}

nami_status nami_exchange_raw(nami_exchange *x, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st)) {
        nami_status status =
            nami_fail(NAMI_EINPUT, "%s cannot be opened: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return nami_fail(NAMI_EINPUT, "%s is no regular file", path);
    }
    x->part =
        nami_realloc(NAMI_MEM_OTHER, x->part, (size_t)(x->parts + 1) * sizeof *x->part);
    x->part[x->parts++] = (nami_exchange_file){
        .path = nami_strdup(path), .fd = fd, .bytes = (int64_t)st.st_size};
    return NAMI_OK;
}

nami_status nami_exchange_part(nami_exchange *x, const char *path)
{
    unsigned char head[16] = {0};
    NAMI_TRY(nami_exchange_raw(x, path));
    const nami_exchange_file *p = &x->part[x->parts - 1];
    size_t n = p->bytes < (int64_t)sizeof head ? (size_t)p->bytes : sizeof head;
    NAMI_TRY(nami_exchange_get(p, 0, n, head));
    open_arrays reader = reader_of(head, (ssize_t)n);
    if (!reader)
        return nami_fail(NAMI_EINPUT,
                         "%s is neither a safetensors file nor one that torch.save "
                         "wrote, or it is cut short",
                         path);
    return reader(x);
}

nami_status nami_exchange_open(const char *path, nami_exchange **out)
{
    nami_exchange *x = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *x);
    nami_status status = ends_with(path, ".index.json") ? nami_index_open(x, path)
                                                        : nami_exchange_part(x, path);
    if (status == NAMI_OK)
        status = sort(x, path);
    if (status != NAMI_OK) {
        nami_exchange_close(x);
        x = NULL;
    }
    *out = x;
    return status;
}

void nami_exchange_release(nami_exchange *x)
{
    for (int i = 0; i < x->arrays; i++)
        nami_free(x->array[i].name);
    for (int i = 0; i < x->parts; i++) {
        close(x->part[i].fd);
        nami_free(x->part[i].path);
    }
    nami_free(x->array);
    nami_free(x->part);
    *x = (nami_exchange){0};
}

void nami_exchange_close(nami_exchange *x)
{
    if (x)
        nami_exchange_release(x);
    nami_free(x);
}

const nami_exchange_array *nami_exchange_arrays(const nami_exchange *x, int *count)
{
    *count = x->arrays;
    return x->array;
}
