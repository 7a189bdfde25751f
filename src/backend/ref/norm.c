/* SPDX-License-Identifier: MIT */
/* norm.c - layer norm and RMS norm, and their gradients. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

static void norm_f_row(const nami_arg_norm *a, nami_dtype wide, int64_t n)
{
    const int64_t width = a->width, at = n * width;
    double mean = 0, var = 0;
    for (int64_t c = 0; c < width && !a->rms; c++)
        mean += GET(a->act, a->x, at + c) / (double)width;
    for (int64_t c = 0; c < width; c++) {
        const double d = GET(a->act, a->x, at + c) - mean;
        var += d * d / (double)width;
    }
    const double rstd = 1 / sqrt(var + a->eps);
    if (!a->rms)
        nami_ref_set(wide, a->mean, n, mean);
    nami_ref_set(wide, a->rstd, n, rstd);
    for (int64_t c = 0; c < width; c++) {
        const double hat = (GET(a->act, a->x, at + c) - mean) * rstd;
        const double bias = a->b ? GET(wide, a->b, c) : 0;
        nami_ref_set(a->act, a->y, at + c, hat * GET(wide, a->w, c) + bias);
    }
}

void nami_ref_norm_f(const void *args)
{
    const nami_arg_norm *a = args;
    for (int64_t n = 0; n < a->n; n++)
        norm_f_row(a, nami_ref_wide(a->act), n);
}

/* Normalised x of row n, column c. */
static double hat(const nami_arg_norm *a, nami_dtype wide, int64_t n, int64_t c)
{
    const double mean = a->rms ? 0 : GET(wide, a->mean, n);
    return (GET(a->act, a->x, n * a->width + c) - mean) * GET(wide, a->rstd, n);
}

static void norm_bi_row(const nami_arg_norm *a, nami_dtype wide, int64_t n)
{
    const int64_t width = a->width, at = n * width;
    double mean_d = 0, mean_dh = 0; /* of d = dy w and of d times normalised x */
    for (int64_t c = 0; c < width; c++) {
        const double d = GET(a->act, a->dy, at + c) * GET(wide, a->w, c);
        mean_d += a->rms ? 0 : d / (double)width;
        mean_dh += d * hat(a, wide, n, c) / (double)width;
    }
    for (int64_t c = 0; c < width; c++) {
        const double d = GET(a->act, a->dy, at + c) * GET(wide, a->w, c);
        const double add = a->add ? GET(a->act, a->add, at + c) : 0;
        const double dx =
            (d - mean_d - hat(a, wide, n, c) * mean_dh) * GET(wide, a->rstd, n);
        nami_ref_set(a->act, a->dx, at + c, add + dx);
    }
}

void nami_ref_norm_bi(const void *args)
{
    const nami_arg_norm *a = args;
    for (int64_t n = 0; n < a->n; n++)
        norm_bi_row(a, nami_ref_wide(a->act), n);
}

void nami_ref_norm_bw(const void *args)
{
    const nami_arg_norm *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    for (int64_t c = 0; c < a->width; c++) {
        double dw = GET(wide, a->dw, c), db = a->db ? GET(wide, a->db, c) : 0;
        for (int64_t n = 0; n < a->n; n++) {
            const double dy = GET(a->act, a->dy, n * a->width + c);
            dw += dy * hat(a, wide, n, c);
            db += dy;
        }
        nami_ref_set(wide, a->dw, c, dw);
        if (a->db)
            nami_ref_set(wide, a->db, c, db);
    }
}
