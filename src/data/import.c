/* SPDX-License-Identifier: MIT */
/* import.c - which importer takes an order. */
#include "data/import.h"

#include <string.h>

#include "data/inner.h"
#include "data/pictures.h"

const char *const nami_import_formats[] = {
    "text",        "nanogpt", "llmc",    "megatron", "bpe",    "bert-text",
    "nvidia-bert", "idx",     "cifar10", "cifar100", "folder", NULL};

nami_import_format nami_import_find(const char *name)
{
    int i = 0;
    while (nami_import_formats[i] && strcmp(nami_import_formats[i], name) != 0)
        i++;
    return (nami_import_format)i;
}

nami_status nami_import_run(const nami_import *im)
{
    NAMI_CHECK(im->inputs >= 1 && im->split >= 0 && im->split < 1);
    if (im->format >= NAMI_IMPORT_IDX)
        return nami_import_images(im);
    if (im->classes || im->channels || im->size)
        return nami_fail(NAMI_EINPUT,
                         "--classes, --channels and --size are for images, not for %s",
                         nami_import_formats[im->format]);
    switch (im->format) {
    case NAMI_IMPORT_BPE:
        return nami_import_bpe(im);
    case NAMI_IMPORT_BERT_TEXT:
        return nami_import_bert_text(im);
    case NAMI_IMPORT_NVIDIA_BERT:
        return nami_import_nvidia_bert(im);
    default:
        return nami_import_tokens(im);
    }
}
