/* SPDX-License-Identifier: MIT */
/* conv.c - convolution of images and its gradients. */
#include "backend/ref/ref.h"

#define GET nami_ref_get

/* One tap: kernel element (kh,kw) of output pixel (oh,ow) meets input pixel (h,w). */
typedef struct tap {
    int64_t b, oh, ow, kh, kw, h, w;
} tap;

/* The input pixel of a tap; false outside the image. */
static bool tap_meets(const nami_stencil *v, tap *t)
{
    t->h = t->oh * v->stride - v->pad_h + v->dilation * t->kh;
    t->w = t->ow * v->stride - v->pad_w + v->dilation * t->kw;
    return t->h >= 0 && t->h < v->height && t->w >= 0 && t->w < v->width;
}

static int64_t x_at(const nami_arg_conv *a, const tap *t, int64_t i)
{
    return ((t->b * a->window.height + t->h) * a->window.width + t->w) * a->in + i;
}

static int64_t y_at(const nami_arg_conv *a, const tap *t, int64_t o)
{
    return ((t->b * a->window.out_height + t->oh) * a->window.out_width + t->ow) *
               a->out +
           o;
}

/* Weight of output channel o and channel i of its group. */
static int64_t w_at(const nami_arg_conv *a, const tap *t, int64_t o, int64_t i)
{
    const nami_stencil *v = &a->window;
    return ((o * (a->in / a->groups) + i) * v->kernel_h + t->kh) * v->kernel_w + t->kw;
}

/* First input channel of the group of output channel o. */
static int64_t group_in(const nami_arg_conv *a, int64_t o)
{
    return o / (a->out / a->groups) * (a->in / a->groups);
}

/* Call `visit` for each tap inside the image. */
static void each_tap(const nami_arg_conv *a,
                     void (*visit)(const nami_arg_conv *, const tap *, double *),
                     double *to)
{
    const nami_stencil *v = &a->window;
    tap t;
    for (t.b = 0; t.b < a->batch; t.b++)
        for (t.oh = 0; t.oh < v->out_height; t.oh++)
            for (t.ow = 0; t.ow < v->out_width; t.ow++)
                for (t.kh = 0; t.kh < v->kernel_h; t.kh++)
                    for (t.kw = 0; t.kw < v->kernel_w; t.kw++)
                        if (tap_meets(v, &t))
                            visit(a, &t, to);
}

static int64_t x_count(const nami_arg_conv *a)
{
    return a->batch * a->window.height * a->window.width * a->in;
}

static int64_t y_count(const nami_arg_conv *a)
{
    return a->batch * a->window.out_height * a->window.out_width * a->out;
}

static int64_t w_count(const nami_arg_conv *a)
{
    return a->out * (a->in / a->groups) * a->window.kernel_h * a->window.kernel_w;
}

static double *zeros(int64_t count)
{
    return nami_calloc(NAMI_MEM_OTHER, (size_t)count + 1, sizeof(double));
}

/* Round the sums into `to`, where `adds` on top of what is there. */
static void put(nami_dtype d, void *to, double *sum, int64_t count, bool adds)
{
    for (int64_t i = 0; i < count; i++)
        nami_ref_set(d, to, i, sum[i] + (adds ? GET(d, to, i) : 0));
    nami_free(sum);
}

static void visit_f(const nami_arg_conv *a, const tap *t, double *y)
{
    const nami_dtype wide = nami_ref_wide(a->act);
    for (int64_t o = 0; o < a->out; o++)
        for (int64_t i = 0; i < a->in / a->groups; i++)
            y[y_at(a, t, o)] +=
                GET(a->act, a->x, x_at(a, t, group_in(a, o) + i)) *
                nami_ref_round(a->act, GET(wide, a->w, w_at(a, t, o, i)));
}

void nami_ref_conv_f(const void *args)
{
    const nami_arg_conv *a = args;
    double *y = zeros(y_count(a));
    each_tap(a, visit_f, y);
    for (int64_t i = 0; a->b && i < y_count(a); i++)
        y[i] += GET(nami_ref_wide(a->act), a->b, i % a->out);
    put(a->act, a->y, y, y_count(a), false);
}

static void visit_bi(const nami_arg_conv *a, const tap *t, double *dx)
{
    const nami_dtype wide = nami_ref_wide(a->act);
    for (int64_t o = 0; o < a->out; o++)
        for (int64_t i = 0; i < a->in / a->groups; i++)
            dx[x_at(a, t, group_in(a, o) + i)] +=
                GET(a->act, a->dy, y_at(a, t, o)) *
                nami_ref_round(a->act, GET(wide, a->w, w_at(a, t, o, i)));
}

void nami_ref_conv_bi(const void *args)
{
    const nami_arg_conv *a = args;
    double *dx = zeros(x_count(a));
    each_tap(a, visit_bi, dx);
    put(a->act, a->dx, dx, x_count(a), false);
}

static void visit_bw(const nami_arg_conv *a, const tap *t, double *dw)
{
    for (int64_t o = 0; o < a->out; o++)
        for (int64_t i = 0; i < a->in / a->groups; i++)
            dw[w_at(a, t, o, i)] += GET(a->act, a->dy, y_at(a, t, o)) *
                                    GET(a->act, a->x, x_at(a, t, group_in(a, o) + i));
}

void nami_ref_conv_bw(const void *args)
{
    const nami_arg_conv *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    double *dw = zeros(w_count(a));
    each_tap(a, visit_bw, dw);
    put(wide, a->dw, dw, w_count(a), true);
    if (!a->db)
        return;
    double *db = zeros(a->out);
    for (int64_t i = 0; i < y_count(a); i++)
        db[i % a->out] += GET(a->act, a->dy, i);
    put(wide, a->db, db, a->out, true);
}
