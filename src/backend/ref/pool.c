/* SPDX-License-Identifier: MIT */
/* pool.c - maximum and mean of windows, and their gradients. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

/* The part of the image that one output pixel covers. */
typedef struct cover {
    int64_t h[2], w[2]; /* first, end */
    double count;       /* that a mean divides by */
} cover;

static int64_t first_of(int64_t at)
{
    return at > 0 ? at : 0;
}

static cover cover_of(const nami_arg_pool *a, int64_t oh, int64_t ow)
{
    const nami_stencil *v = &a->window;
    const int64_t h = oh * v->stride - v->pad_h, w = ow * v->stride - v->pad_w;
    cover c = {.h = {first_of(h), h + v->kernel_h},
               .w = {first_of(w), w + v->kernel_w}};
    c.h[1] = c.h[1] < v->height ? c.h[1] : v->height;
    c.w[1] = c.w[1] < v->width ? c.w[1] : v->width;
    c.count = a->count_padding ? (double)(v->kernel_h * v->kernel_w)
                               : (double)((c.h[1] - c.h[0]) * (c.w[1] - c.w[0]));
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

/* Element of x with the first largest number of channel c; NaN is larger than all. */
static int64_t largest(const nami_arg_pool *a, int64_t b, const cover *k, int64_t c)
{
    int64_t best = -1;
    for (int64_t h = k->h[0]; h < k->h[1]; h++)
        for (int64_t w = k->w[0]; w < k->w[1]; w++) {
            const int64_t at = x_at(a, b, h, w) + c;
            const double x = GET(a->act, a->x, at);
            if (best < 0 || x > GET(a->act, a->x, best) || isnan(x))
                best = at;
        }
    return best;
}

static double mean(const nami_arg_pool *a, int64_t b, const cover *k, int64_t c)
{
    double sum = 0;
    for (int64_t h = k->h[0]; h < k->h[1]; h++)
        for (int64_t w = k->w[0]; w < k->w[1]; w++)
            sum += GET(a->act, a->x, x_at(a, b, h, w) + c);
    return sum / k->count;
}

void nami_ref_pool_f(const void *args)
{
    const nami_arg_pool *a = args;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t oh = 0; oh < a->window.out_height; oh++)
            for (int64_t ow = 0; ow < a->window.out_width; ow++) {
                const cover k = cover_of(a, oh, ow);
                for (int64_t c = 0; c < a->channels; c++)
                    nami_ref_set(a->act, a->y, y_at(a, b, oh, ow) + c,
                                 a->max ? GET(a->act, a->x, largest(a, b, &k, c))
                                        : mean(a, b, &k, c));
            }
}

/* Hand the gradient of one output element to dx. */
static void spread(const nami_arg_pool *a, int64_t b, const cover *k, int64_t c,
                   double dy, double *dx)
{
    if (a->max) {
        dx[largest(a, b, k, c)] += dy;
        return;
    }
    for (int64_t h = k->h[0]; h < k->h[1]; h++)
        for (int64_t w = k->w[0]; w < k->w[1]; w++)
            dx[x_at(a, b, h, w) + c] += dy / k->count;
}

void nami_ref_pool_bi(const void *args)
{
    const nami_arg_pool *a = args;
    const int64_t count = a->batch * a->window.height * a->window.width * a->channels;
    double *dx = nami_calloc(NAMI_MEM_OTHER, (size_t)count + 1, sizeof *dx);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t oh = 0; oh < a->window.out_height; oh++)
            for (int64_t ow = 0; ow < a->window.out_width; ow++) {
                const cover k = cover_of(a, oh, ow);
                for (int64_t c = 0; c < a->channels; c++)
                    spread(a, b, &k, c, GET(a->act, a->dy, y_at(a, b, oh, ow) + c), dx);
            }
    for (int64_t i = 0; i < count; i++)
        nami_ref_set(a->act, a->dx, i, dx[i]);
    nami_free(dx);
}
