/* SPDX-License-Identifier: MIT */
/* options.c - [checkpoint] of the deck. */
#include "ckpt/ckpt.h"

static const nami_option rows[] = {
    {
        .section = "checkpoint",
        .key = "every",
        .kind = NAMI_OPTION_INT,
        .offset = offsetof(nami_ckpt_options, every),
        .fallback = "0",
        .minimum = 0,
        .maximum = 1e15,
        .unit = "steps",
        .help = "Steps between checkpoints; 0 saves only at the end and when a run is "
                "stopped.",
    },
    {
        .section = "checkpoint",
        .key = "keep",
        .kind = NAMI_OPTION_INT,
        .offset = offsetof(nami_ckpt_options, keep),
        .fallback = "2",
        .minimum = 1,
        .maximum = 1e6,
        .help = "Checkpoints kept; older ones are deleted after each save.",
    },
    {
        .section = "checkpoint",
        .key = "best",
        .kind = NAMI_OPTION_BOOL,
        .offset = offsetof(nami_ckpt_options, best),
        .fallback = "no",
        .help = "Also save after each evaluation that is the best so far (images: most "
                "right answers, else the lowest loss), and keep that checkpoint; file "
                "checkpoints/best names it.",
    },
};

const nami_option_table nami_ckpt_option_table = {rows, sizeof rows / sizeof rows[0]};
