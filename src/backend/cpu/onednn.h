/* SPDX-License-Identifier: MIT */
/* onednn.h - matrix products by oneDNN, versions 2.6 and 3: the only place that knows the library. */
#ifndef NAMI_BACKEND_CPU_ONEDNN_H
#define NAMI_BACKEND_CPU_ONEDNN_H

#include <stdbool.h>

#include "base/status.h"
#include "tensor/tensor.h"

/* c [m,n] = a [m,k] b [k,n], plus bias, plus what c holds. */
typedef struct nami_product_spec {
    int64_t m, k, n;
    bool a_turned, b_turned; /* stored as a [k,m], b [n,k] */
    nami_dtype in, out;      /* type of a and b; of c; f32 or bf16 */
    bool bias;               /* bias [n] f32 is added to each row */
    bool sum;                /* c is added to */
    /* f32: by the matmul primitive, not sgemm, where it has AVX-512 kernels */
    bool primitive;
    bool pack; /* b comes packed by nami_product_pack from its f32 original */
} nami_product_spec;

typedef struct nami_product nami_product;

/* Bytes up to the next multiple of 64: what lies behind starts on a line of the cache. Local, pure. */
static inline size_t nami_aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

typedef struct nami_onednn {
    void *engine, *stream; /* dnnl_engine_t, dnnl_stream_t */
} nami_onednn;

/* Open the library. Local. Status: NAMI_EENV when it is not there. */
nami_status nami_onednn_open(nami_onednn *out);
void nami_onednn_close(nami_onednn *d);

/* Choose how to compute `spec`; all objects of the library are made here. Local. Status: NAMI_EENV. */
nami_status nami_product_new(const nami_onednn *d, const nami_product_spec *spec,
                             nami_product **out);
void nami_product_free(nami_product *p);

const nami_product_spec *nami_product_spec_of(const nami_product *p);
size_t nami_product_scratch(const nami_product *p); /* bytes of scratch of a run */
/* Bytes of packed b; 0 when not packed */
size_t nami_product_packed(const nami_product *p);

/* Where packed b [k,n] bf16 puts element (k, n): blocks of 2 pairs x columns elements, and inside of a block
 * (k / 2 % pairs * columns + n % columns) * 2 + k % 2. What lies outside of b is zero. */
typedef struct nami_product_blocks {
    int64_t pairs, columns;
    int64_t blocks_k, blocks_n; /* their numbers */
    int64_t step_k, step_n;     /* elements from one to the next */
} nami_product_blocks;

/* The blocks of packed b; false where the library lays it out in another way. Local. */
bool nami_product_blocks_of(const nami_product *p, nami_product_blocks *out);

/* Pack b, f32 in the order of the spec, into `packed`; needs no scratch. Local. */
void nami_product_pack(const nami_onednn *d, nami_product *p, const void *b,
                       void *packed);

/* An f32 product of plain matrices: c [m,n] = a [m,k] b [k,n], plus c with `sum`. */
typedef struct nami_sgemm_spec {
    int64_t m, k, n, lda, ldb, ldc; /* ld: row strides as stored, elements */
    bool a_turned, b_turned;        /* stored as a [k,m], b [n,k] */
    bool sum;
} nami_sgemm_spec;

void nami_sgemm(const nami_sgemm_spec *s, const float *a, const float *b, float *c);

/* Whether f32 products on widened operands beat the library's bf16 products on this processor, or it has
 * none. Told by the kind of processor, never timed: ranks must agree, and runs must repeat. Local. */
bool nami_onednn_slow_bf16(void);

/* Run. Local. */
void nami_product_run(const nami_onednn *d, nami_product *p, const void *a,
                      const void *b, const void *bias, void *c, void *scratch);

#endif
