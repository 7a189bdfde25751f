/* SPDX-License-Identifier: MIT */
/* patches.c - the weight gradient of a convolution as a product: dw [O, I KH KW] += dy^T [O, n] patches [n, I KH KW].
 *
 * The library's kernels add up every image by itself, over all weights. Where an image has few pixels that is little
 * work for each pass over dw; and in bf16 where matrix tiles do the work, a window of one pixel is a plain product,
 * which the library runs several times as fast. The product adds to plain weights: no reorder follows.
 * Patches are laid out for some images at a time, so that they take at most cpu->patch_bytes.
 */
#include "backend/cpu/cpu.h"

enum { PIXELS = 16 }; /* an image with so many at most is small */

static int64_t taps(const nami_arg_conv *a)
{
    return a->window.kernel_h * a->window.kernel_w;
}

static int64_t pixels(const nami_arg_conv *a)
{
    return a->window.out_height * a->window.out_width;
}

/* x itself is the patches. */
static bool is_plain(const nami_arg_conv *a)
{
    return taps(a) == 1 && a->window.stride == 1 && a->window.pad_h == 0 &&
           a->window.pad_w == 0;
}

bool nami_cpu_patches_pay(const nami_arg_conv *a, nami_dtype type)
{
    if (a->groups != 1)
        return false;
    return taps(a) == 1 ? type == NAMI_BF16 : pixels(a) <= PIXELS;
}

static size_t image_bytes(const nami_arg_conv *a, nami_dtype type)
{
    return (size_t)(pixels(a) * taps(a) * a->in) * nami_dtype_size(type);
}

/* Images of one product. */
static int64_t images(const nami_cpu *cpu, const nami_arg_conv *a, nami_dtype type)
{
    const int64_t most = (int64_t)(cpu->patch_bytes / image_bytes(a, type));
    if (is_plain(a) || most >= a->batch)
        return a->batch;
    const int64_t parts = most > 0 ? (a->batch + most - 1) / most : a->batch;
    return (a->batch + parts - 1) / parts;
}

static nami_product_spec spec_of(const nami_arg_conv *a, nami_dtype type, int64_t count)
{
    return (nami_product_spec){.m = a->out,
                               .k = count * pixels(a),
                               .n = a->in * taps(a),
                               .a_turned = true,
                               .in = type,
                               .out = NAMI_F32,
                               .sum = true};
}

nami_status nami_cpu_patches_prepare(const nami_cpu *cpu, const nami_arg_conv *a,
                                     nami_dtype type, nami_cpu_plan *plan)
{
    const int64_t count = images(cpu, a, type), rest = a->batch % count;
    const nami_product_spec whole = spec_of(a, type, count),
                            last = spec_of(a, type, rest);
    NAMI_TRY(nami_product_new(&cpu->dnn, &whole, &plan->product));
    return rest ? nami_product_new(&cpu->dnn, &last, &plan->other) : NAMI_OK;
}

/* Of the products' own scratch, which comes first. */
static size_t product_bytes(const nami_cpu_plan *plan)
{
    const size_t whole = nami_product_scratch(plan->product),
                 last = plan->other ? nami_product_scratch(plan->other) : 0;
    return nami_aligned(whole > last ? whole : last);
}

/* Of a row of zeros, for taps outside of the image. */
static size_t zero_bytes(const nami_arg_conv *a, nami_dtype type)
{
    return nami_aligned((size_t)a->in * nami_dtype_size(type));
}

size_t nami_cpu_patches_scratch(const nami_cpu *cpu, const nami_arg_conv *a,
                                nami_dtype type, const nami_cpu_plan *plan)
{
    if (is_plain(a))
        return product_bytes(plan);
    return product_bytes(plan) + zero_bytes(a, type) +
           (size_t)images(cpu, a, type) * image_bytes(a, type);
}

/* Patches of some images. */
typedef struct job {
    const nami_arg_conv *a;
    nami_dtype type;
    int64_t first, count; /* images */
    const char *x, *zero; /* [B,H,W,I]; [I] */
    char *to;             /* [count pixels, I KH KW] */
} job;

enum { TAPS = 64 }; /* gathered at a time */

/* The pixels under the window of output pixel `u`, from tap `k` on. */
static void find(const job *j, int64_t u, int64_t k, int64_t count, const void **at)
{
    const nami_stencil *w = &j->a->window;
    const int64_t image = j->first + u / pixels(j->a), o = u % pixels(j->a),
                  top = o / w->out_width * w->stride - w->pad_h,
                  left = o % w->out_width * w->stride - w->pad_w;
    const size_t size = nami_dtype_size(j->type);
    for (int64_t t = 0; t < count; t++) {
        const int64_t h = top + (k + t) / w->kernel_w * w->dilation,
                      v = left + (k + t) % w->kernel_w * w->dilation;
        const bool inside = h >= 0 && h < w->height && v >= 0 && v < w->width;
        const int64_t pixel = (image * w->height + h) * w->width + v;
        at[t] = inside ? j->x + (size_t)(pixel * j->a->in) * size : j->zero;
    }
}

static void gather_f32(const float *const at[], int64_t count, int64_t in,
                       int64_t stride, float *to)
{
    for (int64_t i = 0; i < in; i++)
        for (int64_t t = 0; t < count; t++)
            to[i * stride + t] = at[t][i];
}

static void gather_bf16(const uint16_t *const at[], int64_t count, int64_t in,
                        int64_t stride, uint16_t *to)
{
    for (int64_t i = 0; i < in; i++)
        for (int64_t t = 0; t < count; t++)
            to[i * stride + t] = at[t][i];
}

static void patch_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const job *j = args;
    const int64_t all = taps(j->a), in = j->a->in;
    union {
        const void *any[TAPS];
        const float *f32[TAPS];
        const uint16_t *bf16[TAPS];
    } at;
    for (int64_t u = first; u < end; u++)
        for (int64_t k = 0; k < all; k += TAPS) {
            const int64_t count = all - k < TAPS ? all - k : TAPS,
                          to = u * all * in + k;
            find(j, u, k, count, at.any);
            if (j->type == NAMI_F32)
                gather_f32(at.f32, count, in, all, (float *)(void *)j->to + to);
            else
                gather_bf16(at.bf16, count, in, all, (uint16_t *)(void *)j->to + to);
        }
}

static int64_t patch_units(const void *args)
{
    const job *j = args;
    return j->count * pixels(j->a);
}

static int64_t patch_grain(const void *args)
{
    const job *j = args;
    return 1 + 8192 / (1 + j->a->in * taps(j->a));
}

static const nami_cpu_kernel patch = {
    .range = patch_range, .units = patch_units, .grain = patch_grain};

void nami_cpu_patches_run(const nami_backend *b, const nami_cpu_plan *plan,
                          const nami_arg_conv *a, nami_dtype type, const void *x,
                          const void *dy)
{
    const nami_cpu *cpu = b->state;
    const int64_t count = images(cpu, a, type);
    char *zero = (char *)a->scratch + product_bytes(plan),
         *to = zero + zero_bytes(a, type);
    if (is_plain(a)) {
        nami_product_run(&cpu->dnn, plan->product, dy, x, NULL, a->dw, a->scratch);
        return;
    }
    memset(zero, 0, zero_bytes(a, type));
    for (int64_t i = 0; i < a->batch; i += count) {
        const int64_t left = a->batch - i, most = left < count ? left : count;
        const job j = {.a = a,
                       .type = type,
                       .first = i,
                       .count = most,
                       .x = x,
                       .zero = zero,
                       .to = to};
        nami_cpu_run(b, &patch, &j, NULL, 0);
        nami_product_run(&cpu->dnn, most == count ? plan->product : plan->other,
                         (const char *)dy +
                             (size_t)(i * pixels(a) * a->out) * nami_dtype_size(type),
                         to, NULL, a->dw, a->scratch);
    }
}
