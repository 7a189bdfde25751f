/* SPDX-License-Identifier: MIT */
/* update.c - an optimiser step and the gradient norm, parameter by parameter. */
#include "optim/optim.h"

static nami_kernel update_kernel(const nami_optim_options *o)
{
    return o->optimizer == NAMI_OPTIMIZER_ADAMW ? NAMI_ADAMW : NAMI_SGD;
}

nami_status nami_optim_prepare(const nami_optim_options *o, nami_backend *b,
                               nami_dtype wide, int64_t count, nami_optim_kernels *out)
{
    nami_arg_update update = {.wide = wide, .count = count};
    nami_arg_vector squares = {.wide = wide, .count = count};
    NAMI_TRY(nami_backend_prepare(b, update_kernel(o), &update, &out->update));
    return nami_backend_prepare(b, NAMI_SQUARES, &squares, &out->squares);
}

void nami_optim_update(const nami_optim_options *o, nami_backend *b, int lane,
                       const nami_optim_kernels *k, nami_dtype wide,
                       const nami_optim_item *item, double rate, double scale,
                       int64_t step)
{
    bool adam = o->optimizer == NAMI_OPTIMIZER_ADAMW;
    nami_arg_update a = {.wide = wide,
                         .count = item->count,
                         .w = item->w,
                         .g = item->g,
                         .m = item->m,
                         .v = item->v,
                         .lr = rate,
                         .beta1 = adam ? o->beta1 : o->momentum,
                         .beta2 = o->beta2,
                         .eps = o->eps,
                         .decay = item->decay ? o->decay : 0,
                         .grad_scale = scale,
                         .step = step + 1};
    nami_backend_launch(b, lane, k->update, &a);
}

nami_event nami_optim_squares(nami_backend *b, int lane, const nami_optim_kernels *k,
                              nami_dtype wide, int64_t count, const void *g,
                              double *sum)
{
    nami_arg_vector a = {
        .wide = wide, .count = count, .a = (void *)(uintptr_t)g, .sum = sum};
    return nami_backend_launch(b, lane, k->squares, &a);
}
