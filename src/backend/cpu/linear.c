/* SPDX-License-Identifier: MIT */
/* linear.c - the matrix products of linear layers, and what surrounds them: bias, add, column sums. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

enum { COLUMNS = 4 * NAMI_VL, ROWS = 64 };

/* Add the bias to rows of y (f32; the bf16 product does it itself). */
static void bias_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_linear *a = args;
    for (int64_t n = first; n < end; n++)
        for (int64_t o = 0; o < a->out; o += NAMI_VL) {
            const int64_t lanes = a->out - o;
            float *y = (float *)a->y + n * a->out;
            nami_vput(NAMI_F32, y, o,
                      nami_vget(NAMI_F32, y, o, lanes) +
                          nami_vget(NAMI_F32, a->b, o, lanes),
                      lanes);
        }
}

static int64_t rows(const void *args)
{
    return ((const nami_arg_linear *)args)->n;
}

static int64_t rows_grain(const void *args)
{
    return 1 + 16384 / (1 + ((const nami_arg_linear *)args)->out);
}

static const nami_cpu_kernel bias_rows = {
    .range = bias_range, .units = rows, .grain = rows_grain};

/* Columns o..o+4 vectors of db: blocks of rows are summed first, so that rounding errors stay small. */
NAMI_INLINE void column_sums(nami_dtype act, const nami_arg_linear *a, int64_t o)
{
    nami_vf sum[4];
    for (int64_t v = 0; v < 4; v++)
        sum[v] = nami_vload(NAMI_F32, a->db, o + v * NAMI_VL);
    for (int64_t first = 0; first < a->n; first += ROWS) {
        nami_vf block[4] = {{0}};
        const int64_t end = first + ROWS < a->n ? first + ROWS : a->n;
        for (int64_t n = first; n < end; n++)
            for (int64_t v = 0; v < 4; v++)
                block[v] += nami_vload(act, a->dy, n * a->out + o + v * NAMI_VL);
        for (int64_t v = 0; v < 4; v++)
            sum[v] += block[v];
    }
    for (int64_t v = 0; v < 4; v++)
        nami_vstore(NAMI_F32, a->db, o + v * NAMI_VL, sum[v]);
}

/* One vector of columns, or its first lanes. */
NAMI_INLINE void column_sum(nami_dtype act, const nami_arg_linear *a, int64_t o,
                            int64_t lanes)
{
    nami_vf sum = nami_vget(NAMI_F32, a->db, o, lanes);
    for (int64_t first = 0; first < a->n; first += ROWS) {
        nami_vf block = {0};
        const int64_t end = first + ROWS < a->n ? first + ROWS : a->n;
        for (int64_t n = first; n < end; n++)
            block += nami_vget(act, a->dy, n * a->out + o, lanes);
        sum += block;
    }
    nami_vput(NAMI_F32, a->db, o, sum, lanes);
}

NAMI_INLINE void sums_body(nami_dtype act, const nami_arg_linear *a, int64_t first,
                           int64_t end)
{
    for (int64_t u = first; u < end; u++) {
        const int64_t o = u * COLUMNS;
        if (o + COLUMNS <= a->out)
            column_sums(act, a, o);
        else
            for (int64_t c = o; c < a->out; c += NAMI_VL)
                column_sum(act, a, c, a->out - c);
    }
}

static void sums_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const nami_arg_linear *a = args;
    if (a->act == NAMI_F32)
        sums_body(NAMI_F32, a, first, end);
    else
        sums_body(NAMI_BF16, a, first, end);
}

static int64_t column_blocks(const void *args)
{
    return (((const nami_arg_linear *)args)->out + COLUMNS - 1) / COLUMNS;
}

static int64_t column_grain(const void *args)
{
    return 1 + 256 / (1 + ((const nami_arg_linear *)args)->n);
}

static const nami_cpu_kernel sums_columns = {
    .range = sums_range, .units = column_blocks, .grain = column_grain};

void nami_cpu_column_sums(const nami_backend *b, const nami_arg_linear *a)
{
    nami_cpu_run(b, &sums_columns, a, NULL, 0);
}

/* Results of so few columns at most are narrow: sgemm loses up to half of its speed on some. */
enum { NARROW = 640 };

/* The product of kernel `k`. */
static nami_product_spec spec_of(nami_kernel k, const nami_arg_linear *a, int threads)
{
    const bool bf16 = a->act == NAMI_BF16;
    if (k == NAMI_LINEAR_F)
        return (nami_product_spec){.m = a->n,
                                   .k = a->in,
                                   .n = a->out,
                                   .b_turned = true,
                                   .in = a->act,
                                   .out = a->act,
                                   .bias = bf16 && a->b,
                                   .primitive = a->out <= NARROW && threads > 1,
                                   .pack = bf16};
    if (k == NAMI_LINEAR_BI)
        return (nami_product_spec){.m = a->n,
                                   .k = a->out,
                                   .n = a->in,
                                   .in = a->act,
                                   .out = a->act,
                                   .sum = a->add != NULL,
                                   .pack = bf16};
    return (nami_product_spec){.m = a->out,
                               .k = a->n,
                               .n = a->in,
                               .a_turned = true,
                               .in = a->act,
                               .out = NAMI_F32,
                               .sum = true,
                               .primitive = a->in <= NARROW};
}

static bool widened(const nami_backend *b, const nami_arg_linear *a)
{
    return ((const nami_cpu *)b->state)->widened && a->act == NAMI_BF16;
}

/* Packing borrows the products of F and BI. */
static nami_status pack_prepare(nami_backend *b, const nami_arg_linear *a,
                                nami_prepared *out)
{
    const nami_prepared *f, *bi;
    nami_cpu_plan *plan = out->data;
    NAMI_TRY(nami_backend_prepare(b, NAMI_LINEAR_F, a, &f));
    NAMI_TRY(nami_backend_prepare(b, NAMI_LINEAR_BI, a, &bi));
    out->packed_f = f->packed_f;
    out->packed_b = bi->packed_b;
    plan->product = ((const nami_cpu_plan *)f->data)
                        ->product; /* NULL when widened: nothing packed */
    plan->other = ((const nami_cpu_plan *)bi->data)->product;
    return NAMI_OK;
}

nami_status nami_cpu_linear_prepare(nami_backend *b, nami_kernel k,
                                    const nami_arg_linear *a, nami_prepared *out)
{
    if (k == NAMI_LINEAR_PACK)
        return pack_prepare(b, a, out);
    const nami_cpu *cpu = b->state;
    nami_cpu_plan *plan = out->data;
    if (widened(b, a)) {
        out->scratch = nami_cpu_widened_scratch(a);
        return NAMI_OK;
    }
    const nami_product_spec spec = spec_of(k, a, b->threads);
    NAMI_TRY(nami_product_new(&cpu->dnn, &spec, &plan->product));
    out->scratch = nami_product_scratch(plan->product);
    if (k == NAMI_LINEAR_F)
        out->packed_f = nami_product_packed(plan->product);
    if (k == NAMI_LINEAR_BI)
        out->packed_b = nami_product_packed(plan->product);
    return NAMI_OK;
}

static void launch_f(nami_backend *b, const nami_prepared *p, const nami_arg_linear *a)
{
    const nami_cpu *cpu = b->state;
    const nami_cpu_plan *plan = p->data;
    if (!plan->product) {
        nami_cpu_widened_f(b, a);
        return;
    }
    nami_product_run(&cpu->dnn, plan->product, a->x, p->packed_f ? a->packed_f : a->w,
                     a->b, a->y, a->scratch);
    if (a->b && a->act == NAMI_F32)
        nami_cpu_run(b, &bias_rows, a, NULL, 0);
}

static void launch_bi(nami_backend *b, const nami_prepared *p, const nami_arg_linear *a)
{
    const nami_cpu *cpu = b->state;
    const nami_cpu_plan *plan = p->data;
    if (!plan->product) {
        nami_cpu_widened_bi(b, a);
        return;
    }
    if (a->add && a->add != a->dx)
        memcpy(a->dx, a->add, (size_t)(a->n * a->in) * nami_dtype_size(a->act));
    nami_product_run(&cpu->dnn, plan->product, a->dy, p->packed_b ? a->packed_b : a->w,
                     NULL, a->dx, a->scratch);
}

static void launch_bw(nami_backend *b, const nami_prepared *p, const nami_arg_linear *a)
{
    const nami_cpu *cpu = b->state;
    const nami_cpu_plan *plan = p->data;
    if (plan->product)
        nami_product_run(&cpu->dnn, plan->product, a->dy, a->x, NULL, a->dw,
                         a->scratch);
    else
        nami_cpu_widened_bw(b, a);
    if (a->db)
        nami_cpu_column_sums(b, a);
}

void nami_cpu_linear_launch(nami_backend *b, const nami_prepared *p,
                            const nami_arg_linear *a)
{
    const nami_cpu_plan *plan = p->data;
    if (p->kernel == NAMI_LINEAR_F)
        launch_f(b, p, a);
    if (p->kernel == NAMI_LINEAR_BI)
        launch_bi(b, p, a);
    if (p->kernel == NAMI_LINEAR_BW)
        launch_bw(b, p, a);
    if (p->kernel == NAMI_LINEAR_PACK && p->packed_f && a->packed_f)
        nami_cpu_pack(b, plan->product, a->w, a->packed_f);
    if (p->kernel == NAMI_LINEAR_PACK && p->packed_b && a->packed_b)
        nami_cpu_pack(b, plan->other, a->w, a->packed_b);
}
