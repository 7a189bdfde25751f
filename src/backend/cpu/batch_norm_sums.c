/* SPDX-License-Identifier: MIT */
/* batch_norm_sums.c - sums over the rows of an image, by channel: moments of x, and what backward passes need of dy.
 *
 * Sums are made over blocks of rows first, so that rounding errors stay small and a block's second look at its rows
 * finds them in the cache. Blocks form at most CHUNKS chunks, as many as the shape says: units of work, whose sums are
 * added in order. Variances combine by the formula of Chan, Golub and LeVeque (1983).
 */
#include "backend/cpu/batch_norm.h"

enum {
    COLUMNS = 256, /* channels of a unit */
    ROWS = 32,     /* of a block */
    CHUNKS = 32    /* at most */
};

int64_t nami_batch_chunk_rows(int64_t n)
{
    return ((n + CHUNKS - 1) / CHUNKS + ROWS - 1) / ROWS * ROWS;
}

int64_t nami_batch_chunks(int64_t n)
{
    return n > 0 ? (n + nami_batch_chunk_rows(n) - 1) / nami_batch_chunk_rows(n) : 0;
}

/* Columns and rows of unit u, and where its two sums go. */
typedef struct part {
    int64_t from, count; /* columns */
    int64_t row, end;    /* rows */
    float *sum[2];       /* [count] */
} part;

static int64_t columns(const nami_batch_job *j)
{
    return (j->a->width + COLUMNS - 1) / COLUMNS;
}

static part part_of(const nami_batch_job *j, int64_t u)
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
    const nami_batch_job *j = args;
    return columns(j) * j->chunks;
}

/* Sum s, 0 or 1, of chunk k: [C]. */
static const float *partial(const nami_batch_job *j, int64_t k, int s)
{
    return j->partial + (2 * k + s) * j->a->width;
}

/* --- mean and variance --- */

/* sum[c] over rows [n, end) of x, or of its squared distance from mean where that is given. */
NAMI_INLINE void block_sums(nami_dtype act, const nami_batch_job *j, part p, int64_t n,
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
                nami_batch_ahead(act, j->a->x, at);
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

NAMI_INLINE void moments_body(nami_dtype act, const nami_batch_job *j, part p)
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
    const nami_batch_job *j = args;
    for (int64_t u = first; u < end; u++)
        if (j->a->act == NAMI_F32)
            moments_body(NAMI_F32, j, part_of(j, u));
        else
            moments_body(NAMI_BF16, j, part_of(j, u));
}

static const nami_cpu_kernel moments = {.range = moments_range, .units = parts};

void nami_batch_moments(const nami_backend *b, const nami_batch_job *j, float *mean,
                        float *squares)
{
    nami_cpu_run(b, &moments, j, NULL, 0);
    memset(mean, 0, (size_t)j->a->width * sizeof(float));
    memset(squares, 0, (size_t)j->a->width * sizeof(float));
    for (int64_t k = 0; k < j->chunks; k++) {
        const int64_t row = k * j->chunk, left = j->a->n - row;
        combine(mean, squares, partial(j, k, 0), partial(j, k, 1), row,
                left < j->chunk ? left : j->chunk, j->a->width);
    }
}

/* --- sums of dy and dy (x - mean) --- */

NAMI_INLINE void sums_block(nami_dtype act, const nami_batch_job *j, part p, int64_t n,
                            int64_t end, float *first, float *second)
{
    for (int64_t r = n; r < end; r++)
        for (int64_t c = 0; c < p.count; c += NAMI_VL) {
            nami_vf distance;
            const nami_vf dy = nami_batch_dy(act, j, r * j->a->width + p.from + c,
                                             p.from + c, p.count - c, &distance);
            nami_vstore(NAMI_F32, first, c, nami_vload(NAMI_F32, first, c) + dy);
            nami_vstore(NAMI_F32, second, c,
                        nami_vload(NAMI_F32, second, c) + dy * distance);
        }
}

NAMI_INLINE void sums_body(nami_dtype act, const nami_batch_job *j, part p)
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
    const nami_batch_job *j = args;
    for (int64_t u = first; u < end; u++)
        if (j->a->act == NAMI_F32)
            sums_body(NAMI_F32, j, part_of(j, u));
        else
            sums_body(NAMI_BF16, j, part_of(j, u));
}

static const nami_cpu_kernel sums = {.range = sums_range, .units = parts};

void nami_batch_sums(const nami_backend *b, const nami_batch_job *j)
{
    nami_cpu_run(b, &sums, j, NULL, 0);
    for (int64_t c = 0; c < j->a->width; c++)
        j->first[c] = j->second[c] = 0;
    for (int64_t k = 0; k < j->chunks; k++)
        for (int64_t c = 0; c < j->a->width; c++) {
            j->first[c] += partial(j, k, 0)[c];
            j->second[c] += partial(j, k, 1)[c];
        }
}
