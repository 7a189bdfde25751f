/* SPDX-License-Identifier: MIT */
/* predict.c - prediction and correction of weights. */
#include "optim/predict.h"

#include <math.h>

/* Whether the direction is Adam's, of two moments. */
static bool is_adam(const nami_optim_options *o)
{
    return o->optimizer == NAMI_OPTIMIZER_ADAM || o->optimizer == NAMI_OPTIMIZER_ADAMW;
}

static nami_status check_direction(const nami_optim_options *o)
{
    if (!is_adam(o) && o->momentum == 0)
        return nami_fail(NAMI_EINPUT,
                         "pipeline.weights = predict moves weights along the "
                         "optimiser's momentum, but train.momentum is 0");
    return NAMI_OK;
}

nami_status nami_predict_check(const nami_optim_options *o, bool newest, bool predicted)
{
    if (o->anneal > 0 && !newest)
        return nami_fail(NAMI_EINPUT,
                         "train.anneal is set, but needs pipeline.weights = newest");
    if (o->correct && !newest)
        return nami_fail(NAMI_EINPUT,
                         "train.correct is set, but needs pipeline.weights = newest");
    return predicted ? check_direction(o) : NAMI_OK;
}

nami_status nami_predict_prepare(const nami_optim_options *o, nami_backend *b,
                                 nami_dtype wide, int64_t count, bool predicted,
                                 nami_predict_kernels *out)
{
    static const char some; /* an address where a launch will have one */
    const nami_arg_predict along = {
        .wide = wide, .count = count, .v = is_adam(o) ? &some : NULL};
    const nami_arg_predict back = {.wide = wide, .count = count};
    const nami_arg_drift drift = {.wide = wide, .count = count};
    *out = (nami_predict_kernels){.predict = NULL};
    if (predicted) {
        NAMI_TRY(check_direction(o));
        NAMI_TRY(nami_backend_prepare(b, NAMI_PREDICT, &along, &out->predict));
    }
    if (o->correct) {
        NAMI_TRY(nami_backend_prepare(b, NAMI_PREDICT, &back, &out->correct));
        NAMI_TRY(nami_backend_prepare(b, NAMI_DRIFT, &drift, &out->drift));
    }
    return NAMI_OK;
}

nami_event nami_predict_weights(const nami_optim_options *o, nami_backend *b, int lane,
                                const nami_predict_kernels *k, nami_dtype wide,
                                const nami_optim_item *item, double rate, double ahead,
                                int64_t done, void *out)
{
    NAMI_CHECK(k->predict);
    const nami_arg_predict a = {.wide = wide,
                                .count = item->count,
                                .w = item->w,
                                .m = item->m,
                                .v = is_adam(o) ? item->v : NULL,
                                .out = out,
                                .distance = done > 0 ? ahead * rate : 0,
                                .beta1 = o->beta1,
                                .beta2 = o->beta2,
                                .eps = o->eps,
                                .step = done > 0 ? done : 1};
    return nami_backend_launch(b, lane, k->predict, &a);
}

double nami_predict_rate(double rate, double late, int64_t k, int64_t anneal)
{
    if (late <= 1 || k >= anneal)
        return rate;
    return rate / pow(late, 1 - (double)k / (double)anneal);
}

double nami_predict_gamma(double decay, double gap)
{
    return gap > 0 ? pow(decay, 1 / gap) : 0;
}

nami_event nami_predict_drift(nami_backend *b, int lane, const nami_predict_kernels *k,
                              nami_dtype wide, const nami_optim_item *item,
                              const void *before, const void *after, double gamma)
{
    NAMI_CHECK(k->drift);
    const nami_arg_drift a = {.wide = wide,
                              .count = item->count,
                              .mean = item->drift,
                              .before = before,
                              .after = after,
                              .gamma = gamma};
    return nami_backend_launch(b, lane, k->drift, &a);
}

nami_event nami_predict_correct(nami_backend *b, int lane,
                                const nami_predict_kernels *k, nami_dtype wide,
                                const nami_optim_item *item, double gap, void *out)
{
    NAMI_CHECK(k->correct);
    const nami_arg_predict a = {.wide = wide,
                                .count = item->count,
                                .w = item->w,
                                .m = item->drift,
                                .out = out,
                                .distance = gap,
                                .step = 1};
    return nami_backend_launch(b, lane, k->correct, &a);
}
