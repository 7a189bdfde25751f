/* SPDX-License-Identifier: MIT */
/* advise.h - `nami plan --advise`: flags and entry. */
#ifndef NAMI_CLI_ADVISE_H
#define NAMI_CLI_ADVISE_H

#include "train/options.h"

typedef struct nami_advise_flags {
    double memory; /* bytes of a rank; 0: as the deck says */
    double flops;  /* 0: measured */
    double latency, bandwidth, overhead, update;
    int64_t top;
    bool json;
} nami_advise_flags;

/* Rows of an option table for a struct of `type` with the field `name` of the above. */
#define NAMI_ADVISE_ROWS(type, name)                                                   \
    {.key = "memory",                                                                  \
     .kind = NAMI_OPTION_REAL,                                                         \
     .offset = offsetof(type, name.memory),                                            \
     .fallback = "0",                                                                  \
     .minimum = 0,                                                                     \
     .maximum = 1e18,                                                                  \
     .help = "with --advise or --profile: bytes that a rank may use; 0: as the deck "  \
             "says"},                                                                  \
        {.key = "flops",                                                               \
         .kind = NAMI_OPTION_REAL,                                                     \
         .offset = offsetof(type, name.flops),                                         \
         .fallback = "0",                                                              \
         .minimum = 0,                                                                 \
         .maximum = 1e18,                                                              \
         .help = "with --advise: FLOP/s of a rank; 0: the peak of matrix products, "   \
                 "measured now"},                                                      \
        {.key = "latency",                                                             \
         .kind = NAMI_OPTION_DURATION,                                                 \
         .offset = offsetof(type, name.latency),                                       \
         .fallback = "20us",                                                           \
         .minimum = 0,                                                                 \
         .maximum = 3600,                                                              \
         .help = "with --advise: time of a message beside its bytes"},                 \
        {.key = "bandwidth",                                                           \
         .kind = NAMI_OPTION_REAL,                                                     \
         .offset = offsetof(type, name.bandwidth),                                     \
         .fallback = "1e9",                                                            \
         .minimum = 0,                                                                 \
         .maximum = 1e18,                                                              \
         .help = "with --advise: bytes/s between two ranks; 0: infinite"},             \
        {.key = "overhead",                                                            \
         .kind = NAMI_OPTION_DURATION,                                                 \
         .offset = offsetof(type, name.overhead),                                      \
         .fallback = "20us",                                                           \
         .minimum = 0,                                                                 \
         .maximum = 3600,                                                              \
         .help = "with --advise: time of a block's pass beside its FLOPs, so that "    \
                 "small micro-batches cost something"},                                \
        {.key = "update-rate",                                                         \
         .kind = NAMI_OPTION_REAL,                                                     \
         .offset = offsetof(type, name.update),                                        \
         .fallback = "1e10",                                                           \
         .minimum = 0,                                                                 \
         .maximum = 1e18,                                                              \
         .help = "with --advise: bytes/s that the optimiser moves; 0: infinite"},      \
        {.key = "top",                                                                 \
         .kind = NAMI_OPTION_INT,                                                      \
         .offset = offsetof(type, name.top),                                           \
         .fallback = "10",                                                             \
         .minimum = 1,                                                                 \
         .maximum = 100,                                                               \
         .help = "with --advise: candidates shown"},                                   \
    {                                                                                  \
        .key = "json", .kind = NAMI_OPTION_BOOL, .offset = offsetof(type, name.json),  \
        .fallback = "no", .help = "with --advise: print one JSON object"               \
    }

/* Rank the layouts of the deck's model on `ranks` ranks and print them. Local.
 * Status: those of nami_advise. */
nami_status nami_cli_advise(const nami_advise_flags *f, const nami_settings *s,
                            int ranks);

#endif
