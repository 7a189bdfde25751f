/* SPDX-License-Identifier: MIT */
/* options.c - the table of [emu]. */
#include "backend/emu/options.h"

const char *const nami_emu_delegates[] = {"ref", "cpu", NULL};

#define ROW(k, c, ...)                                                                 \
    {                                                                                  \
        .section = "emu", .key = #k, .kind = NAMI_OPTION_##c,                          \
        .offset = offsetof(nami_emu_options, k), __VA_ARGS__                           \
    }
static const nami_option rows[] = {
    ROW(delegate, CHOICE, .fallback = "ref", .choices = nami_emu_delegates,
        .help = "Backend whose kernels compute on the imitated device."),
    ROW(memory, INT, .fallback = "8192", .minimum = 1, .maximum = 1 << 24,
        .unit = "MiB", .help = "Memory of the device of each rank."),
    ROW(copy_latency, DURATION, .fallback = "0", .maximum = 3600,
        .help = "Time of a copy between host and device, beside its bytes."),
    ROW(copy_bandwidth, REAL, .fallback = "0", .maximum = 1e18, .unit = "bytes/s",
        .help = "Speed of copies between host and device; 0 lets bytes cost nothing."),
    ROW(jitter, DURATION, .fallback = "0", .maximum = 3600,
        .help = "Longest random delay before each piece of work, for tests."),
    ROW(seed, INT, .fallback = "1", .maximum = 1e15,
        .help = "Of the random delays; each rank draws its own."),
    ROW(fail_launch, INT, .fallback = "0", .maximum = 1e15,
        .help = "Number of the launch that fails on each rank, for tests; 0 for none."),
    ROW(fail_alloc, INT, .fallback = "0", .maximum = 1e15,
        .help = "Number of the allocation that fails on each rank, for tests; 0 for "
                "none."),
};
#undef ROW

const nami_option_table nami_emu_option_table = {rows, sizeof rows / sizeof rows[0]};
