/* SPDX-License-Identifier: MIT */
/* emu.h - inside the imitated device. */
#ifndef NAMI_BACKEND_EMU_EMU_H
#define NAMI_BACKEND_EMU_EMU_H

#include "backend/emu/lane.h"
#include "backend/emu/options.h"

enum { NAMI_EMU_LANES = 4 };

typedef struct nami_emu {
    nami_emu_options options;
    nami_arena arena;
    nami_backend *delegate;
    pthread_mutex_t *computing; /* lanes take turns with the delegate's kernels */
    nami_emu_lane lane[NAMI_EMU_LANES];
    int64_t launches, allocs; /* so far */
    nami_kernel failing;      /* that options.fail_launch hit */
} nami_emu;

#endif
