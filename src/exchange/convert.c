/* SPDX-License-Identifier: MIT */
/* convert.c - elements of a file as f32, in the order of their indices. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/inner.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are little-endian, and so must the host be");

enum {
    PIECE = 1 << 16, /* elements read at a time */
    BAND = 16        /* columns: a cache line of floats */
};

/* IEEE 754 binary16. */
static float widen_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    float f;
    if (exponent == 31)
        f = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        f = ldexpf((float)fraction, -24);
    else
        f = ldexpf((float)(fraction + 1024), exponent - 25);
    return h & 0x8000 ? -f : f;
}

static float widen_one(nami_exchange_kind kind, const char *in)
{
    uint16_t half;
    double wide;
    float f;
    switch (kind) {
    case NAMI_EXCHANGE_F64:
        memcpy(&wide, in, sizeof wide);
        return (float)wide;
    case NAMI_EXCHANGE_F16:
        memcpy(&half, in, sizeof half);
        return widen_half(half);
    case NAMI_EXCHANGE_BF16:
        memcpy(&half, in, sizeof half);
        return nami_bf16_to_f32(half);
    default:
        memcpy(&f, in, sizeof f);
        return f;
    }
}

static const int widths[] = {
    [NAMI_EXCHANGE_F32] = 4,
    [NAMI_EXCHANGE_F64] = 8,
    [NAMI_EXCHANGE_F16] = 2,
    [NAMI_EXCHANGE_BF16] = 2,
};

void nami_exchange_widen(nami_exchange_kind kind, int64_t count, const void *in,
                         float *out)
{
    const char *at = in;
    if (kind == NAMI_EXCHANGE_F32) {
        memcpy(out, in, (size_t)count * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < count; i++, at += widths[kind])
        out[i] = widen_one(kind, at);
}

static bool is_dense(const nami_exchange_array *a)
{
    int64_t n = 1;
    for (int i = a->rank - 1; i >= 0; i--) {
        if (a->dim[i] != 1 && a->stride[i] != n)
            return false;
        n *= a->dim[i];
    }
    return true;
}

static nami_status read_dense(const nami_exchange_file *p, const nami_exchange_array *a,
                              int64_t count, float *out)
{
    const int64_t width = widths[a->type->kind];
    char *piece =
        nami_alloc(NAMI_MEM_OTHER, (size_t)((count < PIECE ? count : PIECE) * width));
    nami_status status = NAMI_OK;
    for (int64_t i = 0; i < count && status == NAMI_OK; i += PIECE) {
        int64_t n = count - i < PIECE ? count - i : PIECE;
        status = nami_exchange_get(p, a->at + i * width, (size_t)(n * width), piece);
        if (status == NAMI_OK)
            nami_exchange_widen(a->type->kind, n, piece, out + i);
    }
    nami_free(piece);
    return status;
}

/* Step through the indices, last axis fastest; returns the way to the next element. */
static int64_t advance(const nami_exchange_array *a, int64_t *index)
{
    int64_t way = 0;
    for (int i = a->rank - 1; i >= 0; i--) {
        way += a->stride[i];
        if (++index[i] < a->dim[i])
            break;
        way -= a->dim[i] * a->stride[i];
        index[i] = 0;
    }
    return way;
}

/* A matrix by columns, as a transposed one is: BAND of them at a time, which then lie side by side in the rows. */
static bool is_turned(const nami_exchange_array *a)
{
    return a->rank == 2 && a->stride[0] == 1 && a->stride[1] >= a->dim[0];
}

static nami_status read_turned(const nami_exchange_file *p,
                               const nami_exchange_array *a, float *out)
{
    const int64_t rows = a->dim[0], columns = a->dim[1];
    nami_exchange_array column = {.type = a->type, .rank = 1};
    float *band = nami_alloc(NAMI_MEM_OTHER, (size_t)(BAND * rows) * sizeof *band);
    nami_status status = NAMI_OK;
    for (int64_t from = 0; from < columns && status == NAMI_OK; from += BAND) {
        const int64_t n = columns - from < BAND ? columns - from : BAND;
        for (int64_t k = 0; k < n && status == NAMI_OK; k++) {
            column.at = a->at + (from + k) * a->stride[1] * widths[a->type->kind];
            status = read_dense(p, &column, rows, band + k * rows);
        }
        for (int64_t i = 0; i < rows && status == NAMI_OK; i++)
            for (int64_t k = 0; k < n; k++)
                out[i * columns + from + k] = band[k * rows + i];
    }
    nami_free(band);
    return status;
}

/* Read all from the first to the last element, then pick. */
static nami_status read_spread(const nami_exchange_file *p,
                               const nami_exchange_array *a, int64_t count, float *out)
{
    const int64_t width = widths[a->type->kind];
    int64_t span = 1, at = 0, index[NAMI_EXCHANGE_RANK] = {0};
    for (int i = 0; i < a->rank; i++)
        span += (a->dim[i] - 1) * a->stride[i];
    char *all = nami_alloc(NAMI_MEM_OTHER, (size_t)(span * width));
    nami_status status = nami_exchange_get(p, a->at, (size_t)(span * width), all);
    for (int64_t i = 0; i < count && status == NAMI_OK; i++) {
        out[i] = widen_one(a->type->kind, all + at * width);
        at += advance(a, index);
    }
    nami_free(all);
    return status;
}

nami_status nami_exchange_read(const nami_exchange *x, const nami_exchange_array *a,
                               float *out)
{
    const nami_exchange_file *p = &x->part[a->part];
    int64_t count = 1;
    if (a->type->kind == NAMI_EXCHANGE_OTHER)
        return nami_fail(NAMI_EINPUT,
                         "%s: array %s is of type %s: expected floating-point numbers "
                         "of 16, 32 or 64 bits",
                         p->path, a->name, a->type->name);
    for (int i = 0; i < a->rank; i++)
        count *= a->dim[i];
    if (count == 0)
        return NAMI_OK;
    if (is_dense(a))
        return read_dense(p, a, count, out);
    return is_turned(a) ? read_turned(p, a, out) : read_spread(p, a, count, out);
}
