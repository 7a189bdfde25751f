/* SPDX-License-Identifier: MIT */
/* cpu.h - inside the cpu backend: its state, and kernels as functions over ranges of units.
 *
 * A kernel of our own names what it counts (rows, heads, columns, elements) and computes units
 * [first, end) alone; nami_cpu_run deals the units to threads. A unit's result does not depend on who
 * computes it, so results do not depend on the number of threads.
 */
#ifndef NAMI_BACKEND_CPU_CPU_H
#define NAMI_BACKEND_CPU_CPU_H

#include "backend/cpu/onednn_conv.h"
#include "backend/query.h"

/* Compute units [first, end); `scratch` is this thread's own. Local. */
typedef void nami_cpu_range(const void *args, int64_t first, int64_t end,
                            void *scratch);

/* A kernel of our own. */
typedef struct nami_cpu_kernel {
    nami_cpu_range *range;
    int64_t (*units)(const void *args);
    int64_t (*grain)(const void *args);  /* least units worth a thread; NULL: 1 */
    size_t (*scratch)(const void *args); /* bytes each thread needs; NULL: 0 */
} nami_cpu_kernel;

/* What a prepared kernel keeps. */
typedef struct nami_cpu_plan {
    const nami_cpu_kernel *kernel; /* NULL: a matrix product, or a kernel with a sum */
    /* matrix product; NULL for others, and for a widened layer */
    nami_product *product;
    /* LINEAR_PACK: the product of LINEAR_BI; CONV_BW: see patches.c */
    nami_product *other;
    nami_convolution *conv, *other_conv; /* the same for convolutions */
    size_t scratch_each; /* bytes of scratch for each thread, a multiple of 64 */
    double *partial;     /* SQUARES: sums of blocks, added in order */
} nami_cpu_plan;

enum { NAMI_CPU_PATCH_BYTES = 16 << 20 };

typedef struct nami_cpu {
    nami_onednn dnn;
    bool widened;       /* bf16 layers run by f32 products, see widened.c */
    size_t patch_bytes; /* of scratch for patches of a convolution, see patches.c */
    nami_known *list;
} nami_cpu;

/* Deal units to b->threads threads. Local. */
void nami_cpu_run(const nami_backend *b, const nami_cpu_kernel *k, const void *args,
                  void *scratch, size_t scratch_each);

/* Matrix products: choose, and run. Local. */
nami_status nami_cpu_linear_prepare(nami_backend *b, nami_kernel k,
                                    const nami_arg_linear *a, nami_prepared *out);
void nami_cpu_linear_launch(nami_backend *b, const nami_prepared *p,
                            const nami_arg_linear *a);

/* Pack the weights of `p`, f32 in the order of its spec, as nami_product_pack. Local. */
void nami_cpu_pack(const nami_backend *b, nami_product *p, const float *w,
                   void *packed);

/* db += column sums of dy: act, n, out, dy and db of *a. Local. */
void nami_cpu_column_sums(const nami_backend *b, const nami_arg_linear *a);

/* Convolutions: choose, and run. Local. */
nami_status nami_cpu_conv_prepare(nami_backend *b, nami_kernel k,
                                  const nami_arg_conv *a, nami_prepared *out);
void nami_cpu_conv_launch(nami_backend *b, const nami_prepared *p,
                          const nami_arg_conv *a);

/* Weight gradients of convolutions as products over patches; `type` of x, dy and products. Local. */
bool nami_cpu_patches_pay(const nami_arg_conv *a, nami_dtype type);
nami_status nami_cpu_patches_prepare(const nami_cpu *cpu, const nami_arg_conv *a,
                                     nami_dtype type, nami_cpu_plan *plan);
size_t nami_cpu_patches_scratch(const nami_cpu *cpu, const nami_arg_conv *a,
                                nami_dtype type, const nami_cpu_plan *plan);
void nami_cpu_patches_run(const nami_backend *b, const nami_cpu_plan *plan,
                          const nami_arg_conv *a, nami_dtype type, const void *x,
                          const void *dy);

/* Batch norm: sums by channel, then rows. Local. */
size_t nami_cpu_batch_norm_scratch(const nami_arg_batch_norm *a);
void nami_cpu_batch_norm_launch(const nami_backend *b, nami_kernel k,
                                const nami_arg_batch_norm *a);

/* Copy f32 and bf16 into each other; f32 to f32 rounds to bf16. Local. */
void nami_cpu_convert(const nami_backend *b, nami_dtype from_type, nami_dtype to_type,
                      const void *from, void *to, int64_t count);

/* Set memory to zero. Local. */
void nami_cpu_clear(const nami_backend *b, void *to, size_t bytes);

/* bf16 layers by f32 products. Local. */
size_t nami_cpu_widened_scratch(const nami_arg_linear *a);
void nami_cpu_widened_f(const nami_backend *b, const nami_arg_linear *a);
void nami_cpu_widened_bi(const nami_backend *b, const nami_arg_linear *a);
void nami_cpu_widened_bw(const nami_backend *b, const nami_arg_linear *a);

/* Kernels whose results are sums over rows, XENT_F, or blocks, SQUARES; bytes of scratch. Local. */
size_t nami_cpu_xent_scratch(const nami_arg_xent *a, int threads);
void nami_cpu_xent_launch(nami_backend *b, const nami_arg_xent *a);
size_t nami_cpu_squares_partials(const nami_arg_vector *a);
void nami_cpu_squares_launch(nami_backend *b, const nami_cpu_plan *p,
                             const nami_arg_vector *a);

extern const nami_cpu_kernel nami_cpu_norm_f, nami_cpu_norm_bi, nami_cpu_norm_bw;
extern const nami_cpu_kernel nami_cpu_gelu_f, nami_cpu_gelu_bi;
extern const nami_cpu_kernel nami_cpu_attention_f, nami_cpu_attention_bi;
extern const nami_cpu_kernel nami_cpu_rotary_f, nami_cpu_rotary_bi;
extern const nami_cpu_kernel nami_cpu_swiglu_f, nami_cpu_swiglu_bi;
extern const nami_cpu_kernel nami_cpu_dropout_f, nami_cpu_dropout_bi;
extern const nami_cpu_kernel nami_cpu_embed_f, nami_cpu_embed_bw;
extern const nami_cpu_kernel nami_cpu_gather_f, nami_cpu_gather_bi;
extern const nami_cpu_kernel nami_cpu_add, nami_cpu_scale;
extern const nami_cpu_kernel nami_cpu_pool_f, nami_cpu_pool_bi;
extern const nami_cpu_kernel nami_cpu_unary_f, nami_cpu_unary_bi;
extern const nami_cpu_kernel nami_cpu_concat_f, nami_cpu_concat_bi;
extern const nami_cpu_kernel nami_cpu_excite_f, nami_cpu_excite_bi;
extern const nami_cpu_kernel nami_cpu_turn, nami_cpu_cast;
extern const nami_cpu_kernel nami_cpu_prepend_f, nami_cpu_prepend_bi;
extern const nami_cpu_kernel nami_cpu_prepend_bw;
extern const nami_cpu_kernel nami_cpu_adamw, nami_cpu_adam, nami_cpu_sgd;
extern const nami_cpu_kernel nami_cpu_rmsprop, nami_cpu_predict, nami_cpu_drift;

#endif
