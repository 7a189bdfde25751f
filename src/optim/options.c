/* SPDX-License-Identifier: MIT */
/* options.c - the optimiser's part of [train], and the clip factor. */
#include <limits.h>
#include <math.h>

#include "optim/optim.h"

static const char *const optimizers[] = {[NAMI_OPTIMIZER_SGD] = "sgd",
                                         [NAMI_OPTIMIZER_ADAMW] = "adamw",
                                         [NAMI_OPTIMIZER_ADAM] = "adam",
                                         [NAMI_OPTIMIZER_RMSPROP] = "rmsprop",
                                         NULL};
static const char *const rates[] = {[NAMI_RATE_CONSTANT] = "constant",
                                    [NAMI_RATE_COSINE] = "cosine",
                                    [NAMI_RATE_STEP] = "step",
                                    [NAMI_RATE_POLYNOMIAL] = "polynomial",
                                    [NAMI_RATE_EXPONENTIAL] = "exponential",
                                    NULL};

static const char *const scopes[] = {
    [NAMI_CLIP_ALL] = "all", [NAMI_CLIP_STAGE] = "stage", NULL};

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
        .help = "Learning rate at the end of the cosine or polynomial."),
    ROW(warmup, INT, .fallback = "100", .minimum = 0, .maximum = 1e15, .unit = "steps",
        .help = "Steps of linear warm-up."),
    ROW(rate, CHOICE, .fallback = "cosine", .choices = rates,
        .help = "Learning rate after the warm-up of W steps, at step k: constant; "
                "cosine, from lr down to min_lr at rate_steps; polynomial, min_lr + "
                "(lr - min_lr) (1 - (k-W)/(rate_steps-W))^rate_power; step, lr times "
                "rate_factor every rate_every steps or at each milestone; exponential, "
                "lr rate_factor^((k-W)/rate_every)."),
    ROW(rate_steps, INT, .fallback = "0", .minimum = 0, .maximum = 1e15,
        .unit = "steps",
        .help = "Step at which a cosine or polynomial reaches min_lr; 0 takes "
                "train.steps."),
    ROW(rate_power, REAL, .fallback = "2", .minimum = 0.01, .maximum = 100,
        .help = "Power of the polynomial; 1 is a straight line."),
    ROW(rate_factor, REAL, .fallback = "0.1", .minimum = 0, .maximum = 1,
        .help = "Factor on the rate of step and exponential, above 0."),
    ROW(rate_every, INT, .fallback = "0", .minimum = 0, .maximum = 1e15,
        .unit = "steps",
        .help = "Steps after the warm-up in which step and exponential apply "
                "rate_factor once."),
    ROW(milestones, INTS, .fallback = "", .minimum = 1, .maximum = INT_MAX,
        .help = "Steps of the run, each larger than the one before, at which rate = "
                "step applies rate_factor; instead of rate_every."),
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
        .help = "Largest norm of the gradient; 0 turns clipping off."),
    ROW(clip_scope, CHOICE, .fallback = "all", .choices = scopes,
        .help =
            "Whose norm train.clip bounds: of all stages together, or of each stage "
            "by itself, so that results depend on the cut. Without a flush only a "
            "stage's "
            "own norm can be known."),
    ROW(anneal, INT, .fallback = "0", .minimum = 0, .maximum = 1e15, .unit = "steps",
        .help = "With pipeline.weights = newest, PipeMare's first technique: at step k "
                "a stage with weights T updates late divides its rate by T^(1 - "
                "k/anneal) until k = anneal; 0: off."),
    ROW(correct, BOOL, .fallback = "no",
        .help =
            "With pipeline.weights = newest, PipeMare's second technique: backward "
            "passes read weights moved back by T times the decayed mean of updates, "
            "one more state."),
    ROW(correct_decay, REAL, .fallback = "0.135", .minimum = 1e-6, .maximum = 0.999999,
        .help = "What is left of an update in that mean after T more of them."),
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

/* Keys that say how long a rate takes: a rate has its own, and refuses the others. */
static nami_status check_rate_keys(const nami_optim_options *o)
{
    const char *name = rates[o->rate];
    const bool ends = o->rate == NAMI_RATE_COSINE || o->rate == NAMI_RATE_POLYNOMIAL;
    const bool steps = o->rate == NAMI_RATE_STEP;
    const bool listed = o->milestones.count > 0;
    if (o->rate_steps > 0 && !ends)
        return nami_fail(NAMI_EINPUT,
                         "train.rate_steps is set, but train.rate = %s has no end",
                         name);
    if (o->rate_every > 0 && !steps && o->rate != NAMI_RATE_EXPONENTIAL)
        return nami_fail(NAMI_EINPUT,
                         "train.rate_every is set, but belongs to train.rate = step or "
                         "exponential, not %s",
                         name);
    if (listed && !steps)
        return nami_fail(NAMI_EINPUT,
                         "train.milestones are set, but belong to train.rate = step, "
                         "not %s",
                         name);
    if (steps && listed == (o->rate_every > 0))
        return nami_fail(NAMI_EINPUT, "train.rate = step needs one of train.rate_every "
                                      "and train.milestones");
    if (o->rate == NAMI_RATE_EXPONENTIAL && o->rate_every == 0)
        return nami_fail(NAMI_EINPUT,
                         "train.rate = exponential needs train.rate_every");
    return NAMI_OK;
}

/* Keys that do nothing beside the others. */
static nami_status check_reach(const nami_optim_options *o)
{
    const bool sgd = o->optimizer == NAMI_OPTIMIZER_SGD;
    const bool rmsprop = o->optimizer == NAMI_OPTIMIZER_RMSPROP;
    const bool ends = o->rate == NAMI_RATE_COSINE || o->rate == NAMI_RATE_POLYNOMIAL;
    const bool falls = o->rate == NAMI_RATE_STEP || o->rate == NAMI_RATE_EXPONENTIAL;
    const nami_option_reach reach[] = {
        {"min_lr", ends, "without train.rate = cosine or polynomial"},
        {"rate_power", o->rate == NAMI_RATE_POLYNOMIAL,
         "without train.rate = polynomial"},
        {"rate_factor", falls, "without train.rate = step or exponential"},
        {"betas", !sgd && !rmsprop, "without train.optimizer = adamw or adam"},
        {"momentum", sgd || rmsprop, "without train.optimizer = sgd or rmsprop"},
        {"alpha", rmsprop, "without train.optimizer = rmsprop"},
        {"eps", !sgd, "with train.optimizer = sgd"},
        {"clip_scope", o->clip > 0, "without train.clip above 0"},
        {"correct_decay", o->correct, "without train.correct = yes"},
    };
    return nami_option_check_reach(&nami_optim_option_table, o, reach,
                                   (int)(sizeof reach / sizeof *reach));
}

static nami_status check_milestones(const nami_optim_options *o)
{
    const nami_ints *m = &o->milestones;
    if (m->count > 0 && m->item[0] < o->warmup)
        return nami_fail(NAMI_EINPUT,
                         "train.milestones begin at %d, before the end of train.warmup "
                         "= %lld",
                         m->item[0], (long long)o->warmup);
    for (int i = 1; i < m->count; i++)
        if (m->item[i] <= m->item[i - 1])
            return nami_fail(NAMI_EINPUT,
                             "train.milestones: %d follows %d, expected larger and "
                             "larger steps",
                             m->item[i], m->item[i - 1]);
    return NAMI_OK;
}

static nami_status check_rate(const nami_optim_options *o)
{
    const bool ends = o->rate == NAMI_RATE_COSINE || o->rate == NAMI_RATE_POLYNOMIAL;
    NAMI_TRY(check_rate_keys(o));
    NAMI_TRY(check_milestones(o));
    if (ends && o->min_lr > o->lr)
        return nami_fail(NAMI_EINPUT, "train.min_lr = %g is above train.lr = %g",
                         o->min_lr, o->lr);
    if (o->rate_steps > 0 && o->rate_steps < o->warmup)
        return nami_fail(NAMI_EINPUT,
                         "train.rate_steps = %lld ends before train.warmup = %lld",
                         (long long)o->rate_steps, (long long)o->warmup);
    if (!ends && o->rate != NAMI_RATE_CONSTANT && o->rate_factor == 0)
        return nami_fail(NAMI_EINPUT, "train.rate_factor is 0, expected above 0");
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
    NAMI_TRY(check_rate(o));
    return check_reach(o);
}

double nami_optim_clip(const nami_optim_options *o, double norm)
{
    return o->clip > 0 ? fmin(1, o->clip / (norm + 1e-6)) : 1;
}
