/* SPDX-License-Identifier: MIT */
/* cpu.c - the backend for the host's processor: done inside launch, on exactly b->threads threads. */
#include "backend/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include "backend/list.h"
#include "backend/ref/ref.h"

static const nami_cpu_kernel *const cpu_kernels[NAMI_KERNELS] = {
    [NAMI_NORM_F] = &nami_cpu_norm_f,
    [NAMI_NORM_BI] = &nami_cpu_norm_bi,
    [NAMI_NORM_BW] = &nami_cpu_norm_bw,
    [NAMI_GELU_F] = &nami_cpu_gelu_f,
    [NAMI_GELU_BI] = &nami_cpu_gelu_bi,
    [NAMI_ATTENTION_F] = &nami_cpu_attention_f,
    [NAMI_ATTENTION_BI] = &nami_cpu_attention_bi,
    [NAMI_ROTARY_F] = &nami_cpu_rotary_f,
    [NAMI_ROTARY_BI] = &nami_cpu_rotary_bi,
    [NAMI_SWIGLU_F] = &nami_cpu_swiglu_f,
    [NAMI_SWIGLU_BI] = &nami_cpu_swiglu_bi,
    [NAMI_DROPOUT_F] = &nami_cpu_dropout_f,
    [NAMI_DROPOUT_BI] = &nami_cpu_dropout_bi,
    [NAMI_EMBED_F] = &nami_cpu_embed_f,
    [NAMI_EMBED_BW] = &nami_cpu_embed_bw,
    [NAMI_GATHER_F] = &nami_cpu_gather_f,
    [NAMI_GATHER_BI] = &nami_cpu_gather_bi,
    [NAMI_ADD] = &nami_cpu_add,
    [NAMI_SCALE] = &nami_cpu_scale,
    [NAMI_POOL_F] = &nami_cpu_pool_f,
    [NAMI_POOL_BI] = &nami_cpu_pool_bi,
    [NAMI_UNARY_F] = &nami_cpu_unary_f,
    [NAMI_UNARY_BI] = &nami_cpu_unary_bi,
    [NAMI_CONCAT_F] = &nami_cpu_concat_f,
    [NAMI_CONCAT_BI] = &nami_cpu_concat_bi,
    [NAMI_EXCITE_F] = &nami_cpu_excite_f,
    [NAMI_EXCITE_BI] = &nami_cpu_excite_bi,
    [NAMI_TURN] = &nami_cpu_turn,
    [NAMI_CAST] = &nami_cpu_cast,
    [NAMI_PREPEND_F] = &nami_cpu_prepend_f,
    [NAMI_PREPEND_BI] = &nami_cpu_prepend_bi,
    [NAMI_PREPEND_BW] = &nami_cpu_prepend_bw,
    [NAMI_ADAMW] = &nami_cpu_adamw,
    [NAMI_ADAM] = &nami_cpu_adam,
    [NAMI_SGD] = &nami_cpu_sgd,
    [NAMI_RMSPROP] = &nami_cpu_rmsprop,
    [NAMI_PREDICT] = &nami_cpu_predict,
    [NAMI_DRIFT] = &nami_cpu_drift,
};

/* The library takes its number of threads from OpenMP, when it chooses and when it runs. */
static void set_threads(int threads)
{
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

static nami_status cpu_open(nami_backend *b, const nami_backend_config *c)
{
    (void)c;
    if (b->act != NAMI_F32 && b->act != NAMI_BF16)
        return nami_fail(NAMI_EENV, "backend cpu computes in f32 and bf16, not in %s",
                         nami_dtype_name(b->act));
    nami_cpu *cpu = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *cpu);
    const nami_status status = nami_onednn_open(&cpu->dnn);
    if (status != NAMI_OK) {
        nami_free(cpu);
        return status;
    }
    cpu->patch_bytes = NAMI_CPU_PATCH_BYTES;
    cpu->widened = b->act == NAMI_BF16 && nami_onednn_slow_bf16();
    b->state = cpu;
    b->host = true;
    return NAMI_OK;
}

static void cpu_close(nami_backend *b)
{
    nami_cpu *cpu = b->state;
    for (nami_known *k = cpu->list; k; k = k->next) {
        nami_cpu_plan *plan = k->prepared.data;
        if (plan &&
            k->prepared.kernel != NAMI_LINEAR_PACK) { /* packing borrows its products */
            nami_product_free(plan->product);
            nami_product_free(plan->other);
        }
        if (plan && k->prepared.kernel != NAMI_CONV_PACK)
            nami_convolution_free(plan->conv);
        if (plan)
            nami_free(plan->partial);
        nami_free(plan);
    }
    nami_known_free(&cpu->list);
    nami_onednn_close(&cpu->dnn);
    nami_free(cpu);
}

static void *cpu_alloc(nami_backend *b, nami_tag tag, size_t bytes)
{
    (void)b;
    return nami_alloc(tag, bytes);
}

static void cpu_free(nami_backend *b, void *block)
{
    (void)b;
    nami_free(block);
}

static nami_event cpu_copy(nami_backend *b, int lane, void *to, const void *from,
                           size_t bytes)
{
    (void)b, (void)lane;
    if (bytes)
        memmove(to, from, bytes);
    return 0;
}

static nami_event cpu_zero(nami_backend *b, int lane, void *to, size_t bytes)
{
    (void)lane;
    nami_cpu_clear(b, to, bytes);
    return 0;
}

static bool is_linear(nami_kernel k)
{
    return k == NAMI_LINEAR_PACK || k == NAMI_LINEAR_F || k == NAMI_LINEAR_BI ||
           k == NAMI_LINEAR_BW;
}

static bool is_conv(nami_kernel k)
{
    return k == NAMI_CONV_PACK || k == NAMI_CONV_F || k == NAMI_CONV_BI ||
           k == NAMI_CONV_BW;
}

static bool is_batch_norm(nami_kernel k)
{
    return k == NAMI_BATCH_NORM_F || k == NAMI_BATCH_NORM_BI ||
           k == NAMI_BATCH_NORM_BW || k == NAMI_BATCH_NORM_F_OWN ||
           k == NAMI_BATCH_NORM_BI_OWN;
}

static void own_prepare(const nami_backend *b, nami_kernel k, const void *args,
                        nami_prepared *out)
{
    nami_cpu_plan *plan = out->data;
    plan->kernel = cpu_kernels[k];
    if (k == NAMI_SQUARES)
        plan->partial = nami_calloc(NAMI_MEM_OTHER, nami_cpu_squares_partials(args) + 1,
                                    sizeof *plan->partial);
    if (plan->kernel && plan->kernel->scratch)
        plan->scratch_each = (plan->kernel->scratch(args) + 63) / 64 * 64;
    out->scratch = plan->scratch_each * (size_t)b->threads;
    if (is_batch_norm(k))
        out->scratch = nami_cpu_batch_norm_scratch(args);
    if (k == NAMI_XENT_F)
        out->scratch = nami_cpu_xent_scratch(args, b->threads);
}

static nami_status cpu_prepare(nami_backend *b, nami_kernel k, const void *args,
                               const nami_prepared **out)
{
    nami_cpu *cpu = b->state;
    const nami_query q = nami_query_of(k, args);
    if (q.type != NAMI_F32 && q.type != b->act)
        return nami_fail(NAMI_EENV, "backend cpu: %s was asked in %s, opened for %s",
                         nami_kernel_name(k), nami_dtype_name((nami_dtype)q.type),
                         nami_dtype_name(b->act));
    bool fresh;
    nami_prepared *p = &nami_known_find(&cpu->list, &q, &fresh)->prepared;
    *out = p;
    if (p->data)
        return NAMI_OK;
    set_threads(b->threads);
    p->data = nami_calloc(NAMI_MEM_OTHER, 1, sizeof(nami_cpu_plan));
    if (!is_linear(k) && !is_conv(k)) {
        own_prepare(b, k, args, p);
        return NAMI_OK;
    }
    const nami_status status = is_conv(k) ? nami_cpu_conv_prepare(b, k, args, p)
                                          : nami_cpu_linear_prepare(b, k, args, p);
    if (status != NAMI_OK) { /* asked again, it fails again */
        nami_free(p->data);
        p->data = NULL;
    }
    return status;
}

static nami_event cpu_launch(nami_backend *b, int lane, const nami_prepared *p,
                             const void *args)
{
    (void)lane;
    const nami_cpu_plan *plan = p->data;
    set_threads(b->threads);
    if (is_linear(p->kernel)) {
        nami_cpu_linear_launch(b, p, args);
    } else if (is_conv(p->kernel)) {
        nami_cpu_conv_launch(b, p, args);
    } else if (is_batch_norm(p->kernel)) {
        nami_cpu_batch_norm_launch(b, p->kernel, args);
    } else if (p->kernel == NAMI_XENT_F) {
        nami_cpu_xent_launch(b, args);
    } else if (p->kernel == NAMI_SQUARES) {
        nami_cpu_squares_launch(b, plan, args);
    } else if (p->kernel == NAMI_WAIT) {
        nami_ref_wait(args);
    } else {
        const nami_arg_attention *a =
            args; /* the only kernels of this kind with scratch */
        nami_cpu_run(b, plan->kernel, args, plan->scratch_each ? a->scratch : NULL,
                     plan->scratch_each);
    }
    return 0;
}

static bool cpu_done(nami_backend *b, nami_event e)
{
    (void)b, (void)e;
    return true;
}

const nami_backend_type nami_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .prepare = cpu_prepare,
    .launch = cpu_launch,
    .done = cpu_done,
};
