/* SPDX-License-Identifier: MIT */
/* conv.c - convolutions: the library's in f32 or bf16, or bf16 by f32 ones on widened copies in scratch; some weight
 * gradients as matrix products (patches.c). */
#include "backend/cpu/cpu.h"

static bool widened(const nami_backend *b, const nami_arg_conv *a)
{
    return ((const nami_cpu *)b->state)->widened && a->act == NAMI_BF16;
}

static int64_t x_count(const nami_arg_conv *a)
{
    return a->batch * a->window.height * a->window.width * a->in;
}

static int64_t y_count(const nami_arg_conv *a)
{
    return a->batch * a->window.out_height * a->window.out_width * a->out;
}

/* Bytes of an f32 copy. */
static size_t copy_bytes(int64_t count)
{
    return nami_aligned((size_t)count * sizeof(float));
}

/* Bytes of scratch in front of the f32 copies. */
static size_t copies_offset(const nami_cpu_plan *plan, const nami_cpu *cpu,
                            const nami_arg_conv *a, nami_dtype type)
{
    return nami_aligned(plan->conv ? nami_convolution_scratch(plan->conv)
                                   : nami_cpu_patches_scratch(cpu, a, type, plan));
}

/* Packing borrows the convolutions of F and BI. */
static nami_status pack_prepare(nami_backend *b, const nami_arg_conv *a,
                                nami_prepared *out)
{
    const nami_prepared *f, *bi;
    nami_cpu_plan *plan = out->data;
    NAMI_TRY(nami_backend_prepare(b, NAMI_CONV_F, a, &f));
    NAMI_TRY(nami_backend_prepare(b, NAMI_CONV_BI, a, &bi));
    out->packed_f = f->packed_f;
    out->packed_b = bi->packed_b;
    plan->conv = ((const nami_cpu_plan *)f->data)->conv;
    plan->other_conv = ((const nami_cpu_plan *)bi->data)->conv;
    return NAMI_OK;
}

nami_status nami_cpu_conv_prepare(nami_backend *b, nami_kernel k,
                                  const nami_arg_conv *a, nami_prepared *out)
{
    if (k == NAMI_CONV_PACK)
        return pack_prepare(b, a, out);
    const nami_cpu *cpu = b->state;
    nami_cpu_plan *plan = out->data;
    const nami_dtype type = widened(b, a) ? NAMI_F32 : a->act;
    if (k == NAMI_CONV_BW && nami_cpu_patches_pay(a, type)) {
        NAMI_TRY(nami_cpu_patches_prepare(cpu, a, type, plan));
        out->scratch = copies_offset(plan, cpu, a, type);
        if (widened(b, a))
            out->scratch += copy_bytes(x_count(a)) + copy_bytes(y_count(a));
        return NAMI_OK;
    }
    const nami_convolution_spec spec = {.pass = k,
                                        .type = type,
                                        .bias = k == NAMI_CONV_F && a->b,
                                        .batch = a->batch,
                                        .in = a->in,
                                        .out = a->out,
                                        .groups = a->groups,
                                        .window = a->window};
    NAMI_TRY(nami_convolution_new(&cpu->dnn, &spec, &plan->conv));
    out->scratch = copies_offset(plan, cpu, a, type);
    if (widened(b, a))
        out->scratch += copy_bytes(x_count(a)) + copy_bytes(y_count(a));
    if (k == NAMI_CONV_F)
        out->packed_f = nami_convolution_packed(plan->conv);
    if (k == NAMI_CONV_BI)
        out->packed_b = nami_convolution_packed(plan->conv);
    return NAMI_OK;
}

/* Where a pass finds its images: the arguments' own, or copies. */
typedef struct images {
    const void *x, *y;
    float *wide_x, *wide_y; /* NULL: not widened */
} images;

static images images_of(const nami_backend *b, const nami_prepared *p,
                        const nami_arg_conv *a)
{
    const nami_kernel k = p->kernel;
    images i = {.x = k == NAMI_CONV_BI ? a->dx : a->x,
                .y = k == NAMI_CONV_F ? a->y : a->dy};
    if (!widened(b, a))
        return i;
    char *copy = (char *)a->scratch + copies_offset(p->data, b->state, a, NAMI_F32);
    i.wide_x = (float *)(void *)copy;
    i.wide_y = (float *)(void *)(copy + copy_bytes(x_count(a)));
    if (k != NAMI_CONV_BI)
        nami_cpu_convert(b, NAMI_BF16, NAMI_F32, i.x, i.wide_x, x_count(a));
    if (k != NAMI_CONV_F)
        nami_cpu_convert(b, NAMI_BF16, NAMI_F32, i.y, i.wide_y, y_count(a));
    i.x = i.wide_x;
    i.y = i.wide_y;
    return i;
}

/* Column sums of dy: the rows of a linear layer are pixels. */
static void bias_gradient(const nami_backend *b, const nami_arg_conv *a)
{
    const nami_arg_linear rows = {.act = a->act,
                                  .n = y_count(a) / a->out,
                                  .out = a->out,
                                  .dy = a->dy,
                                  .db = a->db};
    nami_cpu_column_sums(b, &rows);
}

static void pack(nami_backend *b, const nami_arg_conv *a, nami_convolution *c,
                 void *packed)
{
    const nami_cpu *cpu = b->state;
    nami_convolution_pack(&cpu->dnn, c, a->w, packed);
    if (widened(b, a)) /* the numbers of bf16, in f32 */
        nami_cpu_convert(b, NAMI_F32, NAMI_F32, packed, packed,
                         (int64_t)(nami_convolution_packed(c) / sizeof(float)));
}

void nami_cpu_conv_launch(nami_backend *b, const nami_prepared *p,
                          const nami_arg_conv *a)
{
    const nami_cpu *cpu = b->state;
    const nami_cpu_plan *plan = p->data;
    if (p->kernel == NAMI_CONV_PACK) {
        if (a->packed_f)
            pack(b, a, plan->conv, a->packed_f);
        if (a->packed_b)
            pack(b, a, plan->other_conv, a->packed_b);
        return;
    }
    const images i = images_of(b, p, a);
    const void *weights = p->kernel == NAMI_CONV_F    ? a->packed_f
                          : p->kernel == NAMI_CONV_BI ? a->packed_b
                                                      : a->dw;
    if (plan->conv)
        nami_convolution_run(&cpu->dnn, plan->conv, i.x, weights, a->b, i.y,
                             a->scratch);
    else
        nami_cpu_patches_run(b, plan, a, i.wide_x ? NAMI_F32 : a->act, i.x, i.y);
    if (i.wide_y && p->kernel == NAMI_CONV_F)
        nami_cpu_convert(b, NAMI_F32, NAMI_BF16, i.wide_y, a->y, y_count(a));
    if (i.wide_x && p->kernel == NAMI_CONV_BI)
        nami_cpu_convert(b, NAMI_F32, NAMI_BF16, i.wide_x, a->dx, x_count(a));
    if (p->kernel == NAMI_CONV_BW && a->db)
        bias_gradient(b, a);
}
