/* SPDX-License-Identifier: MIT */
/* batch_norm.c - batch norm by channel: one pass over the image for sums by channel, one for the pixels. */
#include "backend/cpu/batch_norm.h"

#include <math.h>

size_t nami_cpu_batch_norm_scratch(const nami_arg_batch_norm *a)
{
    return (4 + 2 * (size_t)nami_batch_chunks(a->n)) * (size_t)a->width * sizeof(float);
}

static nami_batch_job job_of(const nami_arg_batch_norm *a)
{
    float *s = a->scratch;
    return (nami_batch_job){.a = a,
                            .mean = s,
                            .scale = s + a->width,
                            .first = s + 2 * a->width,
                            .second = s + 3 * a->width,
                            .chunk = nami_batch_chunk_rows(a->n),
                            .chunks = nami_batch_chunks(a->n),
                            .partial = s + 4 * a->width};
}

/* The rows that statistics are of. */
static int64_t all_rows(const nami_arg_batch_norm *a)
{
    return a->all > 0 ? a->all : a->n;
}

/* --- forward --- */

/* Mean and variance of these rows into a->mean, a->var. */
static void measure(const nami_backend *b, const nami_batch_job *j)
{
    float *var = j->a->var;
    nami_batch_moments(b, j, j->a->mean, var);
    for (int64_t c = 0; c < j->a->width; c++)
        var[c] /= (float)j->a->n;
}

/* The same of all rows, from their sums. */
static void take_moments(const nami_arg_batch_norm *a)
{
    float *mean = a->mean, *var = a->var;
    const double all = (double)all_rows(a);
    for (int64_t c = 0; c < a->width; c++) {
        const double centre = a->sums[c] / all;
        mean[c] = (float)centre;
        var[c] = (float)fmax(0, a->sums[a->width + c] / all - centre * centre);
    }
}

/* What these rows add to sums of x and x^2: by their moments, so that only the differences between replicas' means
 * are left to the precision of double. */
static void leave_moments(const nami_backend *b, const nami_batch_job *j)
{
    const nami_arg_batch_norm *a = j->a;
    nami_batch_moments(b, j, j->mean, j->scale);
    for (int64_t c = 0; c < a->width; c++) {
        const double mean = j->mean[c], n = (double)a->n;
        a->sums[c] = n * mean;
        a->sums[a->width + c] = j->scale[c] + n * mean * mean;
    }
}

/* mean and scale of each channel. */
static void set_channels(const nami_batch_job *j)
{
    const nami_arg_batch_norm *a = j->a;
    const float *mean = a->running ? a->running_mean : a->mean;
    const float *var = a->running ? a->running_var : a->var, *w = a->w;
    for (int64_t c = 0; c < a->width; c++) {
        j->mean[c] = mean[c];
        j->scale[c] = w[c] / sqrtf(var[c] + (float)a->eps);
    }
}

/* --- the pixels --- */

NAMI_INLINE void f_row(nami_dtype act, const nami_batch_job *j, int64_t n)
{
    const nami_arg_batch_norm *a = j->a;
    for (int64_t c = 0; c < a->width; c += NAMI_VL) {
        const int64_t at = n * a->width + c, lanes = a->width - c;
        nami_batch_ahead(act, a->x, at);
        nami_vf unused, y = nami_batch_before_relu(act, j, at, c, lanes, &unused);
        if (a->relu)
            y = nami_vselect(y <= 0, (nami_vf){0}, y);
        nami_vput(act, a->y, at, y, lanes);
    }
}

NAMI_INLINE void bi_row(nami_dtype act, const nami_batch_job *j, int64_t n)
{
    const nami_arg_batch_norm *a = j->a;
    for (int64_t c = 0; c < a->width; c += NAMI_VL) {
        const int64_t at = n * a->width + c, lanes = a->width - c;
        nami_vf distance;
        const nami_vf dy = nami_batch_dy(act, j, at, c, lanes, &distance);
        nami_vput(act, a->dx, at,
                  dy * nami_vget(NAMI_F32, j->scale, c, lanes) +
                      distance * nami_vget(NAMI_F32, j->second, c, lanes) +
                      nami_vget(NAMI_F32, j->first, c, lanes),
                  lanes);
    }
}

static int64_t rows(const void *args)
{
    return ((const nami_batch_job *)args)->a->n;
}

static int64_t rows_grain(const void *args)
{
    return 1 + 8192 / (1 + ((const nami_batch_job *)args)->a->width);
}

static void f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_batch_job *j = args;
    for (int64_t n = first; n < end; n++)
        if (j->a->act == NAMI_F32)
            f_row(NAMI_F32, j, n);
        else
            f_row(NAMI_BF16, j, n);
}

static void bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_batch_job *j = args;
    for (int64_t n = first; n < end; n++)
        if (j->a->act == NAMI_F32)
            bi_row(NAMI_F32, j, n);
        else
            bi_row(NAMI_BF16, j, n);
}

static const nami_cpu_kernel f_rows = {
    .range = f_range, .units = rows, .grain = rows_grain};
static const nami_cpu_kernel bi_rows = {
    .range = bi_range, .units = rows, .grain = rows_grain};

/* --- backward --- */

/* Sums become r and q. */
static void set_slopes(const nami_batch_job *j)
{
    const nami_arg_batch_norm *a = j->a;
    const float *var = a->var, all = (float)all_rows(a);
    for (int64_t c = 0; c < a->width; c++) {
        j->first[c] *= -j->scale[c] / all;
        j->second[c] *= -j->scale[c] / (var[c] + (float)a->eps) / all;
    }
}

static void add_sums(const nami_batch_job *j)
{
    const nami_arg_batch_norm *a = j->a;
    const float *var = a->var, *mean = a->mean;
    float *dw = a->dw, *db = a->db, *dmean = a->dmean, *dvar = a->dvar;
    const int64_t all = all_rows(a);
    const float unbiased = all > 1 ? (float)all / (float)(all - 1) : 1;
    for (int64_t c = 0; c < a->width; c++) {
        dw[c] += j->second[c] / sqrtf(var[c] + (float)a->eps);
        db[c] += j->first[c];
        dmean[c] += mean[c];
        dvar[c] += var[c] * unbiased;
    }
}

/* What these rows add to the sums of dy and dy (x - mean). */
static void leave_sums(const nami_batch_job *j)
{
    for (int64_t c = 0; c < j->a->width; c++) {
        j->a->sums[c] = j->first[c];
        j->a->sums[j->a->width + c] = j->second[c];
    }
}

/* Those of all rows. */
static void take_sums(const nami_batch_job *j)
{
    for (int64_t c = 0; c < j->a->width; c++) {
        j->first[c] = (float)j->a->sums[c];
        j->second[c] = (float)j->a->sums[j->a->width + c];
    }
}

static void forward(const nami_backend *b, const nami_batch_job *j)
{
    if (j->a->sums)
        take_moments(j->a);
    else if (!j->a->running)
        measure(b, j);
    set_channels(j);
    nami_cpu_run(b, &f_rows, j, NULL, 0);
}

static void backward_input(const nami_backend *b, const nami_batch_job *j)
{
    set_channels(j);
    if (j->a->sums)
        take_sums(j);
    else
        nami_batch_sums(b, j);
    set_slopes(j);
    nami_cpu_run(b, &bi_rows, j, NULL, 0);
}

void nami_cpu_batch_norm_launch(const nami_backend *b, nami_kernel k,
                                const nami_arg_batch_norm *a)
{
    const nami_batch_job j = job_of(a);
    if (k == NAMI_BATCH_NORM_F) {
        forward(b, &j);
    } else if (k == NAMI_BATCH_NORM_F_OWN) {
        leave_moments(b, &j);
    } else if (k == NAMI_BATCH_NORM_BI) {
        backward_input(b, &j);
    } else {
        set_channels(&j);
        nami_batch_sums(b, &j);
        if (k == NAMI_BATCH_NORM_BW)
            add_sums(&j);
        else
            leave_sums(&j);
    }
}
