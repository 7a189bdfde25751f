/* SPDX-License-Identifier: MIT */
/* ref.c - the backend of reference kernels: host memory, one thread, everything done inside launch. */
#include "backend/ref/ref.h"

#include "backend/list.h"
#include "backend/query.h"

static nami_ref_kernel *const ref_kernels[NAMI_KERNELS] = {
    [NAMI_LINEAR_PACK] = NULL, /* products read the master copy */
    [NAMI_LINEAR_F] = nami_ref_linear_f,
    [NAMI_LINEAR_BI] = nami_ref_linear_bi,
    [NAMI_LINEAR_BW] = nami_ref_linear_bw,
    [NAMI_NORM_F] = nami_ref_norm_f,
    [NAMI_NORM_BI] = nami_ref_norm_bi,
    [NAMI_NORM_BW] = nami_ref_norm_bw,
    [NAMI_GELU_F] = nami_ref_gelu_f,
    [NAMI_GELU_BI] = nami_ref_gelu_bi,
    [NAMI_ATTENTION_F] = nami_ref_attention_f,
    [NAMI_ATTENTION_BI] = nami_ref_attention_bi,
    [NAMI_ROTARY_F] = nami_ref_rotary_f,
    [NAMI_ROTARY_BI] = nami_ref_rotary_bi,
    [NAMI_SWIGLU_F] = nami_ref_swiglu_f,
    [NAMI_SWIGLU_BI] = nami_ref_swiglu_bi,
    [NAMI_DROPOUT_F] = nami_ref_dropout_f,
    [NAMI_DROPOUT_BI] = nami_ref_dropout_bi,
    [NAMI_EMBED_F] = nami_ref_embed_f,
    [NAMI_EMBED_BW] = nami_ref_embed_bw,
    [NAMI_GATHER_F] = nami_ref_gather_f,
    [NAMI_GATHER_BI] = nami_ref_gather_bi,
    [NAMI_XENT_F] = nami_ref_xent_f,
    [NAMI_ADD] = nami_ref_add,
    [NAMI_SCALE] = nami_ref_scale,
    [NAMI_SQUARES] = nami_ref_squares,
    [NAMI_ADAMW] = nami_ref_adamw,
    [NAMI_ADAM] = nami_ref_adam,
    [NAMI_SGD] = nami_ref_sgd,
    [NAMI_RMSPROP] = nami_ref_rmsprop,
    [NAMI_PREDICT] = nami_ref_predict,
    [NAMI_DRIFT] = nami_ref_drift,
    [NAMI_CONV_PACK] = NULL, /* as of products */
    [NAMI_CONV_F] = nami_ref_conv_f,
    [NAMI_CONV_BI] = nami_ref_conv_bi,
    [NAMI_CONV_BW] = nami_ref_conv_bw,
    [NAMI_BATCH_NORM_F] = nami_ref_batch_norm_f,
    [NAMI_BATCH_NORM_BI] = nami_ref_batch_norm_bi,
    [NAMI_BATCH_NORM_BW] = nami_ref_batch_norm_bw,
    [NAMI_BATCH_NORM_F_OWN] = nami_ref_batch_norm_f_own,
    [NAMI_BATCH_NORM_BI_OWN] = nami_ref_batch_norm_bi_own,
    [NAMI_POOL_F] = nami_ref_pool_f,
    [NAMI_POOL_BI] = nami_ref_pool_bi,
    [NAMI_UNARY_F] = nami_ref_unary_f,
    [NAMI_UNARY_BI] = nami_ref_unary_bi,
    [NAMI_CONCAT_F] = nami_ref_concat_f,
    [NAMI_CONCAT_BI] = nami_ref_concat_bi,
    [NAMI_EXCITE_F] = nami_ref_excite_f,
    [NAMI_EXCITE_BI] = nami_ref_excite_bi,
    [NAMI_TURN] = nami_ref_turn,
    [NAMI_CAST] = nami_ref_cast,
    [NAMI_PREPEND_F] = nami_ref_prepend_f,
    [NAMI_PREPEND_BI] = nami_ref_prepend_bi,
    [NAMI_PREPEND_BW] = nami_ref_prepend_bw,
    [NAMI_WAIT] = nami_ref_wait,
};

static nami_status ref_open(nami_backend *b, const nami_backend_config *c)
{
    (void)c;
    b->host = true;
    return NAMI_OK;
}

static void ref_close(nami_backend *b)
{
    nami_known *list = b->state;
    nami_known_free(&list);
}

static void *ref_alloc(nami_backend *b, nami_tag tag, size_t bytes)
{
    (void)b;
    return nami_alloc(tag, bytes);
}

static void ref_free(nami_backend *b, void *block)
{
    (void)b;
    nami_free(block);
}

static nami_event ref_copy(nami_backend *b, int lane, void *to, const void *from,
                           size_t bytes)
{
    (void)b, (void)lane;
    if (bytes)
        memmove(to, from, bytes);
    return 0;
}

static nami_event ref_zero(nami_backend *b, int lane, void *to, size_t bytes)
{
    (void)b, (void)lane;
    if (bytes)
        memset(to, 0, bytes);
    return 0;
}

static size_t ref_scratch(nami_kernel k, const void *args)
{
    const nami_arg_attention *a = args;
    if (k != NAMI_ATTENTION_F && k != NAMI_ATTENTION_BI)
        return 0;
    const int64_t columns = a->time * (a->slices > 1 ? a->slices : 1);
    if (k == NAMI_ATTENTION_F)
        return (size_t)columns * sizeof(double);
    if (k == NAMI_ATTENTION_BI)
        return (size_t)((a->time + 2 * columns) * a->head_width) * sizeof(double);
    return 0;
}

static nami_status ref_prepare(nami_backend *b, nami_kernel k, const void *args,
                               const nami_prepared **out)
{
    const nami_query r = nami_query_of(k, args);
    nami_known *list = b->state;
    bool fresh;
    nami_known *known = nami_known_find(&list, &r, &fresh);
    b->state = list;
    known->prepared.scratch = ref_scratch(k, args);
    *out = &known->prepared;
    return NAMI_OK;
}

static nami_event ref_launch(nami_backend *b, int lane, const nami_prepared *p,
                             const void *args)
{
    (void)b, (void)lane;
    if (ref_kernels[p->kernel])
        ref_kernels[p->kernel](args);
    return 0;
}

static bool ref_done(nami_backend *b, nami_event e)
{
    (void)b, (void)e;
    return true;
}

const nami_backend_type nami_backend_ref = {
    .name = "ref",
    .open = ref_open,
    .close = ref_close,
    .alloc = ref_alloc,
    .free = ref_free,
    .copy = ref_copy,
    .zero = ref_zero,
    .prepare = ref_prepare,
    .launch = ref_launch,
    .done = ref_done,
};
