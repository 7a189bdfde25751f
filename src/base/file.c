/* SPDX-License-Identifier: MIT */
/* file.c - writing all that is to be written. */
#include "base/file.h"

#include <errno.h>
#include <unistd.h>

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
