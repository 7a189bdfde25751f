/* SPDX-License-Identifier: MIT */
/* files.h - files for the tests of data/: made, imported, looked at. */
#ifndef TESTS_DATA_FILES_H
#define TESTS_DATA_FILES_H

#include "nami_test.h"

#include <dirent.h>
#include <zlib.h>

#include "base/log.h"
#include "data/data.h"
#include "data/import.h"

/* Write a file of the scratch directory; its path goes to buf[512]. */
static inline const char *put(char buf[512], const char *name, const void *data,
                              size_t bytes)
{
    nami_test_write(nami_test_path(buf, name), data, bytes);
    return buf;
}

/* The same as gzip data. */
static inline const char *put_gz(char buf[512], const char *name, const void *data,
                                 size_t bytes)
{
    gzFile f = gzopen(nami_test_path(buf, name), "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, data, (unsigned)bytes), bytes);
    assert_int_equal(gzclose(f), Z_OK);
    return buf;
}

/* An llm.c shard of these numbers; freed with nami_free. */
static inline unsigned char *shard(const uint16_t *token, int64_t count, size_t *bytes)
{
    static const uint32_t head[2] = {20240520, 1};
    *bytes = 1024 + 2 * (size_t)count;
    unsigned char *p = nami_calloc(NAMI_MEM_OTHER, 1, *bytes);
    for (int i = 0; i < 12; i++) {
        uint32_t word = i < 8 ? head[i / 4] : (uint32_t)count;
        p[i] = (unsigned char)(word >> 8 * (i % 4));
    }
    for (size_t i = 0; i < 2 * (size_t)count; i++)
        p[1024 + i] = (unsigned char)(token[i / 2] >> 8 * (i % 2));
    return p;
}

/* Little-endian number of `bytes` bytes. */
static inline void little(unsigned char *p, int64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (unsigned char)((uint64_t)x >> 8 * i);
}

/* Megatron-LM's index of two documents: sequences of 5, 0 and count - 5 >= 0 tokens of `width` bytes. */
enum { INDEX_BYTES = 34 + 12 * 3 + 8 * 3 };
static inline void megatron_index(unsigned char p[INDEX_BYTES], int type, int width,
                                  int64_t count)
{
    const int64_t length[3] = {5, 0, count - 5}, offset[3] = {0, 5, 5};
    const int64_t document[3] = {0, 2, 3};
    memset(p, 0, INDEX_BYTES);
    memcpy(p, "MMIDIDX", 7);
    little(p + 9, 1, 8);
    p[17] = (unsigned char)type;
    little(p + 18, 3, 8);
    little(p + 26, 3, 8);
    for (int i = 0; i < 3; i++) {
        little(p + 34 + 4 * i, length[i], 4);
        little(p + 46 + 8 * i, offset[i] * width, 8);
        little(p + 70 + 8 * i, document[i], 8);
    }
}

/* Import one input. */
static inline nami_status import_one(nami_import_format format, const char *in,
                                     const char *out, double split, int64_t vocabulary)
{
    char *input[1] = {(char *)(uintptr_t)in};
    nami_import im = {.format = format,
                      .input = input,
                      .inputs = 1,
                      .output = out,
                      .split = split,
                      .vocabulary = vocabulary};
    return nami_import_run(&im);
}

/* Names in the scratch directory that contain `part`. */
static inline int count_files(const char *part)
{
    char path[512];
    DIR *d = opendir(nami_test_path(path, ""));
    assert_non_null(d);
    int count = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        count += strstr(e->d_name, part) != NULL;
    closedir(d);
    return count;
}

#endif
