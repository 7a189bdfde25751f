/* SPDX-License-Identifier: MIT */
/* batch_norm.c - batch norm by channel: one pass over the image for sums by channel, one for the pixels.
 *
 * Sums are made over blocks of rows first, so that rounding errors stay small and a block's second look at its rows
 * finds them in the cache. Blocks form at most CHUNKS chunks, as many as the shape says: units of work, whose sums are
 * added in order. Variances combine by the formula of Chan, Golub and LeVeque (1983).
 */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

enum {
    COLUMNS = 256, /* channels of a unit */
    ROWS = 32,     /* of a block */
    CHUNKS = 32    /* at most */
};

/* What the passes share: [C] each. */
typedef struct job {
    const nami_arg_batch_norm *a;
    float *mean, *scale; /* y = (x - mean) scale + b */
    float *first,
        *second; /* sums of dy and dy (x - mean); then r and q of dx = scale dy + q (x - mean) + r */
    int64_t chunk, chunks; /* rows of a chunk, and their number */
    float *partial;        /* [chunks][2][C] */
} job;

/* Rows of a chunk: whole blocks. */
static int64_t chunk_rows(int64_t n)
{
    return ((n + CHUNKS - 1) / CHUNKS + ROWS - 1) / ROWS * ROWS;
}

static int64_t chunks_of(int64_t n)
{
    return n > 0 ? (n + chunk_rows(n) - 1) / chunk_rows(n) : 0;
}

size_t nami_cpu_batch_norm_scratch(const nami_arg_batch_norm *a)
{
    return (4 + 2 * (size_t)chunks_of(a->n)) * (size_t)a->width * sizeof(float);
}

static job job_of(const nami_arg_batch_norm *a)
{
    float *s = a->scratch;
    return (job){.a = a,
                 .mean = s,
                 .scale = s + a->width,
                 .first = s + 2 * a->width,
                 .second = s + 3 * a->width,
                 .chunk = chunk_rows(a->n),
                 .chunks = chunks_of(a->n),
                 .partial = s + 4 * a->width};
}

/* Columns and rows of unit u, and where its two sums go. */
typedef struct part {
    int64_t from, count; /* columns */
    int64_t row, end;    /* rows */
    float *sum[2];       /* [count] */
} part;

static int64_t columns(const job *j)
{
    return (j->a->width + COLUMNS - 1) / COLUMNS;
}

static part part_of(const job *j, int64_t u)
{
    const int64_t width = j->a->width, chunk = u / columns(j),
                  from = u % columns(j) * COLUMNS, left = width - from,
                  end = (chunk + 1) * j->chunk;
    float *sum = j->partial + chunk * 2 * width + from;
    return (part){.from = from,
                  .count = left < COLUMNS ? left : COLUMNS,
                  .row = chunk * j->chunk,
                  .end = end < j->a->n ? end : j->a->n,
                  .sum = {sum, sum + width}};
}

static int64_t parts(const void *args)
{
    const job *j = args;
    return columns(j) * j->chunks;
}

/* Sum s, 0 or 1, of chunk k: [C]. */
static const float *partial(const job *j, int64_t k, int s)
{
    return j->partial + (2 * k + s) * j->a->width;
}

/* Ask for what comes a page later than element `at` of x. */
NAMI_INLINE void ahead(nami_dtype act, const void *x, int64_t at)
{
    const int64_t size = act == NAMI_F32 ? 4 : 2;
    nami_vahead((const char *)x + at * size, NAMI_VL * size);
}

/* --- forward: mean and variance --- */

/* sum[c] over rows [n, end) of x, or of its squared distance from mean where that is given. */
NAMI_INLINE void block_sums(nami_dtype act, const job *j, part p, int64_t n,
                            int64_t end, const float *mean, float *sum)
{
    for (int64_t c = 0; c < p.count; c += NAMI_VL)
        nami_vstore(NAMI_F32, sum, c, (nami_vf){0});
    for (int64_t r = n; r < end; r++)
        for (int64_t c = 0; c < p.count; c += NAMI_VL) {
            const int64_t at = r * j->a->width + p.from + c;
            nami_vf x = nami_vget(act, j->a->x, at, p.count - c);
            if (mean) {
                x -= nami_vload(NAMI_F32, mean, c);
                x *= x;
            } else {
                ahead(act, j->a->x, at);
            }
            nami_vstore(NAMI_F32, sum, c, nami_vload(NAMI_F32, sum, c) + x);
        }
}

/* Mean and sum of squared distances of `before` rows, and those of `more` others, become one. */
static void combine(float *mean, float *squares, const float *more_mean,
                    const float *more_squares, int64_t before, int64_t more,
                    int64_t count)
{
    const float share = (float)more / (float)(before + more);
    for (int64_t c = 0; c < count; c++) {
        const float delta = more_mean[c] - mean[c];
        mean[c] += delta * share;
        squares[c] += more_squares[c] + delta * delta * share * (float)before;
    }
}

NAMI_INLINE void moments_body(nami_dtype act, const job *j, part p)
{
    float mean[COLUMNS + NAMI_VL], more[COLUMNS + NAMI_VL];
    memset(p.sum[0], 0, (size_t)p.count * sizeof(float));
    memset(p.sum[1], 0, (size_t)p.count * sizeof(float));
    for (int64_t n = p.row; n < p.end; n += ROWS) {
        const int64_t end = n + ROWS < p.end ? n + ROWS : p.end;
        block_sums(act, j, p, n, end, NULL, mean);
        for (int64_t c = 0; c < p.count; c++)
            mean[c] /= (float)(end - n);
        block_sums(act, j, p, n, end, mean, more);
        combine(p.sum[0], p.sum[1], mean, more, n - p.row, end - n, p.count);
    }
}

static void moments_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const job *j = args;
    for (int64_t u = first; u < end; u++)
        if (j->a->act == NAMI_F32)
            moments_body(NAMI_F32, j, part_of(j, u));
        else
            moments_body(NAMI_BF16, j, part_of(j, u));
}

static const nami_cpu_kernel moments = {.range = moments_range, .units = parts};

/* Mean and variance from those of the chunks. */
static void set_moments(const job *j)
{
    float *mean = j->a->mean, *var = j->a->var;
    memset(mean, 0, (size_t)j->a->width * sizeof(float));
    memset(var, 0, (size_t)j->a->width * sizeof(float));
    for (int64_t k = 0; k < j->chunks; k++) {
        const int64_t row = k * j->chunk, left = j->a->n - row;
        combine(mean, var, partial(j, k, 0), partial(j, k, 1), row,
                left < j->chunk ? left : j->chunk, j->a->width);
    }
    for (int64_t c = 0; c < j->a->width; c++)
        var[c] /= (float)j->a->n;
}

/* mean and scale of each channel. */
static void set_channels(const job *j)
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

/* y in front of the ReLU, and x - mean. */
NAMI_INLINE nami_vf before_relu(nami_dtype act, const job *j, int64_t at, int64_t c,
                                int64_t lanes, nami_vf *distance)
{
    *distance =
        nami_vget(act, j->a->x, at, lanes) - nami_vget(NAMI_F32, j->mean, c, lanes);
    return *distance * nami_vget(NAMI_F32, j->scale, c, lanes) +
           nami_vget(NAMI_F32, j->a->b, c, lanes);
}

NAMI_INLINE void f_row(nami_dtype act, const job *j, int64_t n)
{
    const nami_arg_batch_norm *a = j->a;
    for (int64_t c = 0; c < a->width; c += NAMI_VL) {
        const int64_t at = n * a->width + c, lanes = a->width - c;
        ahead(act, a->x, at);
        nami_vf unused, y = before_relu(act, j, at, c, lanes, &unused);
        if (a->relu)
            y = nami_vselect(y <= 0, (nami_vf){0}, y);
        nami_vput(act, a->y, at, y, lanes);
    }
}

/* dy in front of the ReLU, and x - mean. */
NAMI_INLINE nami_vf dy_of(nami_dtype act, const job *j, int64_t at, int64_t c,
                          int64_t lanes, nami_vf *distance)
{
    ahead(act, j->a->x, at);
    ahead(act, j->a->dy, at);
    const nami_vf y = before_relu(act, j, at, c, lanes, distance);
    const nami_vf dy = nami_vget(act, j->a->dy, at, lanes);
    return j->a->relu ? nami_vselect(y <= 0, (nami_vf){0}, dy) : dy;
}

NAMI_INLINE void bi_row(nami_dtype act, const job *j, int64_t n)
{
    const nami_arg_batch_norm *a = j->a;
    for (int64_t c = 0; c < a->width; c += NAMI_VL) {
        const int64_t at = n * a->width + c, lanes = a->width - c;
        nami_vf distance;
        const nami_vf dy = dy_of(act, j, at, c, lanes, &distance);
        nami_vput(act, a->dx, at,
                  dy * nami_vget(NAMI_F32, j->scale, c, lanes) +
                      distance * nami_vget(NAMI_F32, j->second, c, lanes) +
                      nami_vget(NAMI_F32, j->first, c, lanes),
                  lanes);
    }
}

static int64_t rows(const void *args)
{
    return ((const job *)args)->a->n;
}

static int64_t rows_grain(const void *args)
{
    return 1 + 8192 / (1 + ((const job *)args)->a->width);
}

static void f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const job *j = args;
    for (int64_t n = first; n < end; n++)
        if (j->a->act == NAMI_F32)
            f_row(NAMI_F32, j, n);
        else
            f_row(NAMI_BF16, j, n);
}

static void bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const job *j = args;
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

/* --- backward: sums of dy and dy (x - mean) --- */

NAMI_INLINE void sums_block(nami_dtype act, const job *j, part p, int64_t n,
                            int64_t end, float *first, float *second)
{
    for (int64_t r = n; r < end; r++)
        for (int64_t c = 0; c < p.count; c += NAMI_VL) {
            nami_vf distance;
            const nami_vf dy = dy_of(act, j, r * j->a->width + p.from + c, p.from + c,
                                     p.count - c, &distance);
            nami_vstore(NAMI_F32, first, c, nami_vload(NAMI_F32, first, c) + dy);
            nami_vstore(NAMI_F32, second, c,
                        nami_vload(NAMI_F32, second, c) + dy * distance);
        }
}

NAMI_INLINE void sums_body(nami_dtype act, const job *j, part p)
{
    float first[COLUMNS + NAMI_VL], second[COLUMNS + NAMI_VL];
    memset(p.sum[0], 0, (size_t)p.count * sizeof(float));
    memset(p.sum[1], 0, (size_t)p.count * sizeof(float));
    for (int64_t n = p.row; n < p.end; n += ROWS) {
        memset(first, 0, sizeof first);
        memset(second, 0, sizeof second);
        sums_block(act, j, p, n, n + ROWS < p.end ? n + ROWS : p.end, first, second);
        for (int64_t c = 0; c < p.count; c++) {
            p.sum[0][c] += first[c];
            p.sum[1][c] += second[c];
        }
    }
}

static void sums_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const job *j = args;
    for (int64_t u = first; u < end; u++)
        if (j->a->act == NAMI_F32)
            sums_body(NAMI_F32, j, part_of(j, u));
        else
            sums_body(NAMI_BF16, j, part_of(j, u));
}

static const nami_cpu_kernel sums = {.range = sums_range, .units = parts};

/* The sums from those of the chunks. */
static void set_sums(const job *j)
{
    for (int64_t c = 0; c < j->a->width; c++)
        j->first[c] = j->second[c] = 0;
    for (int64_t k = 0; k < j->chunks; k++)
        for (int64_t c = 0; c < j->a->width; c++) {
            j->first[c] += partial(j, k, 0)[c];
            j->second[c] += partial(j, k, 1)[c];
        }
}

/* Sums become r and q. */
static void set_slopes(const job *j)
{
    const nami_arg_batch_norm *a = j->a;
    const float *var = a->var;
    for (int64_t c = 0; c < a->width; c++) {
        j->first[c] *= -j->scale[c] / (float)a->n;
        j->second[c] *= -j->scale[c] / (var[c] + (float)a->eps) / (float)a->n;
    }
}

static void add_sums(const job *j)
{
    const nami_arg_batch_norm *a = j->a;
    const float *var = a->var, *mean = a->mean;
    float *dw = a->dw, *db = a->db, *dmean = a->dmean, *dvar = a->dvar;
    const float unbiased = a->n > 1 ? (float)a->n / (float)(a->n - 1) : 1;
    for (int64_t c = 0; c < a->width; c++) {
        dw[c] += j->second[c] / sqrtf(var[c] + (float)a->eps);
        db[c] += j->first[c];
        dmean[c] += mean[c];
        dvar[c] += var[c] * unbiased;
    }
}

void nami_cpu_batch_norm_launch(const nami_backend *b, nami_kernel k,
                                const nami_arg_batch_norm *a)
{
    const job j = job_of(a);
    if (k == NAMI_BATCH_NORM_F && !a->running) {
        nami_cpu_run(b, &moments, &j, NULL, 0);
        set_moments(&j);
    }
    set_channels(&j);
    if (k == NAMI_BATCH_NORM_F) {
        nami_cpu_run(b, &f_rows, &j, NULL, 0);
        return;
    }
    nami_cpu_run(b, &sums, &j, NULL, 0);
    set_sums(&j);
    if (k == NAMI_BATCH_NORM_BW) {
        add_sums(&j);
        return;
    }
    set_slopes(&j);
    nami_cpu_run(b, &bi_rows, &j, NULL, 0);
}
