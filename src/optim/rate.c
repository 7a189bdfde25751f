/* SPDX-License-Identifier: MIT */
/* rate.c - learning rates. */
#include <math.h>

#include "optim/optim.h"

/* How much of the way from the end of the warm-up to the end of the rate is done, 0 to 1. */
static double share_done(const nami_optim_options *o, int64_t step, int64_t steps)
{
    const int64_t end = o->rate_steps > 0 ? o->rate_steps : steps;
    if (step >= end)
        return 1;
    return (double)(step - o->warmup) / (double)(end - o->warmup);
}

/* How often the factor of a stepped rate applies. */
static double times_reached(const nami_optim_options *o, int64_t step)
{
    if (o->milestones.count == 0) {
        const int64_t periods = (step - o->warmup) / o->rate_every;
        return (double)periods;
    }
    int reached = 0;
    while (reached < o->milestones.count && o->milestones.item[reached] <= step)
        reached++;
    return reached;
}

double nami_optim_rate(const nami_optim_options *o, int64_t step, int64_t steps)
{
    const double range = o->lr - o->min_lr;
    if (step < o->warmup)
        return o->lr * (double)(step + 1) / (double)(o->warmup + 1);
    switch ((nami_rate)o->rate) {
    case NAMI_RATE_COSINE:
        return o->min_lr +
               0.5 * (1 + cos(acos(-1.0) * share_done(o, step, steps))) * range;
    case NAMI_RATE_POLYNOMIAL:
        return o->min_lr + pow(1 - share_done(o, step, steps), o->rate_power) * range;
    case NAMI_RATE_STEP:
        return o->lr * pow(o->rate_factor, times_reached(o, step));
    case NAMI_RATE_EXPONENTIAL:
        return o->lr *
               pow(o->rate_factor, (double)(step - o->warmup) / (double)o->rate_every);
    default:
        return o->lr;
    }
}
