/* SPDX-License-Identifier: MIT */
/* options.c - the optimiser's part of [train], the learning rate and the clip factor. */
#include <math.h>

#include "optim/optim.h"

static const char *const optimizers[] = {
    [NAMI_OPTIMIZER_SGD] = "sgd", [NAMI_OPTIMIZER_ADAMW] = "adamw", NULL};
static const char *const rates[] = {
    [NAMI_RATE_CONSTANT] = "constant", [NAMI_RATE_COSINE] = "cosine", NULL};

#define ROW(k, c, ...)                                                                 \
    {                                                                                  \
        .section = "train", .key = #k, .kind = NAMI_OPTION_##c,                        \
        .offset = offsetof(nami_optim_options, k), __VA_ARGS__                         \
    }
static const nami_option rows[] = {
    ROW(optimizer, CHOICE, .fallback = "adamw", .choices = optimizers,
        .help = "Optimiser: sgd with momentum, or adamw."),
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
        .help = "Decay rates of AdamW's two moments, two numbers in [0,1)."),
    ROW(momentum, REAL, .fallback = "0.9", .minimum = 0, .maximum = 1,
        .help = "Momentum of SGD."),
    ROW(eps, REAL, .fallback = "1e-8", .minimum = 0, .maximum = 1,
        .help = "Added to the root of AdamW's second moment."),
    ROW(decay, REAL, .fallback = "0.1", .minimum = 0, .maximum = 1e6,
        .help = "Weight decay of matrices and embeddings; biases and norms have none."),
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

nami_status nami_optim_resolve(nami_optim_options *o)
{
    if (!parse_betas(o->betas ? o->betas : "", &o->beta1, &o->beta2))
        return nami_fail(
            NAMI_EINPUT,
            "train.betas is \"%s\"; expected two numbers in [0,1) such as \"0.9 0.95\"",
            o->betas ? o->betas : "");
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

int nami_optim_states(const nami_optim_options *o)
{
    return o->optimizer == NAMI_OPTIMIZER_ADAMW ? 2 : 1;
}

double nami_optim_clip(const nami_optim_options *o, double norm)
{
    return o->clip > 0 ? fmin(1, o->clip / (norm + 1e-6)) : 1;
}
