/* SPDX-License-Identifier: MIT */
/* gather.c - chosen rows of each sample. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

static int64_t row_of(const nami_arg_gather *a, int64_t n)
{
    return a->row ? a->row[nami_word(n, a->rows, a->stride)] : 0;
}

static void gather_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_gather *a = args;
    const size_t bytes = (size_t)a->width * nami_dtype_size(a->act);
    for (int64_t n = first; n < end; n++) {
        const int64_t from = n / a->rows * a->time + row_of(a, n);
        memcpy((char *)a->y + (size_t)n * bytes,
               (const char *)a->x + (size_t)from * bytes, bytes);
    }
}

/* All rows of sample b, then what was taken from them. */
NAMI_INLINE void gather_bi_sample(nami_dtype act, const nami_arg_gather *a, int64_t b)
{
    const int64_t width = a->width, all = a->time * width;
    const size_t bytes = (size_t)all * nami_dtype_size(act), at = (size_t)b * bytes;
    if (!a->add)
        memset((char *)a->dx + at, 0, bytes);
    else if (a->add != a->dx)
        memcpy((char *)a->dx + at, (const char *)a->add + at, bytes);
    for (int64_t n = b * a->rows; n < (b + 1) * a->rows; n++) {
        const int64_t to = b * all + row_of(a, n) * width;
        for (int64_t c = 0; c < width; c += NAMI_VL)
            nami_vput(act, a->dx, to + c,
                      nami_vget(act, a->dx, to + c, width - c) +
                          nami_vget(act, a->dy, n * width + c, width - c),
                      width - c);
    }
}

static void gather_bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_gather *a = args;
    for (int64_t b = first; b < end; b++)
        if (a->act == NAMI_F32)
            gather_bi_sample(NAMI_F32, a, b);
        else
            gather_bi_sample(NAMI_BF16, a, b);
}

static int64_t gather_rows(const void *args)
{
    const nami_arg_gather *a = args;
    return a->batch * a->rows;
}

static int64_t gather_grain(const void *args)
{
    return 1 + 16384 / (1 + ((const nami_arg_gather *)args)->width);
}

static int64_t gather_samples(const void *args)
{
    return ((const nami_arg_gather *)args)->batch;
}

static int64_t gather_samples_grain(const void *args)
{
    const nami_arg_gather *a = args;
    return 1 + 16384 / (1 + a->time * a->width);
}

const nami_cpu_kernel nami_cpu_gather_f = {
    .range = gather_f_range, .units = gather_rows, .grain = gather_grain};
const nami_cpu_kernel nami_cpu_gather_bi = {
    .range = gather_bi_range, .units = gather_samples, .grain = gather_samples_grain};
