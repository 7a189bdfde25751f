/* SPDX-License-Identifier: MIT */
/* prepend.c - a token in front of the rows of a sample, and positions, in vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

/* Units are rows of y. */
NAMI_INLINE void prepend_f_body(nami_dtype act, const nami_arg_prepend *a,
                                int64_t first, int64_t end)
{
    const int64_t width = a->width, rows = a->time + 1;
    for (int64_t n = first; n < end; n++) {
        const int64_t t = n % rows, from = (n - n / rows - 1) * width;
        const float *position = (const float *)a->position + t * width;
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            const int64_t lanes = width - c;
            const nami_vf x = t > 0 ? nami_vget(act, a->x, from + c, lanes)
                                    : nami_vget(NAMI_F32, a->token, c, lanes);
            nami_vput(act, a->y, n * width + c,
                      x + nami_vget(NAMI_F32, position, c, lanes), lanes);
        }
    }
}

static void prepend_f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_prepend *a = args;
    if (a->act == NAMI_F32)
        prepend_f_body(NAMI_F32, a, first, end);
    else
        prepend_f_body(NAMI_BF16, a, first, end);
}

/* Units are samples. */
static void prepend_bi_range(const void *args, int64_t first, int64_t end,
                             void *scratch)
{
    (void)scratch;
    const nami_arg_prepend *a = args;
    const size_t row = (size_t)a->width * nami_dtype_size(a->act),
                 rows = (size_t)a->time * row;
    for (int64_t b = first; b < end; b++)
        memcpy((char *)a->dx + (size_t)b * rows,
               (const char *)a->dy + (size_t)b * (rows + row) + row, rows);
}

/* Units are rows of the positions: each adds the samples' in order. */
NAMI_INLINE void prepend_bw_body(nami_dtype act, const nami_arg_prepend *a,
                                 int64_t first, int64_t end)
{
    const int64_t width = a->width, each = (a->time + 1) * width;
    for (int64_t t = first; t < end; t++)
        for (int64_t c = 0; c < width; c += NAMI_VL) {
            const int64_t at = t * width + c, lanes = width - c;
            nami_vf sum = {0};
            for (int64_t b = 0; b < a->batch; b++)
                sum += nami_vget(act, a->dy, b * each + at, lanes);
            nami_vput(NAMI_F32, a->dposition, at,
                      nami_vget(NAMI_F32, a->dposition, at, lanes) + sum, lanes);
            if (t == 0)
                nami_vput(NAMI_F32, a->dtoken, c,
                          nami_vget(NAMI_F32, a->dtoken, c, lanes) + sum, lanes);
        }
}

static void prepend_bw_range(const void *args, int64_t first, int64_t end,
                             void *scratch)
{
    (void)scratch;
    const nami_arg_prepend *a = args;
    if (a->act == NAMI_F32)
        prepend_bw_body(NAMI_F32, a, first, end);
    else
        prepend_bw_body(NAMI_BF16, a, first, end);
}

static int64_t rows_out(const void *args)
{
    const nami_arg_prepend *a = args;
    return a->batch * (a->time + 1);
}

static int64_t rows_grain(const void *args)
{
    return 1 + 16384 / (1 + ((const nami_arg_prepend *)args)->width);
}

static int64_t samples(const void *args)
{
    return ((const nami_arg_prepend *)args)->batch;
}

static int64_t positions(const void *args)
{
    return ((const nami_arg_prepend *)args)->time + 1;
}

static int64_t positions_grain(const void *args)
{
    const nami_arg_prepend *a = args;
    return 1 + 16384 / (1 + a->width * a->batch);
}

const nami_cpu_kernel nami_cpu_prepend_f = {
    .range = prepend_f_range, .units = rows_out, .grain = rows_grain};
const nami_cpu_kernel nami_cpu_prepend_bi = {.range = prepend_bi_range,
                                             .units = samples};
const nami_cpu_kernel nami_cpu_prepend_bw = {
    .range = prepend_bw_range, .units = positions, .grain = positions_grain};
