/* SPDX-License-Identifier: MIT */
/* pictures.h - labelled images being read from files of other programs, in order. */
#ifndef NAMI_DATA_PICTURES_H
#define NAMI_DATA_PICTURES_H

#include "data/import.h"
#include "data/source.h"

typedef struct nami_pictures nami_pictures;
struct nami_pictures {
    int64_t samples, channels, height, width;
    int64_t classes;        /* every label is below it */
    char *names;            /* of the classes, one a line; owned; NULL: unknown */
    nami_source *source[2]; /* files that are read; NULL: none; owned */
    void *own;              /* the format's; owned by it */
    /* The next `count` images u8 [count,C,H,W] and their labels. Local. Status: NAMI_EINPUT, NAMI_EENV. */
    nami_status (*read)(nami_pictures *p, int64_t count, uint8_t *pixel,
                        uint16_t *label);
    void (*drop)(nami_pictures *p); /* frees `own`; NULL: nothing to do */
};

/* Open one pair of IDX files; a folder of class folders; a file of CIFAR-10 or -100. Pipes are copied to `spool`. All Local.
 * `p` is zeroed on entry and closed by the caller, also after a failure. Status: NAMI_EINPUT, NAMI_EENV. */
nami_status nami_idx_open(const char *images, const char *labels, const char *spool,
                          nami_pictures *p);
nami_status nami_cifar_open(const char *path, int labels, const char *spool,
                            nami_pictures *p); /* `labels` bytes in front of an image */
nami_status nami_folder_open(const char *path, int64_t channels, int64_t side,
                             nami_pictures *p); /* side 0: as they are */
void nami_pictures_close(nami_pictures *p);     /* Local. */

/* Import as nami_import_run, of a format of images. Local. */
nami_status nami_import_images(const nami_import *im);

#endif
