/* SPDX-License-Identifier: MIT */
/* import.c - nami import: files into data sets. */
#include "cli/cli.h"
#include "data/import.h"

#include <string.h>

typedef struct import_options {
    double split;
    int64_t vocabulary;
    int64_t classes, channels, size;
} import_options;

static const nami_option rows[] = {
    {.key = "split",
     .kind = NAMI_OPTION_REAL,
     .offset = offsetof(import_options, split),
     .fallback = "0",
     .minimum = 0,
     .maximum = 0.999999,
     .help = "Write two sets, OUT-train.h5 with this share of the tokens or images and "
             "OUT-valid.h5 "
             "with the rest; 0: one set."},
    {.key = "vocabulary",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(import_options, vocabulary),
     .fallback = "0",
     .minimum = 0,
     .maximum = 65536,
     .unit = "tokens",
     .help = "Number of different tokens; needed by nanogpt and megatron, 50257 for "
             "llmc and 30522 for nvidia-bert when not given, 256 for text."},
    {.key = "classes",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(import_options, classes),
     .fallback = "0",
     .minimum = 0,
     .maximum = 65536,
     .help = "Classes of images; 0: the format's own, for idx the largest label + 1."},
    {.key = "channels",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(import_options, channels),
     .fallback = "0",
     .minimum = 0,
     .maximum = 3,
     .help = "Channels that images of a folder get: 1 (grey) or 3 (colour); 0: 3."},
    {.key = "size",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(import_options, size),
     .fallback = "0",
     .minimum = 0,
     .maximum = 65535,
     .unit = "pixels",
     .help = "Scale images of a folder so that the shorter side has this length, and "
             "take the middle square; 0: all must have one size."},
};

static const nami_option_table table = {rows, sizeof rows / sizeof *rows};

static nami_status unknown_format(const char *name)
{
    nami_text known = {0};
    int near = nami_nearest(name, nami_import_formats, NAMI_IMPORT_FORMATS);
    if (near >= 0)
        return nami_fail(NAMI_EINPUT, "unknown format '%s'; did you mean '%s'?", name,
                         nami_import_formats[near]);
    for (int i = 0; nami_import_formats[i]; i++)
        nami_text_add(&known, "%s%s", i ? ", " : "", nami_import_formats[i]);
    nami_status status =
        nami_fail(NAMI_EINPUT, "unknown format '%s': expected one of %s", name,
                  nami_text_get(&known));
    nami_text_free(&known);
    return status;
}

static nami_status run(const nami_call *call)
{
    const import_options *options = call->options;
    nami_import im = {.format = nami_import_find(call->word[0]),
                      .input = call->word + 1,
                      .inputs = call->words - 2,
                      .output = call->word[call->words - 1],
                      .split = options->split,
                      .vocabulary = options->vocabulary,
                      .classes = options->classes,
                      .channels = options->channels,
                      .size = options->size};
    if (im.format == NAMI_IMPORT_FORMATS)
        return unknown_format(call->word[0]);
    if (im.channels == 2)
        return nami_fail(NAMI_EINPUT, "--channels is 2: expected 1 or 3");
    return nami_import_run(&im);
}

const nami_command nami_cli_import = {
    .name = "import",
    .words = "FORMAT IN... OUT",
    .summary = "turn text, token files or images into a data set",
    .text =
        "FORMAT is text (any file; its bytes are the tokens), nanogpt (bare 16-bit\n"
        "tokens, as nanoGPT's prepare.py writes), llmc (llm.c token shards), megatron\n"
        "(PREFIX.bin and PREFIX.idx of Megatron-LM; IN is PREFIX), bpe (a rank file "
        "in\n"
        "tiktoken's form, then texts: tokens of GPT-2's encoding), bert-text (BERT's\n"
        "vocab.txt, then texts with a sentence a line and blank lines between\n"
        "documents), nvidia-bert (NVIDIA's HDF5 files of BERT samples), idx (IMAGES\n"
        "LABELS, MNIST's files, in pairs), cifar10 or cifar100 (their binary "
        "versions)\n"
        "or folder (JPEG and PNG files, a subfolder for each class). Several inputs\n"
        "are joined in the given order. A name that ends in .gz is unpacked on the\n"
        "way; - is standard input; neither of nvidia-bert. OUT is an HDF5 file; with\n"
        "--split it is the stem of two, and an .h5 at its end is dropped first.\n",
    .options = &table,
    .size = sizeof(import_options),
    .fewest = 3,
    .most = -1,
    .run = run,
};
