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

/* Flags of attention: token slices, or that every row sees all. */
enum { WHOLE = -1 };

static nami_query attention_query(const nami_arg_attention *a)
{
    return (nami_query){
        .type = a->act,
        .dim = {a->batch, a->time, a->heads, a->head_width, nami_attention_groups(a)},
        .flags = a->whole        ? WHOLE
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

static bool is_conv(const nami_query *r)
{
    return r->kernel == NAMI_CONV_PACK || r->kernel == NAMI_CONV_F ||
           r->kernel == NAMI_CONV_BI || r->kernel == NAMI_CONV_BW;
}

static bool is_pool(const nami_query *r)
{
    return r->kernel == NAMI_POOL_F || r->kernel == NAMI_POOL_BI;
}

/* Weights of a convolution. */
static double conv_weights(const int64_t *d)
{
    return (double)d[1] * (double)d[2] / (double)d[3] * (double)d[8] * (double)d[9];
}

/* Elements of the input and the output of a convolution. */
static double conv_elements(const int64_t *d)
{
    return (double)d[0] * ((double)d[1] * (double)d[4] * (double)d[5] +
                           (double)d[2] * (double)d[6] * (double)d[7]);
}

/* Weights of attention that are not masked: the lower triangle, of slices their mean, or all, whatever the lengths. */
static double attention_pairs(const nami_query *r)
{
    const double heads = (double)(r->dim[0] * r->dim[2]), time = (double)r->dim[1];
    const double slices = r->flags > 1 ? (double)r->flags : 1;
    return heads * time * (r->flags == WHOLE ? time : (time * slices + 1) / 2);
}

static double kernel_flops(const nami_query *r, double n)
{
    const int64_t *d = r->dim;
    switch ((nami_kernel)r->kernel) {
    case NAMI_LINEAR_F:
    case NAMI_LINEAR_BI:
    case NAMI_LINEAR_BW:
        return 2.0 * (double)d[0] * (double)d[1] * (double)d[2];
    case NAMI_ATTENTION_F: /* two products */
        return 4.0 * attention_pairs(r) * (double)d[3];
    case NAMI_ATTENTION_BI: /* five */
        return 10.0 * attention_pairs(r) * (double)d[3];
    case NAMI_CONV_F:
    case NAMI_CONV_BI:
    case NAMI_CONV_BW:
        return 2.0 * conv_weights(d) * (double)d[0] * (double)d[6] * (double)d[7];
    case NAMI_POOL_F:
    case NAMI_POOL_BI: /* one operation for each element of a window */
        return (double)d[0] * (double)d[1] * (double)(d[4] * d[5]) *
               (double)(d[6] * d[7]);
    case NAMI_LINEAR_PACK:
    case NAMI_CONV_PACK:
    case NAMI_CONCAT_F:
    case NAMI_CONCAT_BI:
    case NAMI_TURN:
    case NAMI_CAST:
    case NAMI_PREPEND_F:
    case NAMI_PREPEND_BI:
    case NAMI_PREPEND_BW:
    case NAMI_EMBED_F:
    case NAMI_EMBED_BW:
    case NAMI_GATHER_F:
    case NAMI_GATHER_BI:
    case NAMI_BATCH_NORM_F_OWN: /* counted with F and BI */
    case NAMI_BATCH_NORM_BI_OWN:
        return 0;
    default: /* counted as one operation an element */
        return n;
    }
}

static double kernel_bytes(const nami_query *r, double n)
{
    const int64_t *d = r->dim;
    const double size = (double)nami_dtype_size((nami_dtype)r->type);
    const double wide = r->type == NAMI_F64 ? 8 : 4;
    const double x = (double)d[0] * (double)d[1], w = (double)d[1] * (double)d[2];
    switch ((nami_kernel)r->kernel) {
    case NAMI_LINEAR_PACK:
        return w * (wide + 2 * size);
    case NAMI_LINEAR_F:
    case NAMI_LINEAR_BI:
        return (x + w + (double)d[0] * (double)d[2]) * size;
    case NAMI_LINEAR_BW:
        return (x + (double)d[0] * (double)d[2]) * size + 2 * w * wide;
    case NAMI_CONV_PACK:
        return conv_weights(d) * (wide + 2 * size);
    case NAMI_CONV_F:
    case NAMI_CONV_BI:
        return (conv_elements(d) + conv_weights(d)) * size;
    case NAMI_CONV_BW:
        return conv_elements(d) * size + 2 * conv_weights(d) * wide;
    case NAMI_POOL_F:
    case NAMI_POOL_BI:
        return (double)d[0] * (double)d[1] * (double)(d[2] * d[3] + d[4] * d[5]) * size;
    case NAMI_BATCH_NORM_F_OWN:
        return n * size;
    case NAMI_BATCH_NORM_F:
    case NAMI_BATCH_NORM_BW:
    case NAMI_BATCH_NORM_BI_OWN:
    case NAMI_UNARY_F:
        return 2 * n * size;
    case NAMI_BATCH_NORM_BI:
    case NAMI_UNARY_BI:
    case NAMI_EXCITE_BI:
        return 3 * n * size;
    case NAMI_ATTENTION_F: /* qkv and y */
        return (2 + 2 * (double)d[4] / (double)d[2]) * n * size;
    case NAMI_ATTENTION_BI: /* these and their gradients */
        return (4 + 4 * (double)d[4] / (double)d[2]) * n * size;
    case NAMI_SWIGLU_F: /* x, and y of half its size */
        return 1.5 * n * size;
    case NAMI_SWIGLU_BI:
        return 2.5 * n * size;
    case NAMI_ROTARY_F:
    case NAMI_ROTARY_BI:
    case NAMI_NORM_F:
    case NAMI_NORM_BW:
    case NAMI_GELU_F:
        return 2 * n * size;
    case NAMI_ADD:
        return 3 * n * size;
    case NAMI_GATHER_F:
        return 2 * (double)(d[0] * d[3] * d[2]) * size;
    case NAMI_SQUARES:
        return n * size;
    case NAMI_ADAMW:
    case NAMI_ADAM:
        return 7 * n * size;
    case NAMI_SGD:
        return 5 * n * size;
    case NAMI_PREDICT:
        return (3 + (r->flags & 1)) * n * size;
    case NAMI_DRIFT:
        return 4 * n * size;
    case NAMI_RMSPROP:
        return (5 + (r->flags & 1 ? 2 : 0) + (r->flags & 2 ? 2 : 0)) * n * size;
    default:
        return (r->flags & 2 ? 3 : 2) * n * size;
    }
}

void nami_query_cost(const nami_query *r, nami_prepared *out)
{
    double n = 1; /* elements of the main operand */
    const bool embed = r->kernel == NAMI_EMBED_F || r->kernel == NAMI_EMBED_BW;
    const bool gather = r->kernel == NAMI_GATHER_F || r->kernel == NAMI_GATHER_BI;
    const bool attention =
        r->kernel == NAMI_ATTENTION_F || r->kernel == NAMI_ATTENTION_BI;
    const int dims = embed || gather            ? 3
                     : attention                ? 4
                     : is_conv(r) || is_pool(r) ? 0
                                                : NAMI_QUERY_DIMS;
    for (int i = 0; i < dims; i++)
        if (r->dim[i] > 0)
            n *= (double)r->dim[i];
    out->flops = kernel_flops(r, n);
    out->bytes = kernel_bytes(r, n);
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
