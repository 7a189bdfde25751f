/* SPDX-License-Identifier: MIT */
/* tensor.h - element types, shapes, and views of memory. No arithmetic.
 *
 * A tensor is dense and row-major (last index fastest); `data` may be device memory.
 */
#ifndef NAMI_TENSOR_TENSOR_H
#define NAMI_TENSOR_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

typedef enum nami_dtype {
    NAMI_F32,
    NAMI_BF16,
    NAMI_F64,
    NAMI_I32,
    NAMI_DTYPES
} nami_dtype;

enum { NAMI_MAX_RANK = 4 };

typedef struct nami_shape {
    int rank;                   /* 0..NAMI_MAX_RANK */
    int64_t dim[NAMI_MAX_RANK]; /* extents, slowest first */
} nami_shape;

typedef struct nami_tensor {
    void *data; /* NULL: absent */
    nami_dtype dtype;
    nami_shape shape;
} nami_tensor;

size_t nami_dtype_size(nami_dtype d);      /* bytes of one element */
const char *nami_dtype_name(nami_dtype d); /* "f32", "bf16", "f64", "i32" */

/* A shape of up to four extents; the first 0 ends it. Local. */
nami_shape nami_shape_of(int64_t d0, int64_t d1, int64_t d2, int64_t d3);
int64_t nami_shape_count(const nami_shape *s); /* elements */
size_t nami_tensor_bytes(const nami_tensor *t);
void nami_shape_print(const nami_shape *s, nami_text *out); /* "[4,256,768]" */

/* bf16 <-> f32: round to nearest even; NaN stays NaN. Local. */
static inline float nami_bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint16_t nami_f32_to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

#endif
