/* SPDX-License-Identifier: MIT */
/* tiny_emu.h - the imitated device for the problems of tiny.h: tiny_open = tiny_emu_open, with tiny_emu as it says. */
#ifndef NAMI_TESTS_EXEC_TINY_EMU_H
#define NAMI_TESTS_EXEC_TINY_EMU_H

#include "backend/emu/options.h"
#include "tiny.h"

static nami_emu_options tiny_emu;

static nami_status tiny_emu_open(const char *name, int threads, nami_dtype act,
                                 nami_backend **out)
{
    (void)name;
    return nami_backend_open_with(
        "emu",
        &(nami_backend_config){
            .threads = threads, .act = act, .number = (uint64_t)rank, .emu = &tiny_emu},
        out);
}

#endif
