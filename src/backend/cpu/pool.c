/* SPDX-License-Identifier: MIT */
/* pool.c - maximum and mean of windows, in vectors of channels. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

/* The part of the image that one output pixel covers. */
typedef struct cover {
    int64_t h[2], w[2]; /* first, end */
    float share;        /* of one of its pixels in a mean */
} cover;

static cover cover_of(const nami_arg_pool *a, int64_t oh, int64_t ow)
{
    const nami_stencil *v = &a->window;
    const int64_t h = oh * v->stride - v->pad_h, w = ow * v->stride - v->pad_w;
    cover c = {.h = {h > 0 ? h : 0, h + v->kernel_h},
               .w = {w > 0 ? w : 0, w + v->kernel_w}};
    c.h[1] = c.h[1] < v->height ? c.h[1] : v->height;
    c.w[1] = c.w[1] < v->width ? c.w[1] : v->width;
    const int64_t covered = (c.h[1] - c.h[0]) * (c.w[1] - c.w[0]);
    c.share = 1.0f / (float)(a->count_padding ? v->kernel_h * v->kernel_w : covered);
    return c;
}

static int64_t x_at(const nami_arg_pool *a, int64_t b, int64_t h, int64_t w)
{
    return ((b * a->window.height + h) * a->window.width + w) * a->channels;
}

static int64_t y_at(const nami_arg_pool *a, int64_t b, int64_t oh, int64_t ow)
{
    return ((b * a->window.out_height + oh) * a->window.out_width + ow) * a->channels;
}

/* Channels c.. of one output pixel; NaN is larger than all. */
NAMI_INLINE nami_vf largest(nami_dtype act, const nami_arg_pool *a, int64_t b,
                            const cover *k, int64_t c, int64_t lanes)
{
    nami_vf best = nami_vset(-__builtin_inff());
    for (int64_t h = k->h[0]; h < k->h[1]; h++)
        for (int64_t w = k->w[0]; w < k->w[1]; w++) {
            const nami_vf x = nami_vget(act, a->x, x_at(a, b, h, w) + c, lanes);
            best = nami_vselect((x > best) | (x != x), x, best);
        }
    return best;
}

NAMI_INLINE nami_vf sum(nami_dtype act, const nami_arg_pool *a, int64_t b,
                        const cover *k, int64_t c, int64_t lanes)
{
    nami_vf s = {0};
    for (int64_t h = k->h[0]; h < k->h[1]; h++)
        for (int64_t w = k->w[0]; w < k->w[1]; w++)
            s += nami_vget(act, a->x, x_at(a, b, h, w) + c, lanes);
    return s;
}

/* Output row `u`, counted over all images. */
NAMI_INLINE void f_row(nami_dtype act, const nami_arg_pool *a, int64_t u)
{
    const int64_t b = u / a->window.out_height, oh = u % a->window.out_height;
    for (int64_t ow = 0; ow < a->window.out_width; ow++) {
        const cover k = cover_of(a, oh, ow);
        for (int64_t c = 0; c < a->channels; c += NAMI_VL) {
            const int64_t lanes = a->channels - c;
            nami_vput(act, a->y, y_at(a, b, oh, ow) + c,
                      a->max ? largest(act, a, b, &k, c, lanes)
                             : sum(act, a, b, &k, c, lanes) * k.share,
                      lanes);
        }
    }
}

static void f_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_pool *a = args;
    for (int64_t u = first; u < end; u++)
        if (a->act == NAMI_F32)
            f_row(NAMI_F32, a, u);
        else
            f_row(NAMI_BF16, a, u);
}

/* Add dy to the first largest pixel of each channel, or its share to all pixels. */
NAMI_INLINE void spread(nami_dtype act, const nami_arg_pool *a, int64_t b,
                        const cover *k, int64_t c, nami_vf dy)
{
    const int64_t lanes = a->channels - c;
    const nami_vf best = a->max ? largest(act, a, b, k, c, lanes) : dy;
    nami_vi left = {0};
    left = ~left; /* lanes whose largest pixel is still to come */
    for (int64_t h = k->h[0]; h < k->h[1]; h++)
        for (int64_t w = k->w[0]; w < k->w[1]; w++) {
            const int64_t at = x_at(a, b, h, w) + c;
            nami_vf d = dy * k->share;
            if (a->max) {
                const nami_vf x = nami_vget(act, a->x, at, lanes);
                const nami_vi here = ((x == best) | (x != x)) & left;
                d = nami_vselect(here, dy, (nami_vf){0});
                left &= ~here;
            }
            nami_vput(act, a->dx, at, nami_vget(act, a->dx, at, lanes) + d, lanes);
        }
}

NAMI_INLINE void bi_image(nami_dtype act, const nami_arg_pool *a, int64_t b)
{
    const size_t each = (size_t)(a->window.height * a->window.width * a->channels) *
                        nami_dtype_size(act);
    memset((char *)a->dx + (size_t)b * each, 0, each);
    for (int64_t oh = 0; oh < a->window.out_height; oh++)
        for (int64_t ow = 0; ow < a->window.out_width; ow++) {
            const cover k = cover_of(a, oh, ow);
            for (int64_t c = 0; c < a->channels; c += NAMI_VL)
                spread(act, a, b, &k, c,
                       nami_vget(act, a->dy, y_at(a, b, oh, ow) + c, a->channels - c));
        }
}

static void bi_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_pool *a = args;
    for (int64_t b = first; b < end; b++)
        if (a->act == NAMI_F32)
            bi_image(NAMI_F32, a, b);
        else
            bi_image(NAMI_BF16, a, b);
}

static int64_t output_rows(const void *args)
{
    const nami_arg_pool *a = args;
    return a->batch * a->window.out_height;
}

static int64_t images(const void *args)
{
    return ((const nami_arg_pool *)args)->batch;
}

const nami_cpu_kernel nami_cpu_pool_f = {.range = f_range, .units = output_rows};
const nami_cpu_kernel nami_cpu_pool_bi = {.range = bi_range, .units = images};
