/* SPDX-License-Identifier: MIT */
/* directory.c - the files of a directory of checkpoints. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "ckpt/inner.h"

static const char temporary_prefix[] = ".tmp-step-";

bool nami_ckpt_leads(const nami_comm *c)
{
    return !c || nami_comm_rank(c) == 0;
}

char *nami_ckpt_path(const char *directory, int64_t step)
{
    return nami_strf("%s/step-%08lld.h5", directory, (long long)step);
}

char *nami_ckpt_temporary(const char *directory, int64_t step)
{
    return nami_strf("%s/%s%08lld.h5", directory, temporary_prefix, (long long)step);
}

/* Ten megabytes a second is a bad day of a shared disk. */
void nami_ckpt_extend(nami_comm *c, double bytes)
{
    nami_comm_extend(c, bytes / 10e6);
}

/* The step of a name, -1 when it is no checkpoint's. */
static int64_t step_of(const char *name)
{
    int64_t step = -1;
    size_t digits = strncmp(name, "step-", 5) == 0 ? strspn(name + 5, "0123456789") : 0;
    if (digits < 8 || strcmp(name + 5 + digits, ".h5") != 0)
        return -1;
    char *number = nami_strf("%.*s", (int)digits, name + 5);
    if (!nami_parse_int(number, &step))
        step = -1;
    nami_free(number);
    return step;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

nami_status nami_ckpt_steps(const char *directory, int64_t **step, int *count)
{
    DIR *d = opendir(directory);
    *step = NULL;
    *count = 0;
    if (!d && errno == ENOENT)
        return NAMI_OK;
    if (!d)
        return nami_fail(NAMI_EENV, "%s cannot be read: %s", directory,
                         strerror(errno));
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        int64_t found = step_of(e->d_name);
        if (found < 0)
            continue;
        *step =
            nami_realloc(NAMI_MEM_OTHER, *step, (size_t)(*count + 1) * sizeof **step);
        (*step)[(*count)++] = found;
    }
    closedir(d);
    if (*count)
        qsort(*step, (size_t)*count, sizeof **step, newest_first);
    return NAMI_OK;
}

/* A save in progress holds a lock on its file, so what can be locked was left by one that was killed. */
static nami_status remove_temporary(const char *path)
{
    nami_status status = NAMI_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = nami_fail(
            NAMI_EENV,
            "another run is just saving %s; two runs cannot share a directory", path);
    else if (unlink(path) != 0 && errno != ENOENT)
        status =
            nami_fail(NAMI_EENV, "%s cannot be removed: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

nami_status nami_ckpt_clean(const char *directory)
{
    nami_status status = NAMI_OK;
    DIR *d = opendir(directory);
    if (!d)
        return NAMI_OK;
    for (const struct dirent *e = readdir(d); e && status == NAMI_OK; e = readdir(d)) {
        if (strncmp(e->d_name, temporary_prefix, strlen(temporary_prefix)) != 0)
            continue;
        char *path = nami_strf("%s/%s", directory, e->d_name);
        status = remove_temporary(path);
        nami_free(path);
    }
    closedir(d);
    return status;
}

/* Whether the file says that it was written to its end; its checksums are not looked at. */
static bool looks_complete(const char *path)
{
    nami_store *s;
    int64_t complete = 0;
    bool ok = nami_store_open(NULL, path, &s) == NAMI_OK;
    if (ok) {
        ok = nami_store_get_int(s, "complete", &complete) == NAMI_OK && complete == 1;
        ok = nami_store_close(s) == NAMI_OK && ok;
    }
    if (!ok)
        nami_fail_clear();
    return ok;
}

nami_status nami_ckpt_prune(const char *directory, int64_t keep, int64_t own,
                            int64_t spare)
{
    int64_t *step, kept = 0;
    int count;
    NAMI_TRY(nami_ckpt_steps(directory, &step, &count));
    nami_status status = NAMI_OK;
    for (int i = 0; i < count && status == NAMI_OK; i++) {
        char *path = nami_ckpt_path(directory, step[i]);
        if (step[i] == own)
            kept++;
        else if (kept < keep)
            kept += looks_complete(path);
        else if (step[i] != spare && unlink(path) != 0 && errno != ENOENT)
            status =
                nami_fail(NAMI_EENV, "%s cannot be removed: %s", path, strerror(errno));
        nami_free(path);
    }
    nami_free(step);
    return status;
}

nami_status nami_ckpt_make_directory(const char *directory)
{
    char *path = nami_strdup(directory);
    nami_status status = NAMI_OK;
    for (char *p = path + 1; status == NAMI_OK; p++) {
        char end = *p;
        if (end != '/' && end != '\0')
            continue;
        *p = '\0';
        if (mkdir(path, 0777) == 0)
            status = nami_store_sync_directory(path);
        else if (errno != EEXIST)
            status = nami_fail(NAMI_EENV, "directory %s cannot be made: %s", path,
                               strerror(errno));
        *p = end;
        if (end == '\0')
            break;
    }
    nami_free(path);
    return status;
}
