/* SPDX-License-Identifier: MIT */
/* spool.c - unnamed files for what is counted before it is written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/inner.h"

static nami_status fails(const char *what)
{
    return nami_fail(NAMI_EENV, "the temporary file of tokens cannot be %s: %s", what,
                     strerror(errno));
}

nami_status nami_spool_open(const char *output, FILE **out)
{
    char *directory = nami_import_spool(output);
    char *path = nami_strf("%s/nami-XXXXXX", directory);
    int file = mkstemp(path);
    nami_status status = NAMI_OK;
    *out = NULL;
    if (file < 0)
        status = nami_fail(NAMI_EENV, "no temporary file can be made in %s: %s",
                           directory, strerror(errno));
    else if (unlink(path) != 0 || !(*out = fdopen(file, "w+"))) {
        status = fails("opened");
        close(file);
    }
    nami_free(path);
    nami_free(directory);
    return status;
}

nami_status nami_spool_add(FILE *f, const void *data, size_t bytes)
{
    return bytes == 0 || fwrite(data, bytes, 1, f) == 1 ? NAMI_OK : fails("written");
}

nami_status nami_spool_rewind(FILE *f)
{
    return fflush(f) == 0 && fseek(f, 0, SEEK_SET) == 0 ? NAMI_OK : fails("read back");
}

nami_status nami_spool_read(FILE *f, void *data, size_t bytes)
{
    return bytes == 0 || fread(data, bytes, 1, f) == 1 ? NAMI_OK : fails("read back");
}
