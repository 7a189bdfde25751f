/* SPDX-License-Identifier: MIT */
/* import.c - nami import: files into data sets. */
#include "cli/cli.h"
#include "data/import.h"

#include <string.h>

typedef struct import_options {
    double split;
    int64_t vocabulary;
} import_options;

static const nami_option rows[] = {
    {.key = "split",
     .kind = NAMI_OPTION_REAL,
     .offset = offsetof(import_options, split),
     .fallback = "0",
     .minimum = 0,
     .maximum = 0.999999,
     .help =
         "Write two sets, OUT-train.h5 with this share of the tokens and OUT-valid.h5 "
         "with the rest; 0: one set."},
    {.key = "vocabulary",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(import_options, vocabulary),
     .fallback = "0",
     .minimum = 0,
     .maximum = 65536,
     .unit = "tokens",
     .help = "Number of different tokens; needed by nanogpt, 50257 for llmc when not "
             "given, 256 for text."},
};

static const nami_option_table table = {rows, sizeof rows / sizeof *rows};

static nami_status run(const nami_call *call)
{
    const import_options *options = call->options;
    nami_import im = {.format = nami_import_find(call->word[0]),
                      .input = call->word + 1,
                      .inputs = call->words - 2,
                      .output = call->word[call->words - 1],
                      .split = options->split,
                      .vocabulary = options->vocabulary};
    if (im.format == NAMI_IMPORT_FORMATS)
        return nami_fail(NAMI_EINPUT,
                         "unknown format '%s': expected text, nanogpt or llmc",
                         call->word[0]);
    return nami_import_run(&im);
}

const nami_command nami_cli_import = {
    .name = "import",
    .words = "FORMAT IN... OUT",
    .summary = "turn text or token files into a data set",
    .text =
        "FORMAT is text (any file; its bytes are the tokens), nanogpt (bare 16-bit\n"
        "tokens, as nanoGPT's prepare.py writes) or llmc (llm.c token shards). "
        "Several\n"
        "inputs are joined in the given order. A name that ends in .gz is unpacked on\n"
        "the way; - is standard input. OUT is an HDF5 file; with --split it is the "
        "stem\n"
        "of two, and an .h5 at its end is dropped first.\n",
    .options = &table,
    .size = sizeof(import_options),
    .fewest = 3,
    .most = -1,
    .run = run,
};
