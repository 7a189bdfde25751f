/* SPDX-License-Identifier: MIT */
/* import.h - text, token files and images into data sets. */
#ifndef NAMI_DATA_IMPORT_H
#define NAMI_DATA_IMPORT_H

#include <stdint.h>

#include "base/status.h"

typedef enum nami_import_format {
    NAMI_IMPORT_TEXT,        /* bytes are the tokens */
    NAMI_IMPORT_NANOGPT,     /* bare uint16, little-endian */
    NAMI_IMPORT_LLMC,        /* 1024 bytes of header, then uint16, little-endian */
    NAMI_IMPORT_MEGATRON,    /* PREFIX.bin and PREFIX.idx of Megatron-LM */
    NAMI_IMPORT_BPE,         /* a rank file, then texts */
    NAMI_IMPORT_BERT_TEXT,   /* a vocabulary file, then texts, one sentence a line */
    NAMI_IMPORT_NVIDIA_BERT, /* HDF5 files of ready BERT samples */
    NAMI_IMPORT_IDX,         /* pairs of IDX files: images, labels */
    NAMI_IMPORT_CIFAR10,     /* the binary version of CIFAR-10, 1 label byte an image */
    NAMI_IMPORT_CIFAR100,    /* of CIFAR-100: a coarse label, a fine one, the image */
    NAMI_IMPORT_FOLDER, /* a folder whose subfolders are classes of JPEG and PNG files */
    NAMI_IMPORT_FORMATS
} nami_import_format;

typedef struct nami_import {
    nami_import_format format;
    char *const *input; /* [inputs] paths, see nami_source_open; concatenated */
    int inputs;
    const char *output; /* the data set, or with a split the stem of two */
    /* share of the first tokens or images that goes to the training set; 0: no split */
    double split;
    int64_t vocabulary; /* 0: the format's own (256 of text, 50257 of llm.c) */
    int64_t classes;    /* of images; 0: the format's own, or the largest label + 1 */
    int64_t channels;   /* of images in a folder: 1 or 3; 0: 3 */
    /* images in a folder are scaled and cut to size x size; 0: as they are */
    int64_t size;
} nami_import;

/* The format called `name`; NAMI_IMPORT_FORMATS when it is none. Local. */
nami_import_format nami_import_find(const char *name);

/* The names of all formats; NULL-terminated. */
extern const char *const nami_import_formats[];

/* The output's name: `output` itself, with a split OUTPUT-train.h5 (part 0) or OUTPUT-valid.h5 (part 1), where an ".h5" at
 * the end of `output` is dropped first. Freed with nami_free. Local. */
char *nami_import_path(const nami_import *im, int part);

/* Read all inputs and write the data sets.
 *
 * Local. Memory is bounded, whatever the inputs' size. An output appears under its name when it is complete and on disk, or
 * not at all; an existing file is replaced only if it is HDF5 and none of the inputs.
 * Status: NAMI_EINPUT an input or the output's name; NAMI_EENV no room on disk.
 */
nami_status nami_import_run(const nami_import *im);

#endif
