/* SPDX-License-Identifier: MIT */
/* source.c - inputs of an importer. */
#include "data/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#define BLOCK ((size_t)1 << 20)

struct nami_source {
    char *name;     /* for messages */
    int file;       /* descriptor; -1 when gz owns it */
    gzFile gz;      /* NULL: plain */
    int64_t length; /* bytes, unpacked; -1: unknown */
    int64_t packed; /* bytes of the file */
    int64_t at;     /* bytes read */
    dev_t device;   /* identity of the file at `path` */
    ino_t inode;
};

static bool ends_in(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && !strcmp(s + n - m, tail);
}

/* At most `bytes` bytes of a descriptor; *got < bytes only at the end. */
static nami_status read_file(int file, const char *name, char *data, size_t bytes,
                             size_t *got)
{
    *got = 0;
    while (*got < bytes) {
        ssize_t n = read(file, data + *got, bytes - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return nami_fail(NAMI_EENV, "%s cannot be read: %s", name, strerror(errno));
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return NAMI_OK;
}

/* The same of gzip data. */
static nami_status read_gz(gzFile gz, const char *name, char *data, size_t bytes,
                           size_t *got)
{
    *got = 0;
    while (*got < bytes) {
        size_t want = bytes - *got < BLOCK ? bytes - *got : BLOCK;
        int n = gzread(gz, data + *got, (unsigned)want), code;
        const char *reason = gzerror(gz, &code);
        if (code == Z_ERRNO)
            return nami_fail(NAMI_EENV, "%s cannot be read: %s", name, strerror(errno));
        if (code == Z_BUF_ERROR)
            return nami_fail(NAMI_EINPUT,
                             "%s ends in the middle of its gzip data: it is truncated",
                             name);
        if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
            return nami_fail(NAMI_EINPUT, "%s is damaged gzip data (%s)", name, reason);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return NAMI_OK;
}

static nami_status read_some(nami_source *s, char *data, size_t bytes, size_t *got)
{
    return s->gz ? read_gz(s->gz, s->name, data, bytes, got)
                 : read_file(s->file, s->name, data, bytes, got);
}

/* Unpack once: the length, and whether the data is whole. */
static nami_status measure_gz(nami_source *s, char *block)
{
    size_t got = BLOCK;
    while (got == BLOCK) {
        NAMI_TRY(read_gz(s->gz, s->name, block, BLOCK, &got));
        s->length += (int64_t)got;
    }
    if (gzdirect(s->gz))
        return nami_fail(NAMI_EINPUT, "%s is not gzip data, though its name says so",
                         s->name);
    if (gzrewind(s->gz) != 0)
        return nami_fail(NAMI_EENV, "%s cannot be read a second time", s->name);
    return NAMI_OK;
}

static nami_status open_gz(nami_source *s, bool measure)
{
    s->gz = gzdopen(s->file, "rb");
    if (!s->gz)
        return nami_fail(NAMI_EENV, "%s cannot be read by zlib", s->name);
    s->file = -1;
    gzbuffer(s->gz, 256 * 1024);
    if (!measure) {
        s->length = -1;
        return NAMI_OK;
    }
    char *block = nami_alloc(NAMI_MEM_DATA, BLOCK);
    nami_status status = measure_gz(s, block);
    nami_free(block);
    return status;
}

static nami_status write_all(int file, const char *data, size_t bytes)
{
    if (nami_file_write(file, data, bytes))
        return NAMI_OK;
    return nami_fail(NAMI_EENV, "the copy of a piped input cannot be written: %s",
                     strerror(errno));
}

/* Copy what is left of s->file to `copy`. */
static nami_status drain(nami_source *s, int copy, char *block)
{
    size_t got = BLOCK;
    while (got == BLOCK) {
        NAMI_TRY(read_file(s->file, s->name, block, BLOCK, &got));
        NAMI_TRY(write_all(copy, block, got));
        s->length += (int64_t)got;
        nami_progress("%s: %lld MiB read", s->name, (long long)(s->length >> 20));
    }
    return lseek(copy, 0, SEEK_SET) == 0
               ? NAMI_OK
               : nami_fail(NAMI_EENV, "the copy of a piped input cannot be read back");
}

/* Replace s->file by a copy that can be read twice and vanishes with its descriptor. */
static nami_status spool(nami_source *s, const char *directory)
{
    char *path = nami_strf("%s/nami-XXXXXX", directory);
    int copy = mkstemp(path);
    if (copy < 0) {
        nami_status status =
            nami_fail(NAMI_EENV, "no temporary file can be made in %s: %s", directory,
                      strerror(errno));
        nami_free(path);
        return status;
    }
    unlink(path);
    nami_free(path);
    char *block = nami_alloc(NAMI_MEM_DATA, BLOCK);
    nami_status status = drain(s, copy, block);
    nami_free(block);
    close(s->file);
    s->file = copy;
    return status;
}

static nami_status prepare(nami_source *s, const char *path, const char *directory,
                           bool measure)
{
    struct stat st;
    if (fstat(s->file, &st) != 0)
        return nami_fail(NAMI_EENV, "%s: %s", s->name, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return nami_fail(NAMI_EINPUT, "%s is a directory, not a file", s->name);
    s->device = st.st_dev;
    s->inode = st.st_ino;
    bool seekable = S_ISREG(st.st_mode) && lseek(s->file, 0, SEEK_CUR) == 0;
    if (!seekable)
        NAMI_TRY(spool(s, directory));
    else
        s->length = st.st_size;
    s->packed = s->length;
    if (ends_in(path, ".gz")) {
        s->length = 0;
        return open_gz(s, measure);
    }
    return NAMI_OK;
}

static nami_status open_source(const char *path, const char *directory, bool measure,
                               nami_source **out)
{
    bool standard = !strcmp(path, "-");
    *out = NULL;
    int file = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return nami_fail(errno == EMFILE ? NAMI_EENV : NAMI_EINPUT,
                         "%s cannot be opened: %s", standard ? "standard input" : path,
                         strerror(errno));
    nami_source *s = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *s);
    s->name = nami_strdup(standard ? "standard input" : path);
    s->file = file;
    nami_status status = prepare(s, path, directory, measure);
    if (status != NAMI_OK) {
        nami_source_close(s);
        return status;
    }
    *out = s;
    return NAMI_OK;
}

nami_status nami_source_open(const char *path, const char *directory, nami_source **out)
{
    return open_source(path, directory, true, out);
}

nami_status nami_source_open_declared(const char *path, const char *directory,
                                      nami_source **out)
{
    return open_source(path, directory, false, out);
}

void nami_source_close(nami_source *s)
{
    if (!s)
        return;
    if (s->gz)
        gzclose(s->gz);
    if (s->file >= 0)
        close(s->file);
    nami_free(s->name);
    nami_free(s);
}

const char *nami_source_name(const nami_source *s)
{
    return s->name;
}

int64_t nami_source_length(const nami_source *s)
{
    return s->length;
}

int nami_source_is(const nami_source *s, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode;
}

nami_status nami_source_some(nami_source *s, void *data, size_t bytes, size_t *got)
{
    NAMI_TRY(read_some(s, data, bytes, got));
    s->at += (int64_t)*got;
    return NAMI_OK;
}

nami_status nami_source_read(nami_source *s, void *data, size_t bytes)
{
    size_t got;
    NAMI_TRY(nami_source_some(s, data, bytes, &got));
    if (got < bytes)
        return nami_fail(NAMI_EINPUT, "%s got shorter while it was read", s->name);
    return NAMI_OK;
}

/* Read at most `bytes` bytes and forget them. */
static nami_status skip(nami_source *s, int64_t bytes, int64_t *skipped)
{
    char *block = nami_alloc(NAMI_MEM_DATA, BLOCK);
    nami_status status = NAMI_OK;
    size_t want = 1, got = 1;
    *skipped = 0;
    while (status == NAMI_OK && got == want && *skipped < bytes) {
        want = bytes - *skipped < (int64_t)BLOCK ? (size_t)(bytes - *skipped) : BLOCK;
        status = read_some(s, block, want, &got);
        *skipped += (int64_t)got;
    }
    nami_free(block);
    return status;
}

/* Bytes that follow in gzip data, at most `most` counted. */
static nami_status count_gz(nami_source *s, int64_t most, int64_t *rest)
{
    NAMI_TRY(skip(s, most, rest));
    if (gzdirect(s->gz))
        return nami_fail(NAMI_EINPUT, "%s is not gzip data, though its name says so",
                         s->name);
    int64_t back;
    if (gzrewind(s->gz) != 0)
        return nami_fail(NAMI_EENV, "%s cannot be read a second time", s->name);
    return skip(s, s->at, &back);
}

nami_status nami_source_expect(nami_source *s, int64_t bytes, const char *what)
{
    /* deflate packs 258 bytes into 2 bits at best (RFC 1951), about 1032 to 1 */
    bool possible = !s->gz || bytes / 1040 <= s->packed;
    int64_t rest = s->length - s->at;
    if (s->gz && possible)
        NAMI_TRY(count_gz(s, bytes < INT64_MAX ? bytes + 1 : bytes, &rest));
    if (!possible)
        return nami_fail(NAMI_EINPUT,
                         "%s announces %s, more than its %lld bytes of gzip data can "
                         "hold",
                         s->name, what, (long long)s->packed);
    if (rest != bytes)
        return nami_fail(
            NAMI_EINPUT,
            "%s announces %s, which is %lld bytes, but holds %s%lld: it is "
            "truncated or damaged",
            s->name, what, (long long)bytes, s->gz && rest > bytes ? "at least " : "",
            (long long)rest);
    s->length = s->at + bytes;
    return NAMI_OK;
}
