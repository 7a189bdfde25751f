/* SPDX-License-Identifier: MIT */
/* file.c - write all that is to be written. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

bool nami_file_write(int file, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        ssize_t n = write(file, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = EIO;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

nami_status nami_file_replace(const char *path, const void *data, size_t bytes)
{
    char *fresh = nami_strf("%s.new", path);
    nami_status status = NAMI_OK;
    int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = file >= 0 && nami_file_write(file, data, bytes);
    if (file >= 0 && close(file) != 0)
        good = false;
    if (!good || rename(fresh, path) != 0) {
        status =
            nami_fail(NAMI_EENV, "%s cannot be written: %s", path, strerror(errno));
        (void)unlink(fresh);
    }
    nami_free(fresh);
    return status;
}
