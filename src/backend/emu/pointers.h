/* SPDX-License-Identifier: MIT */
/* pointers.h - which fields of a kernel's arguments are addresses. */
#ifndef NAMI_BACKEND_EMU_POINTERS_H
#define NAMI_BACKEND_EMU_POINTERS_H

#include "backend/emu/arena.h"
#include "backend/kernel.h"

/* Arguments of any kernel. */
typedef union nami_emu_args {
    nami_arg_linear linear;
    nami_arg_norm norm;
    nami_arg_gelu gelu;
    nami_arg_attention attention;
    nami_arg_rotary rotary;
    nami_arg_swiglu swiglu;
    nami_arg_dropout dropout;
    nami_arg_embed embed;
    nami_arg_gather gather;
    nami_arg_xent xent;
    nami_arg_vector vector;
    nami_arg_update update;
    nami_arg_predict predict;
    nami_arg_drift drift;
    nami_arg_wait wait;
    nami_arg_conv conv;
    nami_arg_batch_norm batch_norm;
    nami_arg_pool pool;
    nami_arg_unary unary;
    nami_arg_concat concat;
    nami_arg_excite excite;
    nami_arg_turn turn;
    nami_arg_prepend prepend;
} nami_emu_args;

/* Copy the arguments of `k` with every address translated for the lanes. Local.
 * Returns the first address that is not one of the device; NULL: all are. */
const void *nami_emu_translate(const nami_arena *a, nami_kernel k, const void *args,
                               nami_emu_args *out);

#endif
