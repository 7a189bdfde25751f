/* SPDX-License-Identifier: MIT */
/* net.c - writing a list of layers down: shapes are known with each, mistakes are found at once. */
#include "model/net.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Numbers of one sample behind a layer, and of its weights, that sizes can be computed with. */
enum { MOST_NUMBERS = 1 << 30 };
#define MOST_WEIGHTS ((int64_t)1 << 40)

/* Whether `count` numbers make at most `most`. */
static bool is_small(const int64_t *factor, int count, int64_t most)
{
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(all, factor[i], &all) || all > most)
            return false;
    return true;
}

/* Refuse a last layer that is too large, before anything is made of it. */
static void check_size(nami_net *n)
{
    if (n->status != NAMI_OK || n->layers == 0)
        return;
    const nami_layer *l = &n->layer[n->layers - 1];
    const int64_t in = l->in[0] >= 0 ? n->layer[l->in[0]].shape.dim[3] : 1;
    const int64_t weights[] = {l->window.kernel_h, l->window.kernel_w, in,
                               l->shape.dim[3]};
    bool good = is_small(l->shape.dim, l->shape.rank, MOST_NUMBERS);
    if (l->kind == NAMI_LAYER_CONV)
        good = good && is_small(weights, 4, MOST_WEIGHTS);
    if (!good)
        n->status =
            nami_fail(NAMI_EINPUT,
                      "layer %d %s makes more than %d numbers of a sample, or "
                      "has more than %lld weights",
                      n->layers - 2, l->name, MOST_NUMBERS, (long long)MOST_WEIGHTS);
}

/* Append a layer; x, other: what it reads. NULL once something is wrong. */
static nami_layer *append(nami_net *n, nami_layer_kind kind, int x, int other,
                          const char *name)
{
    check_size(n);
    if (n->status != NAMI_OK)
        return NULL;
    n->layer = nami_realloc(NAMI_MEM_OTHER, n->layer,
                            ((size_t)n->layers + 1) * sizeof *n->layer);
    nami_layer *l = &n->layer[n->layers++];
    *l = (nami_layer){.kind = kind, .in = {x, other}, .block = n->blocks};
    (void)snprintf(l->name, sizeof l->name, "%s", name);
    for (int k = 0; k < 2; k++) { /* of blocks before, only the last layer */
        const int in = l->in[k];
        NAMI_CHECK(in < n->layers - 1);
        NAMI_CHECK(in < 0 || n->layer[in].block == n->blocks ||
                   (n->layer[in].block == n->blocks - 1 &&
                    n->layer[in + 1].block == n->blocks));
    }
    if (x >= 0)
        l->shape = n->layer[x].shape;
    return l;
}

/* The number that the caller gets. */
static int last(const nami_net *n)
{
    return n->layers - 1;
}

/* Extents of a window over layer x; the mistake when none fits. */
static nami_stencil window(nami_net *n, int x, const char *name, nami_net_window w,
                           bool ceil)
{
    if (n->status != NAMI_OK)
        return (nami_stencil){0};
    const int64_t *d = n->layer[x].shape.dim;
    const int64_t h = d[1] + 2 * w.pad_h - w.kernel_h,
                  v = d[2] + 2 * w.pad_w - w.kernel_w, up = ceil ? w.stride - 1 : 0;
    if (h < 0 || v < 0)
        n->status = nami_fail(
            NAMI_EINPUT,
            "images of %lld x %lld pixels are too small for this model.family: "
            "%s wants %lld x %lld, but %lld x %lld are left there",
            (long long)n->options->image_height, (long long)n->options->image_width,
            name, (long long)w.kernel_h, (long long)w.kernel_w, (long long)d[1],
            (long long)d[2]);
    return (nami_stencil){.height = d[1],
                          .width = d[2],
                          .out_height = (h + up) / w.stride + 1,
                          .out_width = (v + up) / w.stride + 1,
                          .kernel_h = w.kernel_h,
                          .kernel_w = w.kernel_w,
                          .stride = w.stride,
                          .pad_h = w.pad_h,
                          .pad_w = w.pad_w,
                          .dilation = 1};
}

int nami_net_conv(nami_net *n, int x, const char *name, int64_t out, nami_net_window w,
                  int64_t groups, bool bias)
{
    const nami_stencil s = window(n, x, name, w, false);
    nami_layer *l = append(n, NAMI_LAYER_CONV, x, -1, name);
    if (!l)
        return 0;
    if (out % groups != 0 || l->shape.dim[3] % groups != 0)
        n->status = nami_fail(
            NAMI_EINPUT, "%s: %lld channels cannot become %lld in %lld groups", name,
            (long long)l->shape.dim[3], (long long)out, (long long)groups);
    l->window = s;
    l->groups = groups;
    l->bias = bias;
    l->shape = nami_shape_of(1, s.out_height, s.out_width, out);
    return last(n);
}

int nami_net_batch_norm(nami_net *n, int x, const char *name, bool relu)
{
    nami_layer *l = append(n, NAMI_LAYER_BATCH_NORM, x, -1, name);
    if (l) {
        l->relu = relu;
        l->real = n->eps;
    }
    return last(n);
}

int nami_net_unary(nami_net *n, int x, nami_unary function)
{
    nami_layer *l = append(n, NAMI_LAYER_UNARY, x, -1, "");
    if (l)
        l->function = function;
    return last(n);
}

static int pool(nami_net *n, int x, bool max, nami_net_window w, bool ceil)
{
    const nami_stencil s = window(n, x, "a pooling", w, ceil);
    nami_layer *l = append(n, NAMI_LAYER_POOL, x, -1, "");
    if (!l)
        return 0;
    l->window = s;
    l->max = max;
    l->shape = nami_shape_of(1, s.out_height, s.out_width, l->shape.dim[3]);
    return last(n);
}

int nami_net_pool(nami_net *n, int x, bool max, nami_net_window w)
{
    return pool(n, x, max, w, false);
}

int nami_net_pool_ceil(nami_net *n, int x, nami_net_window w)
{
    return pool(n, x, true, w, true);
}

int nami_net_global_pool(nami_net *n, int x)
{
    if (n->status != NAMI_OK)
        return 0;
    const int64_t *d = n->layer[x].shape.dim;
    return pool(n, x, false, (nami_net_window){d[1], d[2], 1, 0, 0}, false);
}

int nami_net_adapt(nami_net *n, int x, int64_t size)
{
    if (n->status != NAMI_OK)
        return 0;
    const int64_t *d = n->layer[x].shape.dim;
    if (d[1] == size && d[2] == size)
        return x;
    if (d[1] % size != 0 || d[2] % size != 0)
        n->status = nami_fail(
            NAMI_EINPUT,
            "images of %lld x %lld pixels leave %lld x %lld in front of the head of "
            "this model.family, which wants a multiple of %lld; model.stem = small is "
            "for small images",
            (long long)n->options->image_height, (long long)n->options->image_width,
            (long long)d[1], (long long)d[2], (long long)size);
    if (n->status != NAMI_OK)
        return 0;
    const nami_net_window w = {d[1] / size, d[2] / size, d[1] / size, 0, 0};
    if (size > 1 && w.kernel_h != w.kernel_w)
        n->status = nami_fail(NAMI_EINPUT, "images for this model.family are square");
    return pool(n, x, false, w, false);
}

int nami_net_flatten(nami_net *n, int x)
{
    nami_layer *l = append(n, NAMI_LAYER_FLATTEN, x, -1, "");
    if (l)
        l->shape = nami_shape_of(1, 1, nami_shape_count(&l->shape), 0);
    return last(n);
}

int nami_net_linear(nami_net *n, int x, const char *name, int64_t out)
{
    nami_layer *l = append(n, NAMI_LAYER_LINEAR, x, -1, name);
    if (!l)
        return 0;
    NAMI_CHECK(l->shape.rank == 3);
    l->bias = true;
    l->shape = nami_shape_of(1, 1, out, 0);
    return last(n);
}

bool nami_net_has(const nami_net *n, nami_layer_kind kind)
{
    for (int i = 0; i < n->layers; i++)
        if (n->layer[i].kind == kind)
            return true;
    return false;
}

bool nami_net_drops(const nami_net *n)
{
    for (int i = 0; i < n->layers; i++)
        if (n->layer[i].kind == NAMI_LAYER_DROPOUT ||
            (n->layer[i].kind == NAMI_LAYER_ADD && n->layer[i].real > 0))
            return true;
    return false;
}

int nami_net_dropout(nami_net *n, int x, const char *name)
{
    (void)append(n, NAMI_LAYER_DROPOUT, x, -1, name);
    return last(n);
}

int nami_net_add(nami_net *n, int x, int branch, double drop, const char *name)
{
    nami_layer *l = append(n, NAMI_LAYER_ADD, x, branch, name);
    if (l)
        l->real = drop;
    return last(n);
}

int nami_net_concat(nami_net *n, int x, int other)
{
    nami_layer *l = append(n, NAMI_LAYER_CONCAT, x, other, "");
    if (l)
        l->shape.dim[3] += n->layer[other].shape.dim[3];
    return last(n);
}

int nami_net_excite(nami_net *n, int x, int scale)
{
    (void)append(n, NAMI_LAYER_EXCITE, x, scale, "");
    return last(n);
}

void nami_net_block(nami_net *n, const char *name)
{
    if (n->status != NAMI_OK)
        return;
    NAMI_CHECK(n->layer[last(n)].block == n->blocks); /* no block is empty */
    n->block_name = nami_realloc(NAMI_MEM_OTHER, n->block_name,
                                 ((size_t)n->blocks + 1) * sizeof *n->block_name);
    (void)snprintf(n->block_name[n->blocks++], 32, "%s", name);
}

const char *nami_net_name(char buf[NAMI_NET_NAME], const char *prefix, const char *name)
{
    (void)snprintf(buf, NAMI_NET_NAME, "%s%s%s", prefix,
                   prefix[0] && name[0] ? "." : "", name);
    return buf;
}

/* A net ends in as many numbers as there are classes. */
static void check_end(nami_net *n)
{
    check_size(n);
    if (n->status != NAMI_OK)
        return;
    const nami_layer *l = &n->layer[last(n)];
    if (l->block == n->blocks)
        nami_net_block(n, "head");
    if (l->shape.rank != 3 || l->shape.dim[2] != n->options->classes)
        n->status = nami_fail(
            NAMI_EINPUT,
            "the last layer makes %lld numbers of a sample, but there "
            "are %lld classes",
            (long long)nami_shape_count(&l->shape), (long long)n->options->classes);
}

nami_status nami_net_make(const nami_family *family, const nami_model_options *o,
                          nami_net **out)
{
    nami_net *n = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *n);
    n->options = o;
    n->eps = 1e-5;
    nami_layer *image = append(n, NAMI_LAYER_IMAGE, -1, -1, "");
    image->shape = nami_shape_of(1, o->image_height, o->image_width, o->image_channels);
    family->net(n, o);
    check_end(n);
    const nami_status status = n->status;
    n->options = NULL;
    if (status != NAMI_OK)
        nami_net_free(n);
    *out = status == NAMI_OK ? n : NULL;
    return status;
}

void nami_net_free(nami_net *n)
{
    if (!n)
        return;
    nami_free(n->layer);
    nami_free(n->block_name);
    nami_free(n);
}
