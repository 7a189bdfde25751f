/* SPDX-License-Identifier: MIT */
/* batch_norm.c - batch norm by channel, with or without ReLU behind it, and its gradients. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

/* One channel: y = x scale + shift, x^ = (x - mean) rstd. */
typedef struct channel {
    int64_t c;
    double mean, rstd, w, b;
} channel;

static double x_of(const nami_arg_batch_norm *a, int64_t n, int64_t c)
{
    return GET(a->act, a->x, n * a->width + c);
}

/* The rows that statistics are of. */
static double all_rows(const nami_arg_batch_norm *a)
{
    return (double)(a->all > 0 ? a->all : a->n);
}

/* Mean and variance of channel c of these rows. */
static void measure(const nami_arg_batch_norm *a, int64_t c, double *mean, double *var)
{
    *mean = *var = 0;
    for (int64_t n = 0; n < a->n; n++)
        *mean += x_of(a, n, c) / (double)a->n;
    for (int64_t n = 0; n < a->n; n++) {
        const double d = x_of(a, n, c) - *mean;
        *var += d * d / (double)a->n;
    }
}

/* The same of all rows, from their sums. */
static void measure_all(const nami_arg_batch_norm *a, int64_t c, double *mean,
                        double *var)
{
    *mean = a->sums[c] / all_rows(a);
    *var = fmax(0, a->sums[a->width + c] / all_rows(a) - *mean * *mean);
}

/* Into a->mean, a->var. */
static void set_moments(const nami_arg_batch_norm *a, int64_t c)
{
    const nami_dtype wide = nami_ref_wide(a->act);
    double mean, var;
    if (a->sums)
        measure_all(a, c, &mean, &var);
    else
        measure(a, c, &mean, &var);
    nami_ref_set(wide, a->mean, c, mean);
    nami_ref_set(wide, a->var, c, var);
}

static channel channel_of(const nami_arg_batch_norm *a, int64_t c)
{
    const nami_dtype wide = nami_ref_wide(a->act);
    const void *mean = a->running ? a->running_mean : a->mean;
    const void *var = a->running ? a->running_var : a->var;
    return (channel){.c = c,
                     .mean = GET(wide, mean, c),
                     .rstd = 1 / sqrt(GET(wide, var, c) + a->eps),
                     .w = GET(wide, a->w, c),
                     .b = GET(wide, a->b, c)};
}

static double hat(const nami_arg_batch_norm *a, const channel *k, int64_t n)
{
    return (x_of(a, n, k->c) - k->mean) * k->rstd;
}

void nami_ref_batch_norm_f(const void *args)
{
    const nami_arg_batch_norm *a = args;
    for (int64_t c = 0; c < a->width; c++) {
        if (!a->running)
            set_moments(a, c);
        const channel k = channel_of(a, c);
        for (int64_t n = 0; n < a->n; n++) {
            const double y = hat(a, &k, n) * k.w + k.b;
            nami_ref_set(a->act, a->y, n * a->width + c, a->relu && y <= 0 ? 0 : y);
        }
    }
}

void nami_ref_batch_norm_f_own(const void *args)
{
    const nami_arg_batch_norm *a = args;
    for (int64_t c = 0; c < a->width; c++) {
        double sum = 0, squares = 0;
        for (int64_t n = 0; n < a->n; n++) {
            sum += x_of(a, n, c);
            squares += x_of(a, n, c) * x_of(a, n, c);
        }
        a->sums[c] = sum;
        a->sums[a->width + c] = squares;
    }
}

/* The gradient in front of the ReLU. */
static double dy_of(const nami_arg_batch_norm *a, const channel *k, int64_t n)
{
    if (a->relu && hat(a, k, n) * k->w + k->b <= 0)
        return 0;
    return GET(a->act, a->dy, n * a->width + k->c);
}

/* Sums over the rows of dy and of dy x^. */
static void sums_of(const nami_arg_batch_norm *a, const channel *k, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (int64_t n = 0; n < a->n; n++) {
        sum[0] += dy_of(a, k, n);
        sum[1] += dy_of(a, k, n) * hat(a, k, n);
    }
}

void nami_ref_batch_norm_bi_own(const void *args)
{
    const nami_arg_batch_norm *a = args;
    for (int64_t c = 0; c < a->width; c++) {
        const channel k = channel_of(a, c);
        double sum[2];
        sums_of(a, &k, sum);
        a->sums[c] = sum[0];
        a->sums[a->width + c] = sum[1] / k.rstd;
    }
}

void nami_ref_batch_norm_bi(const void *args)
{
    const nami_arg_batch_norm *a = args;
    for (int64_t c = 0; c < a->width; c++) {
        const channel k = channel_of(a, c);
        double sum[2];
        if (a->sums) {
            sum[0] = a->sums[c];
            sum[1] = a->sums[a->width + c] * k.rstd;
        } else {
            sums_of(a, &k, sum);
        }
        for (int64_t n = 0; n < a->n; n++)
            nami_ref_set(a->act, a->dx, n * a->width + c,
                         k.w * k.rstd *
                             (dy_of(a, &k, n) - sum[0] / all_rows(a) -
                              hat(a, &k, n) * sum[1] / all_rows(a)));
    }
}

static void add_to(nami_dtype d, void *p, int64_t i, double x)
{
    nami_ref_set(d, p, i, GET(d, p, i) + x);
}

void nami_ref_batch_norm_bw(const void *args)
{
    const nami_arg_batch_norm *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    const double n = all_rows(a), unbiased = n > 1 ? n / (n - 1) : 1;
    for (int64_t c = 0; c < a->width; c++) {
        const channel k = channel_of(a, c);
        double sum[2];
        sums_of(a, &k, sum);
        add_to(wide, a->db, c, sum[0]);
        add_to(wide, a->dw, c, sum[1]);
        add_to(wide, a->dmean, c, k.mean);
        add_to(wide, a->dvar, c, GET(wide, a->var, c) * unbiased);
    }
}
