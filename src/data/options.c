/* SPDX-License-Identifier: MIT */
/* options.c - section [data] of the deck. */
#include "data/data.h"

static const char *const last_batches[] = {"drop", "pad", "short", NULL};

#define ROW(k, c, ...)                                                                 \
    {                                                                                  \
        .section = "data", .key = #k, .kind = NAMI_OPTION_##c,                         \
        .offset = offsetof(nami_data_options, k), __VA_ARGS__                          \
    }
static const nami_option rows[] = {
    ROW(train, TEXT, .fallback = "",
        .help = "Data set to train on, made by nami import."),
    ROW(valid, TEXT, .fallback = "",
        .help = "Data set to evaluate on; none: no evaluation."),
    ROW(last_batch, CHOICE, .fallback = "drop", .choices = last_batches,
        .help =
            "What becomes of an evaluation's last incomplete batch: left out; filled "
            "up with the set's first samples, which then count twice; or only its own "
            "samples count."),
    ROW(pad, INT, .fallback = "0", .maximum = 4096, .unit = "pixels",
        .help =
            "Black border that images get on each side, for training and evaluation: 2 "
            "makes 32 x 32 of 28 x 28."),
    ROW(crop, INT, .fallback = "0", .maximum = 4096, .unit = "pixels",
        .help =
            "A training image is shifted by up to so much down or up, left or right; "
            "black moves in."),
    ROW(flip, BOOL, .fallback = "no",
        .help = "Half of the training images are mirrored, left to right."),
    ROW(cutout, INT, .fallback = "0", .maximum = 4096, .unit = "pixels",
        .help =
            "Side of a square of a training image that is set to the mean; 0: none."),
    ROW(cutout_probability, REAL, .fallback = "1", .maximum = 1,
        .help =
            "Share of the training images that lose the square, in the first epoch."),
    ROW(cutout_growth, REAL, .fallback = "0", .maximum = 1,
        .help = "What is added to cutout_probability for each epoch, up to 1 in all."),
    ROW(mean, TEXT, .fallback = "",
        .help = "Subtracted from pixels / 255, one number a channel; empty: the mean "
                "of the "
                "training set."),
    ROW(deviation, TEXT, .fallback = "",
        .help =
            "Divides pixels after that, one number a channel; empty: the deviation of "
            "the training set."),
};
#undef ROW

const nami_option_table nami_data_option_table = {rows, sizeof rows / sizeof *rows};
