/* SPDX-License-Identifier: MIT */
/* file.h - files written whole. */
#ifndef NAMI_BASE_FILE_H
#define NAMI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Write all `bytes` bytes; false with errno when that fails. Local. */
bool nami_file_write(int file, const void *data, size_t bytes);

/* Write a file under another name, PATH.new, and rename it: what was there before stays until all is written. Local.
 * Status: NAMI_EENV. */
nami_status nami_file_replace(const char *path, const void *data, size_t bytes);

#endif
