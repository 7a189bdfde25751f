/* SPDX-License-Identifier: MIT */
/* file.h - descriptors of files. */
#ifndef NAMI_BASE_FILE_H
#define NAMI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Write all `bytes` bytes; false with errno when that fails. Local. */
bool nami_file_write(int file, const void *data, size_t bytes);

#endif
