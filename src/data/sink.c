/* SPDX-License-Identifier: MIT */
/* sink.c - a data set being written. */
#include "data/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/tokens.h"

/* The directory of `path`, freed with nami_free. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return nami_strdup(".");
    return slash == path ? nami_strdup("/")
                         : nami_strf("%.*s", (int)(slash - path), path);
}

static nami_status directory_allowed(const char *path)
{
    char *directory = directory_of(path);
    struct stat st;
    nami_status status = NAMI_OK;
    if (stat(directory, &st) != 0)
        status = nami_fail(NAMI_EINPUT, "%s cannot be written: directory %s: %s", path,
                           directory, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        status = nami_fail(NAMI_EINPUT, "%s cannot be written: %s is not a directory",
                           path, directory);
    nami_free(directory);
    return status;
}

/* Whether the file starts as HDF5 does. */
static int is_hdf5(const char *path)
{
    char head[8] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, head, sizeof head);
    if (file >= 0)
        close(file);
    return n == (ssize_t)sizeof head && !memcmp(head, "\211HDF\r\n\032\n", sizeof head);
}

nami_status nami_sink_allowed(const char *path)
{
    struct stat st;
    size_t n = strlen(path);
    if (n == 0 || path[n - 1] == '/' || !strcmp(path, "-"))
        return nami_fail(NAMI_EINPUT, "'%s' is no name for a data set", path);
    NAMI_TRY(directory_allowed(path));
    if (stat(path, &st) != 0)
        return NAMI_OK;
    if (S_ISDIR(st.st_mode))
        return nami_fail(NAMI_EINPUT, "%s is a directory, no name for a data set",
                         path);
    if (!S_ISREG(st.st_mode) || (st.st_size > 0 && !is_hdf5(path)))
        return nami_fail(
            NAMI_EINPUT,
            "%s exists and is not a data set: it is not replaced (the last name is the "
            "output)",
            path);
    return NAMI_OK;
}

nami_status nami_sink_begin(const char *path, nami_sink *s)
{
    *s = (nami_sink){.path = nami_strdup(path),
                     .temporary = nami_strf("%s.tmp.%ld", path, (long)getpid())};
    return nami_store_create(NULL, s->temporary, &s->store);
}

nami_status nami_sink_open(const char *path, int64_t tokens, int64_t vocabulary,
                           nami_sink *s)
{
    NAMI_TRY(nami_sink_begin(path, s));
    s->tokens = tokens;
    s->vocabulary = vocabulary;
    nami_store_type type =
        nami_tokens_width(vocabulary) == 1 ? NAMI_STORE_U8 : NAMI_STORE_U16;
    return nami_store_define(s->store, "/tokens", type, 1, &tokens);
}

nami_status nami_sink_add(nami_sink *s, const void *token, int64_t count)
{
    NAMI_CHECK(s->written + count <= s->tokens);
    s->sum =
        nami_tokens_checksum(s->sum, token, count, nami_tokens_width(s->vocabulary));
    NAMI_TRY(nami_store_write(s->store, "/tokens", s->written, count, token));
    s->written += count;
    return NAMI_OK;
}

nami_status nami_sink_finish(nami_sink *s, const char *kind, const char *source)
{
    NAMI_CHECK(s->written == s->tokens);
    char sum[16];
    NAMI_TRY(nami_store_set_int(s->store, "vocabulary", s->vocabulary));
    NAMI_TRY(nami_store_set_int(s->store, "tokens", s->tokens));
    NAMI_TRY(
        nami_store_set_text(s->store, "checksum", nami_tokens_sum_text(sum, s->sum)));
    NAMI_TRY(nami_store_set_text(s->store, "source", source));
    NAMI_TRY(nami_store_set_text(s->store, "kind", kind));
    char *summary =
        nami_strf("%lld tokens, vocabulary %lld, crc32 %08x", (long long)s->tokens,
                  (long long)s->vocabulary, (unsigned)s->sum);
    nami_status status = nami_sink_end(s, summary);
    nami_free(summary);
    return status;
}

nami_status nami_sink_end(nami_sink *s, const char *summary)
{
    s->summary = nami_strdup(summary);
    nami_status status = nami_store_close(s->store);
    s->store = NULL;
    return status;
}

nami_status nami_sink_publish(nami_sink *s)
{
    if (rename(s->temporary, s->path) != 0)
        return nami_fail(NAMI_EENV, "%s cannot be renamed to %s: %s", s->temporary,
                         s->path, strerror(errno));
    nami_free(s->temporary);
    s->temporary = NULL;
    nami_log(NAMI_INFO, "%s: %s", s->path, s->summary);
    return nami_store_sync_directory(s->path);
}

void nami_sink_close(nami_sink *s)
{
    if (s->store)
        (void)nami_store_close(s->store);
    if (s->temporary)
        unlink(s->temporary);
    nami_free(s->summary);
    nami_free(s->temporary);
    nami_free(s->path);
    *s = (nami_sink){0};
}
