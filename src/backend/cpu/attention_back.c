/* SPDX-License-Identifier: MIT */
/* attention_back.c - attention, backward: weights are made again from scores and lse.
 *
 * With p the softmax weights, f their dropout factors, and all sums over the weights that are not masked:
 * dv_j = sum_i f p dy_i;  ds = p (f dy_i.v_j - dy_i.y_i);  dq_i = sum_j ds k_j / sqrt(D);
 * dk_j = sum_i ds q_i / sqrt(D), over the heads that share k, v too. Dao et al., FlashAttention (2022), algorithm 4.
 */
#include "backend/cpu/attention.h"

enum { ROWS = 64 }; /* rows of a block */

/* Work memory of a thread. */
typedef struct back_work {
    float *kt, *vt;  /* k, v turned: panels [padded/TN][D][TN] */
    float *k;        /* k: panels [D/TN][padded][TN] */
    float *q, *dy;   /* [ROWS][D] of the block, q scaled */
    float *qp, *dyp; /* the same as panels [D/TN][ROWS][TN] */
    float *s, *ds;   /* [ROWS][row]: scores, then f p; f dy.v, then ds */
    float *dq;       /* [ROWS][panels] */
    float *dk, *dv;  /* [padded][panels], summed over blocks */
    float *factor;   /* [padded + NAMI_FACTORS] */
    float *kv;       /* of a slice: k, v of all columns */
} back_work;

enum { PARTS = 14 };

static size_t back_carve(const nami_arg_attention *a, float *base, back_work *w)
{
    const int64_t width = a->head_width;
    const size_t padded = (size_t)nami_columns_up(a, nami_whole_time(a)),
                 panels = (size_t)nami_tiles_up(width);
    const size_t turned = padded * (size_t)width, plain = ROWS * (size_t)width;
    const size_t weights = ROWS * (size_t)nami_weights_row((int64_t)padded);
    const size_t size[PARTS] = {turned,
                                turned,
                                padded * panels,
                                plain,
                                plain,
                                ROWS * panels,
                                ROWS * panels,
                                weights,
                                weights,
                                ROWS * panels,
                                padded * panels,
                                padded * panels,
                                padded + NAMI_FACTORS,
                                nami_gather_floats(a)};
    float **const part[PARTS] = {&w->kt, &w->vt,  &w->k,      &w->q,  &w->dy,
                                 &w->qp, &w->dyp, &w->s,      &w->ds, &w->dq,
                                 &w->dk, &w->dv,  &w->factor, &w->kv};
    size_t used = 0;
    for (int i = 0; i < PARTS; i++) {
        *part[i] = base ? base + used : NULL;
        used += (size[i] + 15) / 16 * 16;
    }
    return used;
}

/* dy_i . y_i over the head. */
NAMI_INLINE float row_dot(nami_dtype act, const nami_head *h, int64_t i)
{
    const int64_t at = h->y + i * h->y_stride;
    nami_vf sum = {0};
    for (int64_t c = 0; c < h->width; c += NAMI_VL)
        sum += nami_vget(act, h->a->dy, at + c, h->width - c) *
               nami_vget(act, h->a->y, at + c, h->width - c);
    return nami_vsum(sum);
}

/* Row i: from scores and f-less dy.v to f p and ds; zero past the columns that it sees up to `end`. */
static void weights_row(const nami_head *h, const back_work *w, int64_t i, int64_t r,
                        int64_t end, float dot)
{
    float *s = w->s + r * h->row, *ds = w->ds + r * h->row;
    const float lse =
        ((const float *)h->a->lse)[(h->b * h->a->heads + h->h) * h->time + i];
    const int64_t n = nami_head_seen(h, h->first + i);
    const bool drop = h->a->dropout > 0;
    if (drop)
        nami_weight_factors(h, i, n, w->factor);
    for (int64_t j = 0; j < n; j += NAMI_VL) {
        const nami_vf p = nami_vexp(nami_vload(NAMI_F32, s, j) - lse);
        nami_vf d = nami_vload(NAMI_F32, ds, j), weight = p;
        if (drop) {
            const nami_vf f = nami_vload(NAMI_F32, w->factor, j);
            d *= f;
            weight *= f;
        }
        nami_vstore(NAMI_F32, s, j, weight);
        nami_vstore(NAMI_F32, ds, j, p * (d - dot));
    }
    for (int64_t j = n; j < end; j++)
        s[j] = ds[j] = 0;
}

/* Scores and dy.v of a block, whose positions begin with i0, against every column that it sees. */
static void products(const nami_head *h, const back_work *w, int64_t i0, int64_t rows)
{
    for (int64_t j = 0; j < nami_head_reach(h, i0, rows); j += NAMI_TN)
        for (int64_t r = 0; r < rows; r += NAMI_TM)
            if (nami_head_reach(h, i0 + r, NAMI_TM) > j) {
                nami_tile_rows(h->width, w->q + r * h->width, h->width,
                               w->kt + j * h->width, w->s + r * h->row + j, h->row);
                nami_tile_rows(h->width, w->dy + r * h->width, h->width,
                               w->vt + j * h->width, w->ds + r * h->row + j, h->row);
            }
}

/* Add the block's share of dk and dv: columns j.. of the weights meet the rows that see one of them. */
static void column_sums(const nami_head *h, const back_work *w, int64_t i0,
                        int64_t rows)
{
    for (int64_t c = 0; c < h->panels; c += NAMI_TN)
        for (int64_t j = 0; j < nami_head_reach(h, i0, rows); j += NAMI_TM) {
            const int64_t r = !h->a->whole && j > i0 ? j - i0 : 0;
            const int64_t panel = c * ROWS + r * NAMI_TN, to = j * h->panels + c;
            nami_tile_turned(rows - r, w->s + r * h->row + j, h->row, w->dyp + panel,
                             w->dv + to, h->panels);
            nami_tile_turned(rows - r, w->ds + r * h->row + j, h->row, w->qp + panel,
                             w->dk + to, h->panels);
        }
}

/* dk and dv of the group of a slice: those of earlier slices go to their dkv, written by the last slice, added to by
 * the others; the own ones get what later slices left. */
static void exchange_slices(const nami_head *h, const back_work *w)
{
    const nami_arg_attention *a = h->a;
    const bool last = a->slice == a->slices - 1;
    const int64_t part = h->dv - h->dk;
    for (int64_t j = last ? h->first : h->columns; j-- > 0;) {
        float *left = (float *)(void *)((char *)a->dkv -
                                        (size_t)(a->slice - j / h->time) * a->stride) +
                      (h->b * h->time + j % h->time) * 2 * part + h->g * h->width;
        float *sum[2] = {w->dk + j * h->panels, w->dv + j * h->panels};
        for (int p = 0; p < 2; p++, left += part)
            for (int64_t c = 0; c < h->width; c++) {
                if (!last)
                    sum[p][c] += left[c];
                if (j < h->first)
                    left[c] = sum[p][c];
            }
    }
}

/* Rows [0, n) of `from` [., panels] times `factor` to dqkv. */
NAMI_INLINE void store_rows(nami_dtype act, const nami_head *h, const float *from,
                            int64_t at, int64_t n, float factor)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < h->width; c += NAMI_VL)
            nami_vput(act, h->a->dqkv, at + r * h->stride + c,
                      nami_vload(NAMI_F32, from, r * h->panels + c) * factor,
                      h->width - c);
}

NAMI_INLINE void back_block(nami_dtype act, const nami_head *h, const back_work *w,
                            int64_t i0)
{
    const int64_t valid = h->time - i0 < ROWS ? h->time - i0 : ROWS;
    const int64_t rows = (valid + NAMI_TM - 1) / NAMI_TM * NAMI_TM;
    const int64_t q = h->q + i0 * h->stride, dy = h->y + i0 * h->y_stride;
    const nami_arg_attention *a = h->a;
    nami_pack_plain(act, a->qkv, q, h->stride, valid, rows, h->width, h->scale, w->q);
    nami_pack_panels(act, a->qkv, q, h->stride, valid, ROWS, h->width, h->scale, w->qp);
    nami_pack_plain(act, a->dy, dy, h->y_stride, valid, rows, h->width, 1, w->dy);
    nami_pack_panels(act, a->dy, dy, h->y_stride, valid, ROWS, h->width, 1, w->dyp);
    const int64_t p0 = h->first + i0; /* tiles of dk and dv reach further from here: */
    const int64_t more = h->first % NAMI_TM > 0 || a->whole ? NAMI_TM : 0;
    products(h, w, p0, rows);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t end =
            nami_head_reach(h, p0 + r / NAMI_TM * NAMI_TM, NAMI_TM) + more;
        if (r < valid)
            weights_row(h, w, i0 + r, r, end, row_dot(act, h, i0 + r));
        else
            for (int64_t j = 0; j < end; j++)
                w->s[r * h->row + j] = w->ds[r * h->row + j] = 0;
    }
    for (int64_t c = 0; c < h->panels; c += NAMI_TN)
        for (int64_t r = 0; r < rows; r += NAMI_TM)
            nami_tile_rows(nami_head_reach(h, p0 + r, NAMI_TM), w->ds + r * h->row,
                           h->row, w->k + c * h->padded, w->dq + r * h->panels + c,
                           h->panels);
    store_rows(act, h, w->dq, q, valid, h->scale);
    column_sums(h, w, p0, rows);
}

NAMI_INLINE void back_group(nami_dtype act, nami_head *h, const back_work *w)
{
    const nami_arg_attention *a = h->a;
    const size_t sums = (size_t)(h->padded * h->panels) * sizeof(float);
    nami_pack_turned(act, h->kv, h->k, h->kv_stride, h->columns, h->padded, h->width,
                     w->kt);
    nami_pack_turned(act, h->kv, h->v, h->kv_stride, h->columns, h->padded, h->width,
                     w->vt);
    nami_pack_panels(act, h->kv, h->k, h->kv_stride, h->columns, h->padded, h->width, 1,
                     w->k);
    memset(w->dk, 0, sums);
    memset(w->dv, 0, sums);
    for (int64_t m = 0; m < h->share; m++, nami_head_next(h))
        for (int64_t i0 = 0; i0 < h->time; i0 += ROWS)
            back_block(act, h, w, i0);
    if (nami_is_slice(a))
        exchange_slices(h, w);
    const int64_t own = h->first * h->panels;
    store_rows(act, h, w->dk + own, h->dk, h->time, 1);
    store_rows(act, h, w->dv + own, h->dv, h->time, 1);
}

static void back_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    const nami_arg_attention *a = args;
    back_work w;
    back_carve(a, scratch, &w);
    for (int64_t u = first; u < end; u++) {
        nami_head h = nami_head_of(a, u);
        if (nami_is_slice(a))
            nami_head_gather(&h, w.kv);
        if (a->act == NAMI_F32)
            back_group(NAMI_F32, &h, &w);
        else
            back_group(NAMI_BF16, &h, &w);
    }
}

static size_t back_scratch(const void *args)
{
    const nami_arg_attention *a = args;
    back_work w;
    return back_carve(a, NULL, &w) * sizeof(float);
}

const nami_cpu_kernel nami_cpu_attention_bi = {
    .range = back_range, .units = nami_attention_units, .scratch = back_scratch};
