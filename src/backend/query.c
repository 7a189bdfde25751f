/* SPDX-License-Identifier: MIT */
/* query.c - what a prepare call asks for, as a value. */
#include "backend/query.h"

#include <string.h>

static nami_query linear_query(const nami_arg_linear *a)
{
    return (nami_query){.type = a->act,
                        .dim = {a->n, a->in, a->out},
                        .flags = (a->b ? 1 : 0) | (a->add ? 2 : 0) | (a->db ? 4 : 0)};
}

static nami_query attention_query(const nami_arg_attention *a)
{
    return (nami_query){
        .type = a->act,
        .dim = {a->batch, a->time, a->heads, a->head_width, nami_attention_groups(a)},
        .flags = a->whole        ? NAMI_QUERY_WHOLE
                 : a->slices > 1 ? a->slices
                                 : 0,
        .real = a->dropout};
}

static nami_query norm_query(const nami_arg_norm *a)
{
    return (nami_query){.type = a->act,
                        .dim = {a->n, a->width},
                        .flags = (a->add ? 2 : 0) | (a->rms ? 8 : 0)};
}

/* Rotary positions and SwiGLU: all shapes are those of x. */
static nami_query llama_query(nami_kernel k, const void *args)
{
    const nami_arg_rotary *r = args;
    const nami_arg_swiglu *s = args;
    if (k == NAMI_SWIGLU_F || k == NAMI_SWIGLU_BI)
        return (nami_query){.type = s->act, .dim = {s->n, 2 * s->width}};
    return (nami_query){.type = r->act,
                        .dim = {r->batch, r->time, r->heads * r->width + r->rest},
                        .flags = 16 * r->width};
}

static nami_query dropout_query(const nami_arg_dropout *a)
{
    return (nami_query){.type = a->act,
                        .dim = {a->batch, a->count},
                        .flags = (a->add ? 2 : 0) | (a->whole ? 8 : 0),
                        .real = a->dropout};
}

static nami_query embed_query(const nami_arg_embed *a)
{
    return (nami_query){.type = a->act,
                        .dim = {a->batch, a->time, a->width, a->vocabulary},
                        .flags = a->type ? 8 : 0};
}

static nami_query gather_query(const nami_arg_gather *a)
{
    return (nami_query){.type = a->act,
                        .dim = {a->batch, a->time, a->width, a->rows},
                        .flags = a->add ? 2 : 0};
}

static nami_query xent_query(const nami_arg_xent *a)
{
    return (nami_query){.type = a->act,
                        .dim = {a->batch, a->time, a->vocabulary},
                        .flags = a->gradient ? 1 : 0};
}

static nami_query conv_query(const nami_arg_conv *a)
{
    const nami_stencil *w = &a->window;
    return (nami_query){.type = a->act,
                        .dim = {a->batch, a->in, a->out, a->groups, w->height, w->width,
                                w->out_height, w->out_width, w->kernel_h, w->kernel_w,
                                w->stride, w->pad_h, w->pad_w, w->dilation},
                        .flags = (a->b ? 1 : 0) | (a->db ? 4 : 0)};
}

static nami_query pool_query(const nami_arg_pool *a)
{
    const nami_stencil *w = &a->window;
    return (nami_query){.type = a->act,
                        .dim = {a->batch, a->channels, w->height, w->width,
                                w->out_height, w->out_width, w->kernel_h, w->kernel_w,
                                w->stride, w->pad_h, w->pad_w, w->dilation},
                        .flags = (a->max ? 8 : 0) | (a->count_padding ? 16 : 0)};
}

static nami_query batch_norm_query(const nami_arg_batch_norm *a)
{
    return (nami_query){.type = a->act,
                        .dim = {a->n, a->width},
                        .flags = (a->relu ? 8 : 0) | (a->running ? 16 : 0)};
}

/* Kernels of images beside convolution, batch norm and pooling. */
static nami_query image_query(nami_kernel k, const void *args)
{
    const nami_arg_unary *u = args;
    const nami_arg_concat *c = args;
    const nami_arg_excite *e = args;
    const nami_arg_turn *t = args;
    const nami_arg_prepend *p = args;
    if (k == NAMI_PREPEND_F || k == NAMI_PREPEND_BI || k == NAMI_PREPEND_BW)
        return (nami_query){.type = p->act, .dim = {p->batch, p->time, p->width}};
    if (k == NAMI_UNARY_F || k == NAMI_UNARY_BI)
        return (nami_query){
            .type = u->act, .dim = {u->count}, .flags = 8 * (int64_t)u->function};
    if (k == NAMI_CONCAT_F || k == NAMI_CONCAT_BI)
        return (nami_query){.type = c->act, .dim = {c->n, c->width_a + c->width_b}};
    if (k == NAMI_EXCITE_F || k == NAMI_EXCITE_BI)
        return (nami_query){.type = e->act,
                            .dim = {e->batch, e->positions, e->channels}};
    return (nami_query){.type = t->act, .dim = {t->batch, t->rows, t->columns}};
}

static nami_query whole_query(nami_kernel k, const void *args)
{
    const nami_arg_gelu *g = args;
    const nami_arg_vector *v = args;
    const nami_arg_update *u = args;
    const nami_arg_predict *p = args;
    const nami_arg_drift *d = args;
    const nami_arg_wait *w = args;
    if (k == NAMI_PREDICT)
        return (nami_query){.type = p->wide, .dim = {p->count}, .flags = p->v ? 1 : 0};
    if (k == NAMI_DRIFT)
        return (nami_query){.type = d->wide, .dim = {d->count}};
    if (k == NAMI_WAIT)
        return (nami_query){.type = w->act, .dim = {w->count}};
    if (k == NAMI_GELU_F || k == NAMI_GELU_BI)
        return (nami_query){.type = g->act, .dim = {g->count}};
    if (k == NAMI_ADAMW || k == NAMI_ADAM || k == NAMI_SGD || k == NAMI_RMSPROP)
        return (nami_query){.type = u->wide,
                            .dim = {u->count},
                            .flags = (u->m ? 1 : 0) | (u->centre ? 2 : 0)};
    return (nami_query){.type = v->wide, .dim = {v->count}};
}

static nami_query query_body(nami_kernel k, const void *args)
{
    switch (k) {
    case NAMI_LINEAR_PACK:
    case NAMI_LINEAR_F:
    case NAMI_LINEAR_BI:
    case NAMI_LINEAR_BW:
        return linear_query(args);
    case NAMI_NORM_F:
    case NAMI_NORM_BI:
    case NAMI_NORM_BW:
        return norm_query(args);
    case NAMI_ATTENTION_F:
    case NAMI_ATTENTION_BI:
        return attention_query(args);
    case NAMI_ROTARY_F:
    case NAMI_ROTARY_BI:
    case NAMI_SWIGLU_F:
    case NAMI_SWIGLU_BI:
        return llama_query(k, args);
    case NAMI_DROPOUT_F:
    case NAMI_DROPOUT_BI:
        return dropout_query(args);
    case NAMI_EMBED_F:
    case NAMI_EMBED_BW:
        return embed_query(args);
    case NAMI_GATHER_F:
    case NAMI_GATHER_BI:
        return gather_query(args);
    case NAMI_XENT_F:
        return xent_query(args);
    case NAMI_CONV_PACK:
    case NAMI_CONV_F:
    case NAMI_CONV_BI:
    case NAMI_CONV_BW:
        return conv_query(args);
    case NAMI_BATCH_NORM_F:
    case NAMI_BATCH_NORM_BI:
    case NAMI_BATCH_NORM_BW:
    case NAMI_BATCH_NORM_F_OWN:
    case NAMI_BATCH_NORM_BI_OWN:
        return batch_norm_query(args);
    case NAMI_POOL_F:
    case NAMI_POOL_BI:
        return pool_query(args);
    case NAMI_UNARY_F:
    case NAMI_UNARY_BI:
    case NAMI_CONCAT_F:
    case NAMI_CONCAT_BI:
    case NAMI_EXCITE_F:
    case NAMI_EXCITE_BI:
    case NAMI_TURN:
    case NAMI_CAST:
    case NAMI_PREPEND_F:
    case NAMI_PREPEND_BI:
    case NAMI_PREPEND_BW:
        return image_query(k, args);
    default:
        return whole_query(k, args);
    }
}

nami_query nami_query_of(nami_kernel k, const void *args)
{
    nami_query r = query_body(k, args);
    r.kernel = k;
    return r;
}

nami_status nami_query_check(const nami_query *r)
{
    for (int i = 0; i < NAMI_QUERY_DIMS; i++)
        if (r->dim[i] < 0)
            return nami_fail(NAMI_EBUG, "%s: an extent is negative",
                             nami_kernel_name((nami_kernel)r->kernel));
    if (!(r->real >= 0 && r->real <= 0.9999))
        return nami_fail(NAMI_EINPUT, "dropout is %g, expected 0 to 0.9999", r->real);
    return NAMI_OK;
}

static bool equal(const nami_query *a, const nami_query *b)
{
    for (int i = 0; i < NAMI_QUERY_DIMS; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return a->kernel == b->kernel && a->type == b->type && a->flags == b->flags &&
           a->real == b->real;
}

nami_known *nami_known_find(nami_known **list, const nami_query *r, bool *fresh)
{
    *fresh = false;
    for (nami_known *k = *list; k; k = k->next)
        if (equal(&k->query, r))
            return k;
    nami_known *k = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *k);
    k->query = *r;
    k->prepared.kernel = (nami_kernel)r->kernel;
    nami_query_cost(r, &k->prepared);
    k->next = *list;
    *list = k;
    *fresh = true;
    return k;
}

void nami_known_free(nami_known **list)
{
    while (*list) {
        nami_known *k = *list;
        *list = k->next;
        nami_free(k);
    }
}
