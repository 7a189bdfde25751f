/* SPDX-License-Identifier: MIT */
/* ref.h - the reference kernels: naive loops in double. Never optimised: this is the oracle. */
#ifndef NAMI_BACKEND_REF_REF_H
#define NAMI_BACKEND_REF_REF_H

#include "backend/backend.h"

/* Element i of an array of type d, as a double. Local. */
static inline double nami_ref_get(nami_dtype d, const void *p, int64_t i)
{
    if (d == NAMI_F32)
        return ((const float *)p)[i];
    if (d == NAMI_BF16)
        return nami_bf16_to_f32(((const uint16_t *)p)[i]);
    return ((const double *)p)[i];
}

/* Store x, rounded to type d, as element i. Local. */
static inline void nami_ref_set(nami_dtype d, void *p, int64_t i, double x)
{
    if (d == NAMI_F32)
        ((float *)p)[i] = (float)x;
    else if (d == NAMI_BF16)
        ((uint16_t *)p)[i] = nami_f32_to_bf16((float)x);
    else
        ((double *)p)[i] = x;
}

/* The wide type that goes with activations of type d. Local. */
static inline nami_dtype nami_ref_wide(nami_dtype d)
{
    return d == NAMI_F64 ? NAMI_F64 : NAMI_F32;
}

/* x as a matrix product of type d sees it: weights are rounded to bf16. Local. */
static inline double nami_ref_round(nami_dtype d, double x)
{
    return d == NAMI_BF16 ? nami_bf16_to_f32(nami_f32_to_bf16((float)x)) : x;
}

/* Factor of element e of sample s under dropout: 0 or 1/(1-p). Local. */
static inline double nami_ref_factor(uint64_t key, int64_t s, int64_t e, double p)
{
    if (p == 0)
        return 1;
    return nami_keep(key, s, e, p) ? 1 / (1 - p) : 0;
}

/* One kernel; `args` is the argument struct of the kernel. Local. */
typedef void nami_ref_kernel(const void *args);

nami_ref_kernel nami_ref_linear_f, nami_ref_linear_bi, nami_ref_linear_bw;
nami_ref_kernel nami_ref_norm_f, nami_ref_norm_bi, nami_ref_norm_bw;
nami_ref_kernel nami_ref_gelu_f, nami_ref_gelu_bi;
nami_ref_kernel nami_ref_attention_f, nami_ref_attention_bi;
nami_ref_kernel nami_ref_rotary_f, nami_ref_rotary_bi;
nami_ref_kernel nami_ref_swiglu_f, nami_ref_swiglu_bi;
nami_ref_kernel nami_ref_dropout_f, nami_ref_dropout_bi;
nami_ref_kernel nami_ref_embed_f, nami_ref_embed_bw, nami_ref_gather_f,
    nami_ref_gather_bi;
nami_ref_kernel nami_ref_xent_f;
nami_ref_kernel nami_ref_add, nami_ref_scale, nami_ref_squares;
nami_ref_kernel nami_ref_adamw, nami_ref_adam, nami_ref_sgd, nami_ref_rmsprop;
nami_ref_kernel nami_ref_conv_f, nami_ref_conv_bi, nami_ref_conv_bw;
nami_ref_kernel nami_ref_batch_norm_f, nami_ref_batch_norm_bi, nami_ref_batch_norm_bw;
nami_ref_kernel nami_ref_batch_norm_f_own, nami_ref_batch_norm_bi_own;
nami_ref_kernel nami_ref_pool_f, nami_ref_pool_bi;
nami_ref_kernel nami_ref_unary_f, nami_ref_unary_bi;
nami_ref_kernel nami_ref_concat_f, nami_ref_concat_bi;
nami_ref_kernel nami_ref_excite_f, nami_ref_excite_bi;
nami_ref_kernel nami_ref_turn, nami_ref_cast;
nami_ref_kernel nami_ref_prepend_f, nami_ref_prepend_bi, nami_ref_prepend_bw;
nami_ref_kernel nami_ref_predict, nami_ref_drift;
nami_ref_kernel nami_ref_wait;
nami_ref_kernel nami_ref_wait_pass; /* the arithmetic of wait alone */

#endif
