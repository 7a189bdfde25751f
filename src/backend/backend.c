/* SPDX-License-Identifier: MIT */
/* backend.c - the list of backends, and the calls that go through to the chosen one. */
#include "backend/backend.h"

#include "backend/list.h"
#include "backend/query.h"
#include "base/clock.h"

static const nami_backend_type *const backend_list[] = {
    &nami_backend_ref, &nami_backend_cpu, &nami_backend_emu};

enum { BACKENDS = sizeof backend_list / sizeof backend_list[0] };

static const char *const kernel_names[NAMI_KERNELS] = {
    [NAMI_LINEAR_PACK] = "linear_pack",
    [NAMI_LINEAR_F] = "linear_f",
    [NAMI_LINEAR_BI] = "linear_bi",
    [NAMI_LINEAR_BW] = "linear_bw",
    [NAMI_NORM_F] = "norm_f",
    [NAMI_NORM_BI] = "norm_bi",
    [NAMI_NORM_BW] = "norm_bw",
    [NAMI_GELU_F] = "gelu_f",
    [NAMI_GELU_BI] = "gelu_bi",
    [NAMI_ATTENTION_F] = "attention_f",
    [NAMI_ATTENTION_BI] = "attention_bi",
    [NAMI_ROTARY_F] = "rotary_f",
    [NAMI_ROTARY_BI] = "rotary_bi",
    [NAMI_SWIGLU_F] = "swiglu_f",
    [NAMI_SWIGLU_BI] = "swiglu_bi",
    [NAMI_DROPOUT_F] = "dropout_f",
    [NAMI_DROPOUT_BI] = "dropout_bi",
    [NAMI_EMBED_F] = "embed_f",
    [NAMI_EMBED_BW] = "embed_bw",
    [NAMI_GATHER_F] = "gather_f",
    [NAMI_GATHER_BI] = "gather_bi",
    [NAMI_XENT_F] = "xent_f",
    [NAMI_ADD] = "add",
    [NAMI_SCALE] = "scale",
    [NAMI_SQUARES] = "squares",
    [NAMI_ADAMW] = "adamw",
    [NAMI_ADAM] = "adam",
    [NAMI_SGD] = "sgd",
    [NAMI_RMSPROP] = "rmsprop",
    [NAMI_PREDICT] = "predict",
    [NAMI_DRIFT] = "drift",
    [NAMI_CONV_PACK] = "conv_pack",
    [NAMI_CONV_F] = "conv_f",
    [NAMI_CONV_BI] = "conv_bi",
    [NAMI_CONV_BW] = "conv_bw",
    [NAMI_BATCH_NORM_F] = "batch_norm_f",
    [NAMI_BATCH_NORM_BI] = "batch_norm_bi",
    [NAMI_BATCH_NORM_BW] = "batch_norm_bw",
    [NAMI_BATCH_NORM_F_OWN] = "batch_norm_f_own",
    [NAMI_BATCH_NORM_BI_OWN] = "batch_norm_bi_own",
    [NAMI_POOL_F] = "pool_f",
    [NAMI_POOL_BI] = "pool_bi",
    [NAMI_UNARY_F] = "unary_f",
    [NAMI_UNARY_BI] = "unary_bi",
    [NAMI_CONCAT_F] = "concat_f",
    [NAMI_CONCAT_BI] = "concat_bi",
    [NAMI_EXCITE_F] = "excite_f",
    [NAMI_EXCITE_BI] = "excite_bi",
    [NAMI_TURN] = "turn",
    [NAMI_CAST] = "cast",
    [NAMI_PREPEND_F] = "prepend_f",
    [NAMI_PREPEND_BI] = "prepend_bi",
    [NAMI_PREPEND_BW] = "prepend_bw",
    [NAMI_WAIT] = "wait",
};

const char *nami_kernel_name(nami_kernel k)
{
    return kernel_names[k];
}

static nami_status unknown(const char *name)
{
    nami_text known = {0};
    for (int i = 0; i < BACKENDS; i++)
        nami_text_add(&known, i ? ", %s" : "%s", backend_list[i]->name);
    const nami_status status =
        nami_fail(NAMI_EINPUT, "backend '%s' is unknown, expected one of %s", name,
                  nami_text_get(&known));
    nami_text_free(&known);
    return status;
}

nami_status nami_backend_open_with(const char *name, const nami_backend_config *c,
                                   nami_backend **out)
{
    *out = NULL;
    const nami_backend_type *type = NULL;
    for (int i = 0; i < BACKENDS; i++)
        if (!strcmp(backend_list[i]->name, name))
            type = backend_list[i];
    if (!type)
        return unknown(name);
    if (c->threads < 1)
        return nami_fail(NAMI_EINPUT, "backend %s: %d threads, expected at least 1",
                         name, c->threads);
    nami_backend *b = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *b);
    b->type = type;
    b->threads = c->threads;
    b->act = c->act;
    const nami_status status = type->open(b, c);
    if (status != NAMI_OK) {
        nami_free(b);
        return status;
    }
    *out = b;
    return NAMI_OK;
}

nami_status nami_backend_open(const char *name, int threads, nami_dtype act,
                              nami_backend **out)
{
    return nami_backend_open_with(
        name, &(nami_backend_config){.threads = threads, .act = act}, out);
}

void nami_backend_close(nami_backend *b)
{
    if (!b)
        return;
    b->type->close(b);
    nami_free(b);
}

void *nami_backend_alloc(nami_backend *b, nami_tag tag, size_t bytes)
{
    return b->type->alloc(b, tag, bytes);
}

void nami_backend_free(nami_backend *b, void *block)
{
    b->type->free(b, block);
}

nami_event nami_backend_copy(nami_backend *b, int lane, void *to, const void *from,
                             size_t bytes)
{
    return b->type->copy(b, lane, to, from, bytes);
}

nami_event nami_backend_zero(nami_backend *b, int lane, void *to, size_t bytes)
{
    return b->type->zero(b, lane, to, bytes);
}

nami_status nami_backend_prepare(nami_backend *b, nami_kernel k, const void *args,
                                 const nami_prepared **out)
{
    const nami_query r = nami_query_of(k, args);
    NAMI_TRY(nami_query_check(&r));
    return b->type->prepare(b, k, args, out);
}

nami_event nami_backend_launch(nami_backend *b, int lane, const nami_prepared *p,
                               const void *args)
{
    return b->type->launch(b, lane, p, args);
}

bool nami_backend_done(nami_backend *b, nami_event e)
{
    return e == 0 || b->type->done(b, e);
}

void nami_backend_wait(nami_backend *b, nami_event e)
{
    while (!nami_backend_done(b, e))
        nami_sleep(1e-6);
}

nami_event nami_backend_mark(nami_backend *b, int lane)
{
    return b->type->mark ? b->type->mark(b, lane) : 0;
}

double nami_backend_moment(nami_backend *b, nami_event mark)
{
    NAMI_CHECK(mark != 0);
    return b->type->moment(b, mark);
}

void nami_backend_after(nami_backend *b, int lane, nami_event mark)
{
    if (mark != 0 && b->type->after)
        b->type->after(b, lane, mark);
}
