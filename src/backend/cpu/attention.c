/* SPDX-License-Identifier: MIT */
/* attention.c - attention, forward: blocks of rows, whole rows of weights, tiles in registers.
 *
 * A block of rows meets all columns that it sees, up to its diagonal where it is causal, so the softmax needs no second pass over blocks;
 * tiles above the diagonal are not computed.
 */
#include "backend/cpu/attention.h"

enum { ROWS = 32 }; /* rows of a block */

/* Work memory of a thread. */
typedef struct forward_work {
    float *kt;     /* k turned: panels [padded/TN][D][TN] */
    float *v;      /* v: panels [D/TN][padded][TN] */
    float *q;      /* [ROWS][D], scaled */
    float *s;      /* [ROWS][row]: scores, then weights */
    float *y;      /* [ROWS][panels] */
    float *factor; /* [padded + NAMI_FACTORS] */
    float *kv;     /* of a slice: k, v of all columns */
} forward_work;

/* Carve the work memory out of `base` (NULL: only measure). Returns floats used. */
static size_t forward_carve(const nami_arg_attention *a, float *base, forward_work *w)
{
    const int64_t width = a->head_width;
    const size_t padded = (size_t)nami_columns_up(a, nami_whole_time(a)),
                 panels = (size_t)nami_tiles_up(width);
    const size_t size[] = {
        padded * (size_t)width, padded * panels,
        ROWS * (size_t)width,   ROWS * (size_t)nami_weights_row((int64_t)padded),
        ROWS * panels,          padded + NAMI_FACTORS,
        nami_gather_floats(a)};
    float **const part[] = {&w->kt, &w->v, &w->q, &w->s, &w->y, &w->factor, &w->kv};
    size_t used = 0;
    for (int i = 0; i < 7; i++) {
        *part[i] = base ? base + used : NULL;
        used += (size[i] + 15) / 16 * 16;
    }
    return used;
}

/* Row i (r in the block) from scores to e^(score - largest) over the columns that it sees, with dropout; zero up to
 * `end`. Keeps lse and returns the factor that the row of y still needs: 1 / sum. */
static float softmax_row(const nami_head *h, const forward_work *w, int64_t i,
                         int64_t r, int64_t end)
{
    float *s = w->s + r * h->row;
    const int64_t n = nami_head_seen(h, h->first + i), whole = n / NAMI_VL * NAMI_VL;
    const bool drop = h->a->dropout > 0;
    nami_vf top = nami_vset(-INFINITY), sum = {0};
    if (drop)
        nami_weight_factors(h, i, n, w->factor);
    for (int64_t j = 0; j < whole; j += NAMI_VL)
        top = nami_vmax(nami_vload(NAMI_F32, s, j), top);
    float most = nami_vtop(top);
    for (int64_t j = whole; j < n; j++)
        most = s[j] > most ? s[j] : most;
    for (int64_t j = 0; j < n; j += NAMI_VL) {
        nami_vf e = nami_vexp(nami_vload(NAMI_F32, s, j) - most);
        if (j == whole) /* the last lanes are not seen */
            e = nami_vfirst(e, n - whole);
        sum += e;
        if (drop)
            e *= nami_vload(NAMI_F32, w->factor, j);
        nami_vstore(NAMI_F32, s, j, e);
    }
    const float total = nami_vsum(sum);
    ((float *)h->a->lse)[(h->b * h->a->heads + h->h) * h->time + i] =
        most + logf(total);
    for (int64_t j = n; j < end; j++)
        s[j] = 0;
    return 1 / total;
}

/* Scores of a block: its rows, whose positions begin with i0, against every column that they see. */
static void scores(const nami_head *h, const forward_work *w, int64_t i0, int64_t rows)
{
    for (int64_t j = 0; j < nami_head_reach(h, i0, rows); j += NAMI_TN)
        for (int64_t r = 0; r < rows; r += NAMI_TM)
            if (nami_head_reach(h, i0 + r, NAMI_TM) > j)
                nami_tile_rows(h->width, w->q + r * h->width, h->width,
                               w->kt + j * h->width, w->s + r * h->row + j, h->row);
}

NAMI_INLINE void forward_block(nami_dtype act, const nami_head *h,
                               const forward_work *w, int64_t i0)
{
    const int64_t valid = h->time - i0 < ROWS ? h->time - i0 : ROWS;
    const int64_t rows = (valid + NAMI_TM - 1) / NAMI_TM * NAMI_TM;
    nami_pack_plain(act, h->a->qkv, h->q + i0 * h->stride, h->stride, valid, rows,
                    h->width, h->scale, w->q);
    const int64_t p0 = h->first + i0;
    scores(h, w, p0, rows);
    float factor[ROWS];
    for (int64_t r = 0; r < valid; r++)
        factor[r] = softmax_row(
            h, w, i0 + r, r, nami_head_reach(h, p0 + r / NAMI_TM * NAMI_TM, NAMI_TM));
    for (int64_t c = 0; c < h->panels; c += NAMI_TN)
        for (int64_t r = 0; r < rows; r += NAMI_TM)
            nami_tile_rows(nami_head_reach(h, p0 + r, NAMI_TM), w->s + r * h->row,
                           h->row, w->v + c * h->padded, w->y + r * h->panels + c,
                           h->panels);
    for (int64_t r = 0; r < valid; r++)
        for (int64_t c = 0; c < h->width; c += NAMI_VL)
            nami_vput(act, h->a->y, h->y + (i0 + r) * h->y_stride + c,
                      nami_vload(NAMI_F32, w->y, r * h->panels + c) * factor[r],
                      h->width - c);
}

NAMI_INLINE void forward_group(nami_dtype act, nami_head *h, const forward_work *w)
{
    nami_pack_turned(act, h->kv, h->k, h->kv_stride, h->columns, h->padded, h->width,
                     w->kt);
    nami_pack_panels(act, h->kv, h->v, h->kv_stride, h->columns, h->padded, h->width, 1,
                     w->v);
    for (int64_t m = 0; m < h->share; m++, nami_head_next(h))
        for (int64_t i0 = 0; i0 < h->time; i0 += ROWS)
            forward_block(act, h, w, i0);
}

static void forward_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    const nami_arg_attention *a = args;
    forward_work w;
    forward_carve(a, scratch, &w);
    for (int64_t u = first; u < end; u++) {
        nami_head h = nami_head_of(a, u);
        if (nami_is_slice(a))
            nami_head_gather(&h, w.kv);
        if (a->act == NAMI_F32)
            forward_group(NAMI_F32, &h, &w);
        else
            forward_group(NAMI_BF16, &h, &w);
    }
}

static size_t forward_scratch(const void *args)
{
    const nami_arg_attention *a = args;
    forward_work w;
    return forward_carve(a, NULL, &w) * sizeof(float);
}

const nami_cpu_kernel nami_cpu_attention_f = {
    .range = forward_range, .units = nami_attention_units, .scratch = forward_scratch};
