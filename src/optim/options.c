/* SPDX-License-Identifier: MIT */
/* options.c - the optimiser's part of [train], the learning rate and the clip factor. */
#include <math.h>

#include "optim/optim.h"

static const char *const optimizers[] = {[NAMI_OPTIMIZER_SGD] = "sgd",
                                         [NAMI_OPTIMIZER_ADAMW] = "adamw",
                                         [NAMI_OPTIMIZER_ADAM] = "adam",
                                         [NAMI_OPTIMIZER_RMSPROP] = "rmsprop",
                                         NULL};
static const char *const rates[] = {
    [NAMI_RATE_CONSTANT] = "constant", [NAMI_RATE_COSINE] = "cosine", NULL};

#define ROW(k, c, ...)                                                                 \
    {                                                                                  \
        .section = "train", .key = #k, .kind = NAMI_OPTION_##c,                        \
        .offset = offsetof(nami_optim_options, k), __VA_ARGS__                         \
    }
static const nami_option rows[] = {
    ROW(optimizer, CHOICE, .fallback = "adamw", .choices = optimizers,
        .help = "Optimiser, as PyTorch defines it: sgd with momentum, adamw, adam "
                "(decay added to the gradient), or rmsprop."),
    ROW(lr, REAL, .fallback = "1e-3", .minimum = 0, .maximum = 1e6,
        .help = "Learning rate after the warm-up."),
    ROW(min_lr, REAL, .fallback = "1e-4", .minimum = 0, .maximum = 1e6,
        .help = "Learning rate at the end of the cosine."),
    ROW(warmup, INT, .fallback = "100", .minimum = 0, .maximum = 1e15, .unit = "steps",
        .help = "Steps of linear warm-up."),
    ROW(rate, CHOICE, .fallback = "cosine", .choices = rates,
        .help =
            "Learning rate after the warm-up: constant, or a cosine down to min_lr."),
    ROW(rate_steps, INT, .fallback = "0", .minimum = 0, .maximum = 1e15,
        .unit = "steps",
        .help = "Step at which the cosine reaches min_lr; 0 takes train.steps."),
    ROW(betas, TEXT, .fallback = "0.9 0.95",
        .help = "Decay rates of the two moments of adamw and adam, two numbers in "
                "[0,1)."),
    ROW(momentum, REAL, .fallback = "0.9", .minimum = 0, .maximum = 1,
        .help = "Momentum of sgd and rmsprop; 0: none."),
    ROW(nesterov, BOOL, .fallback = "no", .help = "Nesterov's momentum, sgd alone."),
    ROW(alpha, REAL, .fallback = "0.99", .minimum = 0, .maximum = 1,
        .help = "Decay rate of rmsprop's mean of squared gradients, below 1."),
    ROW(centered, BOOL, .fallback = "no",
        .help = "rmsprop divides by the gradients' deviation from their mean, at the "
                "price of one more state."),
    ROW(eps, REAL, .fallback = "1e-8", .minimum = 0, .maximum = 1,
        .help = "Added to the root of the second moment of adamw, adam and rmsprop."),
    ROW(decay, REAL, .fallback = "0.1", .minimum = 0, .maximum = 1e6,
        .help = "Weight decay of matrices and embeddings; biases and norms have none. "
                "adamw shrinks weights by it, the others add it to the gradient."),
    ROW(clip, REAL, .fallback = "1", .minimum = 0, .maximum = 1e300,
        .help = "Largest global norm of the gradient; 0 turns clipping off."),
};
#undef ROW

const nami_option_table nami_optim_option_table = {rows, sizeof rows / sizeof rows[0]};

/* "A B" or "A,B" with both in [0,1). */
static bool parse_betas(const char *text, double *a, double *b)
{
    char *copy = nami_strdup(text);
    char *gap = copy;
    while (*gap && *gap != ' ' && *gap != ',' && *gap != '\t')
        gap++;
    bool ok = *gap != 0;
    if (ok) {
        *gap++ = 0;
        while (*gap == ' ' || *gap == ',' || *gap == '\t')
            gap++;
        ok = nami_parse_real(copy, a) && nami_parse_real(gap, b) && *a >= 0 && *a < 1 &&
             *b >= 0 && *b < 1;
    }
    nami_free(copy);
    return ok;
}

/* Keys that one optimiser has, or that bound each other. */
static nami_status check_optimizer(const nami_optim_options *o)
{
    const char *name = optimizers[o->optimizer];
    if (o->nesterov && o->optimizer != NAMI_OPTIMIZER_SGD)
        return nami_fail(NAMI_EINPUT,
                         "train.nesterov belongs to train.optimizer = sgd, not to %s",
                         name);
    if (o->nesterov && o->momentum == 0)
        return nami_fail(NAMI_EINPUT, "train.nesterov needs train.momentum above 0");
    if (o->centered && o->optimizer != NAMI_OPTIMIZER_RMSPROP)
        return nami_fail(
            NAMI_EINPUT,
            "train.centered belongs to train.optimizer = rmsprop, not to %s", name);
    if (o->optimizer == NAMI_OPTIMIZER_RMSPROP && o->alpha >= 1)
        return nami_fail(NAMI_EINPUT, "train.alpha is %g, expected below 1", o->alpha);
    if (o->optimizer != NAMI_OPTIMIZER_SGD && o->eps == 0)
        return nami_fail(NAMI_EINPUT,
                         "train.eps is 0; with %s a gradient of 0 would be divided by "
                         "0, expected a number above 0 such as 1e-8",
                         name);
    return NAMI_OK;
}

nami_status nami_optim_resolve(nami_optim_options *o)
{
    if (!parse_betas(o->betas ? o->betas : "", &o->beta1, &o->beta2))
        return nami_fail(
            NAMI_EINPUT,
            "train.betas is \"%s\"; expected two numbers in [0,1) such as \"0.9 0.95\"",
            o->betas ? o->betas : "");
    NAMI_TRY(check_optimizer(o));
    if (o->rate == NAMI_RATE_COSINE && o->min_lr > o->lr)
        return nami_fail(NAMI_EINPUT, "train.min_lr = %g is above train.lr = %g",
                         o->min_lr, o->lr);
    if (o->rate_steps > 0 && o->rate_steps < o->warmup)
        return nami_fail(NAMI_EINPUT,
                         "train.rate_steps = %lld ends before train.warmup = %lld",
                         (long long)o->rate_steps, (long long)o->warmup);
    return NAMI_OK;
}

double nami_optim_rate(const nami_optim_options *o, int64_t step, int64_t steps)
{
    int64_t end = o->rate_steps > 0 ? o->rate_steps : steps;
    if (step < o->warmup)
        return o->lr * (double)(step + 1) / (double)(o->warmup + 1);
    if (o->rate == NAMI_RATE_CONSTANT)
        return o->lr;
    if (step >= end)
        return o->min_lr;
    double done = (double)(step - o->warmup) / (double)(end - o->warmup);
    return o->min_lr + 0.5 * (1 + cos(acos(-1.0) * done)) * (o->lr - o->min_lr);
}

double nami_optim_clip(const nami_optim_options *o, double norm)
{
    return o->clip > 0 ? fmin(1, o->clip / (norm + 1e-6)) : 1;
}
