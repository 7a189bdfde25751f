/* SPDX-License-Identifier: MIT */
/* options.h - [emu] of the deck: what the imitated device costs and where it fails. */
#ifndef NAMI_BACKEND_EMU_OPTIONS_H
#define NAMI_BACKEND_EMU_OPTIONS_H

#include <stdint.h>

#include "base/option.h"

typedef struct nami_emu_options {
    int delegate;   /* index: ref, cpu */
    int64_t memory; /* MiB */
    /* seconds of a copy between host and device, beside its bytes */
    double copy_latency;
    double copy_bandwidth; /* bytes/s of such a copy; 0: no cost */
    double jitter; /* seconds: the longest random delay before each piece of work */
    int64_t seed;  /* of the delays */
    int64_t fail_launch; /* the launch of this number fails, 1-based; 0: none */
    int64_t fail_alloc;  /* the allocation of this number fails, 1-based; 0: none */
} nami_emu_options;

extern const nami_option_table nami_emu_option_table;

/* Names of the delegates, NULL-terminated. */
extern const char *const nami_emu_delegates[];

#endif
