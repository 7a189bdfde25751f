/* SPDX-License-Identifier: MIT */
/* read_folder.c - a folder whose subfolders are classes of JPEG and PNG files, in the order of their names. */
#include "data/pictures.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/decode.h"
#include "data/images.h"

enum { FILE_BYTES = 1 << 28 }; /* a larger file is refused */

typedef struct folder {
    char **file;     /* [files] paths, class by class */
    uint16_t *label; /* [files] */
    int64_t files, at;
    int64_t side; /* 0: as they are */
} folder;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_list(char **name, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        nami_free(name[i]);
    nami_free(name);
}

/* Names in a directory, sorted, without those that start with a dot. */
static nami_status list(const char *path, char ***name, int64_t *count)
{
    DIR *directory = opendir(path);
    *name = NULL;
    *count = 0;
    if (!directory)
        return nami_fail(NAMI_EINPUT, "folder %s cannot be read: %s", path,
                         strerror(errno));
    for (const struct dirent *e = readdir(directory); e; e = readdir(directory)) {
        if (e->d_name[0] == '.')
            continue;
        if ((*count & (*count - 1)) == 0) /* room doubles */
            *name = nami_realloc(NAMI_MEM_OTHER, *name,
                                 (*count ? 2 * (size_t)*count : 1) * sizeof **name);
        (*name)[(*count)++] = nami_strdup(e->d_name);
    }
    closedir(directory);
    if (*count > 0)
        qsort(*name, (size_t)*count, sizeof **name, by_name);
    return NAMI_OK;
}

/* Append the files of class `label`, the directory `path`. */
static nami_status add_class(folder *f, const char *path, int label)
{
    char **name;
    int64_t count;
    NAMI_TRY(list(path, &name, &count));
    size_t all = (size_t)(f->files + count) + 1;
    f->file = nami_realloc(NAMI_MEM_OTHER, f->file, all * sizeof *f->file);
    f->label = nami_realloc(NAMI_MEM_OTHER, f->label, all * sizeof *f->label);
    for (int64_t i = 0; i < count; i++) {
        f->file[f->files] = nami_strf("%s/%s", path, name[i]);
        f->label[f->files++] = (uint16_t)label;
    }
    free_list(name, count);
    return count > 0 ? NAMI_OK
                     : nami_fail(NAMI_EINPUT, "folder %s holds no image", path);
}

static nami_status add_classes(nami_pictures *p, folder *f, const char *path,
                               char *const *name, int64_t count)
{
    nami_text names = {0};
    nami_status status = NAMI_OK;
    if (count < 1 || count > NAMI_CLASSES)
        return nami_fail(NAMI_EINPUT,
                         "folder %s has %lld subfolders, where one a class (1 to %d) "
                         "is expected",
                         path, (long long)count, NAMI_CLASSES);
    for (int64_t i = 0; i < count && status == NAMI_OK; i++) {
        char *below = nami_strf("%s/%s", path, name[i]);
        nami_text_add(&names, "%s%s", i ? "\n" : "", name[i]);
        status = add_class(f, below, (int)i);
        nami_free(below);
    }
    p->names = names.data;
    p->classes = count;
    p->samples = f->files;
    return status;
}

/* The bytes of a file, freed with nami_free. */
static nami_status slurp(const char *path, unsigned char **data, size_t *bytes)
{
    nami_source *s = NULL;
    struct stat st;
    *data = NULL;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return nami_fail(NAMI_EINPUT,
                         "%s is not a file: a class folder holds images alone", path);
    NAMI_TRY(nami_source_open_declared(path, ".", &s));
    int64_t length = nami_source_length(s);
    nami_status status = NAMI_OK;
    if (length < 0 || length > FILE_BYTES)
        status = nami_fail(NAMI_EINPUT, "%s is no JPEG or PNG file of at most %d bytes",
                           path, FILE_BYTES);
    else
        *data = nami_alloc(NAMI_MEM_DATA, (size_t)length);
    if (status == NAMI_OK)
        status = nami_source_read(s, *data, (size_t)length);
    *bytes = (size_t)length;
    nami_source_close(s);
    return status;
}

static nami_status load(const char *path, int64_t channels, nami_bitmap *out)
{
    unsigned char *file;
    size_t bytes = 0;
    *out = (nami_bitmap){0};
    nami_status status = slurp(path, &file, &bytes);
    if (status == NAMI_OK)
        status = nami_decode(path, file, bytes, (int)channels, out);
    nami_free(file);
    return status;
}

static nami_status read_one(nami_pictures *p, const char *path, uint8_t *out)
{
    const folder *f = p->own;
    nami_bitmap b;
    NAMI_TRY(load(path, p->channels, &b));
    nami_status status = NAMI_OK;
    if (f->side == 0 && (b.height != p->height || b.width != p->width))
        status = nami_fail(NAMI_EINPUT,
                           "%s is %lld x %lld, but the images before it are %lld x "
                           "%lld; --size N scales all to N x N",
                           path, (long long)b.width, (long long)b.height,
                           (long long)p->width, (long long)p->height);
    else
        nami_bitmap_planes(&b, f->side, out);
    nami_free(b.pixel);
    return status;
}

static nami_status read_folder(nami_pictures *p, int64_t count, uint8_t *pixel,
                               uint16_t *label)
{
    folder *f = p->own;
    NAMI_CHECK(f->at + count <= f->files);
    for (int64_t i = 0; i < count; i++, f->at++) {
        label[i] = f->label[f->at];
        NAMI_TRY(read_one(p, f->file[f->at],
                          pixel + i * p->channels * p->height * p->width));
    }
    return NAMI_OK;
}

static void drop_folder(nami_pictures *p)
{
    folder *f = p->own;
    free_list(f->file, f->files);
    nami_free(f->label);
    nami_free(f);
}

nami_status nami_folder_open(const char *path, int64_t channels, int64_t side,
                             nami_pictures *p)
{
    char **name;
    int64_t count;
    nami_bitmap first;
    folder *f = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *f);
    *p = (nami_pictures){.channels = channels ? channels : 3,
                         .own = f,
                         .read = read_folder,
                         .drop = drop_folder};
    f->side = side;
    NAMI_TRY(list(path, &name, &count));
    nami_status status = add_classes(p, f, path, name, count);
    free_list(name, count);
    NAMI_TRY(status);
    NAMI_TRY(load(f->file[0], p->channels, &first));
    p->height = side ? side : first.height;
    p->width = side ? side : first.width;
    nami_free(first.pixel);
    return NAMI_OK;
}
