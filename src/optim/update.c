/* SPDX-License-Identifier: MIT */
/* update.c - an optimiser step and the gradient norm, parameter by parameter. */
#include "optim/optim.h"

/* What an optimiser is: its kernel and its states. */
typedef struct method {
    nami_kernel kernel;
    bool m, v; /* states it always has */
} method;

static const method methods[] = {
    [NAMI_OPTIMIZER_SGD] = {NAMI_SGD, true, false},
    [NAMI_OPTIMIZER_ADAMW] = {NAMI_ADAMW, true, true},
    [NAMI_OPTIMIZER_ADAM] = {NAMI_ADAM, true, true},
    [NAMI_OPTIMIZER_RMSPROP] = {NAMI_RMSPROP, false, true},
};

enum { STATE_M, STATE_V, STATE_MEAN, STATE_DRIFT };

/* Which states there are, in their order; returns how many. */
static int list_states(const nami_optim_options *o, int state[NAMI_OPTIM_STATES])
{
    const method *is = &methods[o->optimizer];
    const bool rmsprop = o->optimizer == NAMI_OPTIMIZER_RMSPROP;
    int n = 0;
    if (is->m || (rmsprop && o->momentum > 0))
        state[n++] = STATE_M;
    if (is->v)
        state[n++] = STATE_V;
    if (rmsprop && o->centered)
        state[n++] = STATE_MEAN;
    if (o->correct)
        state[n++] = STATE_DRIFT;
    return n;
}

int nami_optim_states(const nami_optim_options *o)
{
    int state[NAMI_OPTIM_STATES];
    return list_states(o, state);
}

const char *nami_optim_state_group(const nami_optim_options *o, int s)
{
    static const char *const groups[] = {[STATE_M] = "optimizer/m",
                                         [STATE_V] = "optimizer/v",
                                         [STATE_MEAN] = "optimizer/mean",
                                         [STATE_DRIFT] = "optimizer/drift"};
    int state[NAMI_OPTIM_STATES];
    NAMI_CHECK(s >= 0 && s < list_states(o, state));
    return groups[state[s]];
}

void nami_optim_place(const nami_optim_options *o, void *first, size_t stride,
                      nami_optim_item *item)
{
    int state[NAMI_OPTIM_STATES];
    const int n = list_states(o, state);
    void **const at[] = {[STATE_M] = &item->m,
                         [STATE_V] = &item->v,
                         [STATE_MEAN] = &item->mean,
                         [STATE_DRIFT] = &item->drift};
    item->m = item->v = item->mean = item->drift = NULL;
    for (int s = 0; s < n; s++)
        *at[state[s]] = (char *)first + (size_t)s * stride;
}

nami_status nami_optim_prepare(const nami_optim_options *o, nami_backend *b,
                               nami_dtype wide, int64_t count, nami_optim_kernels *out)
{
    static char some; /* an address where a launch will have one */
    nami_optim_item item;
    nami_optim_place(o, &some, 0, &item);
    nami_arg_update update = {
        .wide = wide, .count = count, .m = item.m, .v = item.v, .centre = item.mean};
    nami_arg_vector squares = {.wide = wide, .count = count};
    NAMI_TRY(
        nami_backend_prepare(b, methods[o->optimizer].kernel, &update, &out->update));
    return nami_backend_prepare(b, NAMI_SQUARES, &squares, &out->squares);
}

void nami_optim_update(const nami_optim_options *o, nami_backend *b, int lane,
                       const nami_optim_kernels *k, nami_dtype wide,
                       const nami_optim_item *item, double rate, double scale,
                       int64_t step)
{
    const bool adam =
        o->optimizer == NAMI_OPTIMIZER_ADAMW || o->optimizer == NAMI_OPTIMIZER_ADAM;
    nami_arg_update a = {.wide = wide,
                         .count = item->count,
                         .w = item->w,
                         .from = item->from,
                         .g = item->g,
                         .m = item->m,
                         .v = item->v,
                         .centre = item->mean,
                         .nesterov = o->nesterov,
                         .lr = rate,
                         .beta1 = adam ? o->beta1 : o->momentum,
                         .beta2 = adam ? o->beta2 : o->alpha,
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
