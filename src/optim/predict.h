/* SPDX-License-Identifier: MIT */
/* predict.h - weights for passes that run updates before or behind the newest ones, without keeping old versions.
 *
 * All kernels run elementwise over one buffer of `count` numbers of type `wide`: a parameter or a whole stage. Running
 * statistics have no direction (their states stay zero), so a prediction leaves them as they are; a correction moves
 * them like weights, and the caller puts them back.
 *
 * Prediction: Chen et al., Efficient and Robust Parallel DNN Training through Model Parallelism on Multi-GPU Platform
 * (SpecTrain), arXiv 1809.02839: w after s updates = w - s rate v with the momentum v, the optimiser's own here, so that
 * rate v is its step; Guan et al., XPipe, arXiv 1911.04610: the same along Adam's m^ / (sqrt(v^) + eps).
 * The decay of adamw is no part of the direction; momentum has the decay that was added to the gradient.
 * Correction: Yang et al., PipeMare, arXiv 1910.05124, techniques T1 and T2.
 */
#ifndef NAMI_OPTIM_PREDICT_H
#define NAMI_OPTIM_PREDICT_H

#include "optim/optim.h"

/* Prepared once for a buffer; NULL where not asked for. */
typedef struct nami_predict_kernels {
    const nami_prepared *predict;         /* with prediction */
    const nami_prepared *drift, *correct; /* with o->correct */
} nami_predict_kernels;

/* Whether the options go with weights that are the newest (T1 and T2 do with no others), or predicted. Local.
 * Status: NAMI_EINPUT naming the key. */
nami_status nami_predict_check(const nami_optim_options *o, bool newest,
                               bool predicted);

/* Prepare prediction if `predicted`, and correction if o->correct. Local.
 * Status: NAMI_EINPUT when the optimiser keeps no direction (sgd, rmsprop without momentum). */
nami_status nami_predict_prepare(const nami_optim_options *o, nami_backend *b,
                                 nami_dtype wide, int64_t count, bool predicted,
                                 nami_predict_kernels *out);

/* out = item->w as `ahead` more updates at `rate` along the present direction make it. Local.
 * item   count, w, m, v as nami_optim_place sets them; read
 * ahead  updates between the pass and the use of its gradient, >= 0
 * done   optimiser steps taken; before the first there is no direction, out = w
 * out    [count] wide; may be item->w */
nami_event nami_predict_weights(const nami_optim_options *o, nami_backend *b, int lane,
                                const nami_predict_kernels *k, nami_dtype wide,
                                const nami_optim_item *item, double rate, double ahead,
                                int64_t done, void *out);

/* Rate of a stage whose weights are `late` updates old (tau) at 0-based step k: rate / tau^(1 - min(k/anneal, 1)), T1.
 * Up to one update late, and with anneal 0, the rate itself. Local. */
double nami_predict_rate(double rate, double late, int64_t k, int64_t anneal);

/* gamma = D^(1/gap) of T2, gap = tau_forward - tau_backward in updates; 0 where gap <= 0. Local. */
double nami_predict_gamma(double decay, double gap);

/* After an update: item->drift = gamma drift + (1 - gamma) (after - before); count and drift of the item. Local.
 * before  [count] the weights from before the update: what it read, or after one in place a copy, for instance in the
 *         buffer of corrected weights, which nami_predict_correct writes next */
nami_event nami_predict_drift(nami_backend *b, int lane, const nami_predict_kernels *k,
                              nami_dtype wide, const nami_optim_item *item,
                              const void *before, const void *after, double gamma);

/* out = item->w - gap item->drift, what a backward pass reads; out may be item->w. Local. */
nami_event nami_predict_correct(nami_backend *b, int lane,
                                const nami_predict_kernels *k, nami_dtype wide,
                                const nami_optim_item *item, double gap, void *out);

#endif
