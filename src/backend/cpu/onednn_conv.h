/* SPDX-License-Identifier: MIT */
/* onednn_conv.h - convolutions by oneDNN on images with channels fastest; weights in the layout it likes best. */
#ifndef NAMI_BACKEND_CPU_ONEDNN_CONV_H
#define NAMI_BACKEND_CPU_ONEDNN_CONV_H

#include "backend/cpu/onednn.h"
#include "backend/kernel.h"

/* One pass: y = x * w + b, dx = dy * w, or dw += x * dy. */
typedef struct nami_convolution_spec {
    nami_kernel pass; /* NAMI_CONV_F, NAMI_CONV_BI, NAMI_CONV_BW */
    nami_dtype type;  /* of x, y, dx, dy and packed weights; f32 or bf16 */
    bool bias;        /* F: bias [O] f32 is added */
    int64_t batch, in, out, groups;
    nami_stencil window;
} nami_convolution_spec;

typedef struct nami_convolution nami_convolution;

/* Choose how to compute `spec`; all objects of the library are made here. Local. Status: NAMI_EENV. */
nami_status nami_convolution_new(const nami_onednn *d,
                                 const nami_convolution_spec *spec,
                                 nami_convolution **out);
void nami_convolution_free(nami_convolution *p);

size_t nami_convolution_scratch(const nami_convolution *p); /* bytes of a run */
size_t nami_convolution_packed(
    const nami_convolution *p); /* bytes of packed weights; 0 for BW */

/* Pack w, f32 [O,I/G,KH,KW], into `packed`. Local. */
void nami_convolution_pack(const nami_onednn *d, nami_convolution *p, const void *w,
                           void *packed);

/* Run: image x or dx, its counterpart y or dy; `weights` packed, of BW dw in f32 [O,I/G,KH,KW], added to. Local. */
void nami_convolution_run(const nami_onednn *d, nami_convolution *p, const void *x,
                          const void *weights, const void *bias, const void *y,
                          void *scratch);

#endif
