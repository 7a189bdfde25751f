/* SPDX-License-Identifier: MIT */
/* widened.c - bf16 layers by f32 products, for processors whose bf16 products are slower or not there.
 *
 * The numbers are those of bf16 products: operands are bf16 (weights rounded from the master copy), sums are
 * f32, results are rounded once. The output width is cut into chunks, so that the f32 copies stay small;
 * nothing is packed.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

/* columns of y at a time: few passes over dx, copies that the cache holds */
enum { CHUNK = 2048 };

/* Copy rows with a change of type. */
typedef struct convert_job {
    enum {
        WIDEN,
        ROUND,
        NARROW
    } mode; /* bf16 to f32; f32 to bf16 and back; f32 to bf16 */
    int64_t rows, columns;
    const void *from;
    void *to;
    int64_t from_stride, to_stride; /* elements */
    const float *bias;              /* NARROW: added first; NULL: none */
} convert_job;

NAMI_INLINE void convert_row(const convert_job *j, int64_t r, nami_dtype from,
                             nami_dtype to)
{
    const int64_t a = r * j->from_stride, b = r * j->to_stride;
    for (int64_t c = 0; c < j->columns; c += NAMI_VL) {
        const int64_t lanes = j->columns - c;
        nami_vf x = nami_vget(from, j->from, a + c, lanes);
        if (j->bias)
            x += nami_vget(NAMI_F32, j->bias, c, lanes);
        if (from == to) /* ROUND */
            x = nami_vwiden(nami_vnarrow(x));
        nami_vput(to, j->to, b + c, x, lanes);
    }
}

static void convert_range(const void *args, int64_t first, int64_t end, void *scratch)
{
    (void)scratch;
    const convert_job *j = args;
    for (int64_t r = first; r < end; r++)
        if (j->mode == WIDEN)
            convert_row(j, r, NAMI_BF16, NAMI_F32);
        else if (j->mode == ROUND)
            convert_row(j, r, NAMI_F32, NAMI_F32);
        else
            convert_row(j, r, NAMI_F32, NAMI_BF16);
}

static int64_t convert_units(const void *args)
{
    return ((const convert_job *)args)->rows;
}

static int64_t convert_grain(const void *args)
{
    return 1 + 16384 / (1 + ((const convert_job *)args)->columns);
}

static const nami_cpu_kernel convert = {
    .range = convert_range, .units = convert_units, .grain = convert_grain};

/* f32 copies in scratch. */
typedef struct copies {
    float *rows;    /* x or dx [n,I] */
    float *weights; /* [CHUNK,I] */
    float *chunk;   /* y or dy [n,CHUNK] */
} copies;

static int64_t chunk_of(const nami_arg_linear *a, int64_t o)
{
    return a->out - o < CHUNK ? a->out - o : CHUNK;
}

static size_t carve(const nami_arg_linear *a, float *base, copies *c)
{
    const int64_t widest = chunk_of(a, 0);
    const size_t size[] = {(size_t)(a->n * a->in), (size_t)(widest * a->in),
                           (size_t)(a->n * widest)};
    float **const part[] = {&c->rows, &c->weights, &c->chunk};
    size_t used = 0;
    for (int i = 0; i < 3; i++) {
        *part[i] = base ? base + used : NULL;
        used += (size[i] + 15) / 16 * 16;
    }
    return used;
}

size_t nami_cpu_widened_scratch(const nami_arg_linear *a)
{
    copies c;
    return carve(a, NULL, &c) * sizeof(float);
}

static void widen_rows(const nami_backend *b, const nami_arg_linear *a,
                       const void *from, float *to)
{
    const convert_job j = {.mode = WIDEN,
                           .rows = a->n,
                           .columns = a->in,
                           .from = from,
                           .to = to,
                           .from_stride = a->in,
                           .to_stride = a->in};
    nami_cpu_run(b, &convert, &j, NULL, 0);
}

/* dy[:, o .. o+width) */
static void widen_chunk(const nami_backend *b, const nami_arg_linear *a, int64_t o,
                        int64_t width, float *to)
{
    const convert_job j = {.mode = WIDEN,
                           .rows = a->n,
                           .columns = width,
                           .from = (const uint16_t *)a->dy + o,
                           .to = to,
                           .from_stride = a->out,
                           .to_stride = width};
    nami_cpu_run(b, &convert, &j, NULL, 0);
}

/* w[o .. o+width, :] as bf16 sees it */
static void round_weights(const nami_backend *b, const nami_arg_linear *a, int64_t o,
                          int64_t width, float *to)
{
    const convert_job j = {.mode = ROUND,
                           .rows = width,
                           .columns = a->in,
                           .from = (const float *)a->w + o * a->in,
                           .to = to,
                           .from_stride = a->in,
                           .to_stride = a->in};
    nami_cpu_run(b, &convert, &j, NULL, 0);
}

void nami_cpu_widened_f(const nami_backend *b, const nami_arg_linear *a)
{
    copies c;
    carve(a, a->scratch, &c);
    widen_rows(b, a, a->x, c.rows);
    for (int64_t o = 0; o < a->out; o += CHUNK) {
        const int64_t width = chunk_of(a, o);
        round_weights(b, a, o, width, c.weights);
        nami_sgemm(&(nami_sgemm_spec){.m = a->n,
                                      .k = a->in,
                                      .n = width,
                                      .b_turned = true,
                                      .lda = a->in,
                                      .ldb = a->in,
                                      .ldc = width},
                   c.rows, c.weights, c.chunk);
        const convert_job j = {.mode = NARROW,
                               .rows = a->n,
                               .columns = width,
                               .from = c.chunk,
                               .to = (uint16_t *)a->y + o,
                               .from_stride = width,
                               .to_stride = a->out,
                               .bias = a->b ? (const float *)a->b + o : NULL};
        nami_cpu_run(b, &convert, &j, NULL, 0);
    }
}

void nami_cpu_widened_bi(const nami_backend *b, const nami_arg_linear *a)
{
    copies c;
    carve(a, a->scratch, &c);
    if (a->add)
        widen_rows(b, a, a->add, c.rows);
    for (int64_t o = 0; o < a->out; o += CHUNK) {
        const int64_t width = chunk_of(a, o);
        round_weights(b, a, o, width, c.weights);
        widen_chunk(b, a, o, width, c.chunk);
        nami_sgemm(&(nami_sgemm_spec){.m = a->n,
                                      .k = width,
                                      .n = a->in,
                                      .lda = width,
                                      .ldb = a->in,
                                      .ldc = a->in,
                                      .sum = a->add || o > 0},
                   c.chunk, c.weights, c.rows);
    }
    const convert_job j = {.mode = NARROW,
                           .rows = a->n,
                           .columns = a->in,
                           .from = c.rows,
                           .to = a->dx,
                           .from_stride = a->in,
                           .to_stride = a->in};
    nami_cpu_run(b, &convert, &j, NULL, 0);
}

void nami_cpu_widened_bw(const nami_backend *b, const nami_arg_linear *a)
{
    copies c;
    carve(a, a->scratch, &c);
    widen_rows(b, a, a->x, c.rows);
    for (int64_t o = 0; o < a->out; o += CHUNK) {
        const int64_t width = chunk_of(a, o);
        widen_chunk(b, a, o, width, c.chunk);
        nami_sgemm(&(nami_sgemm_spec){.m = width,
                                      .k = a->n,
                                      .n = a->in,
                                      .a_turned = true,
                                      .lda = width,
                                      .ldb = a->in,
                                      .ldc = a->in,
                                      .sum = true},
                   c.chunk, c.rows, (float *)a->dw + o * a->in);
    }
}

/* A run of elements as rows of SPAN. */
enum { SPAN = 4096 };

static void convert_rows(const nami_backend *b, const convert_job *whole, int64_t at,
                         int64_t rows, int64_t columns)
{
    convert_job j = *whole;
    const size_t from = j.mode == WIDEN ? 2 : 4, to = j.mode == NARROW ? 2 : 4;
    j.rows = rows;
    j.columns = j.from_stride = j.to_stride = columns;
    j.from = (const char *)j.from + (size_t)at * from;
    j.to = (char *)j.to + (size_t)at * to;
    nami_cpu_run(b, &convert, &j, NULL, 0);
}

void nami_cpu_convert(const nami_backend *b, nami_dtype from_type, nami_dtype to_type,
                      const void *from, void *to, int64_t count)
{
    const convert_job j = {.mode = from_type == NAMI_BF16 ? WIDEN
                                   : to_type == NAMI_BF16 ? NARROW
                                                          : ROUND,
                           .from = from,
                           .to = to};
    const int64_t rows = count / SPAN, rest = count % SPAN;
    convert_rows(b, &j, 0, rows, SPAN);
    if (rest > 0)
        convert_rows(b, &j, rows * SPAN, 1, rest);
}
