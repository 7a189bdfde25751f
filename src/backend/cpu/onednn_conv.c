/* SPDX-License-Identifier: MIT */
/* onednn_conv.c - convolutions by oneDNN.
 *
 * Images stay plain, channels fastest: no reorder between operators (docs/design/0012-images.md has the measurements).
 * Weights are packed once for each version of them. The weight gradient comes in the library's layout, in scratch, and
 * is added to the plain one by a reorder.
 */
#include "backend/cpu/onednn_conv.h"

#include "backend/cpu/onednn_version.h"
#include "base/memory.h"

enum { HANDLE_X, HANDLE_W, HANDLE_BIAS, HANDLE_Y, HANDLE_SCRATCH, HANDLES };

struct nami_convolution {
    nami_convolution_spec spec;
    /* reorder: plain weights to packed ones; BW: the other way, adding */
    dnnl_primitive_t run, reorder;
    dnnl_memory_t memory[HANDLES]; /* their data is set at each run; NULL: not used */
    dnnl_memory_t plain;           /* weights as the model has them */
    /* bytes of the library's scratch; of weights in its layout */
    size_t scratch, packed;
};

/* What planning needs and forgets. */
typedef struct plan {
    dnnl_engine_t engine;
    conv_shape shape;
    desc plain;
    dnnl_primitive_attr_t attr, adding;
    dnnl_primitive_desc_t hint, pd; /* hint: the forward pass */
} plan;

/* An image [batch,h,w,c], channels fastest; the library counts n, c, h, w. */
static dnnl_status_t desc_image(desc *d, dnnl_data_type_t type, int64_t batch,
                                int64_t h, int64_t w, int64_t c)
{
    const dnnl_dims_t dims = {batch, c, h, w}, strides = {h * w * c, 1, w * c, c};
    return desc_strided(d, 4, dims, type, strides);
}

/* Weights [O,I/G,KH,KW] with the groups as an axis of their own where there are several. */
static dnnl_status_t descs_weights(const nami_convolution_spec *s, plan *p)
{
    const int64_t g = s->groups, o = s->out / g, i = s->in / g, h = s->window.kernel_h,
                  w = s->window.kernel_w;
    const dnnl_dims_t dims = {g, o, i, h, w};
    const dnnl_dims_t strides = {o * i * h * w, i * h * w, h * w, w, 1};
    const int skip = g == 1, rank = 5 - skip;
    const bool gradient = s->pass == NAMI_CONV_BW; /* always f32 */
    const dnnl_data_type_t type = gradient ? dnnl_f32 : type_of(s->type);
    dnnl_status_t status =
        desc_strided(&p->plain, rank, dims + skip, dnnl_f32, strides + skip);
    if (status == dnnl_success)
        status = desc_any(&p->shape.weights, rank, dims + skip, type);
    return status;
}

/* Rows of few pixels leave the batch-reduce kernel's tiles mostly empty (f32, 512 channels of 4x4: 226 GFLOP/s against
 * 365 of the direct kernel, 2x2: 107 against 373). */
static bool is_narrow(const nami_convolution_spec *s)
{
    return s->type == NAMI_F32 && s->window.out_width < 8 &&
           s->window.kernel_h * s->window.kernel_w > 1;
}

static dnnl_status_t descs_make(const nami_convolution_spec *s, plan *p)
{
    const nami_stencil *w = &s->window;
    const dnnl_dims_t channels = {s->out}, one = {1};
    conv_shape *c = &p->shape;
    c->has_bias = s->bias;
    c->prefer = is_narrow(s) ? "jit:avx512_core" : NULL;
    for (int i = 0; i < 2; i++) {
        c->strides[i] = w->stride;
        c->dilates[i] = (i == 0 ? w->kernel_h : w->kernel_w) > 1 ? w->dilation - 1 : 0;
        c->padding[i] = i == 0 ? w->pad_h : w->pad_w;
    }
    dnnl_status_t status =
        desc_image(&c->src, type_of(s->type), s->batch, w->height, w->width, s->in);
    if (status == dnnl_success)
        status = desc_image(&c->dst, type_of(s->type), s->batch, w->out_height,
                            w->out_width, s->out);
    if (status == dnnl_success)
        status = desc_strided(&c->bias, 1, channels, dnnl_f32, one);
    return status == dnnl_success ? descs_weights(s, p) : status;
}

/* Scratchpads are ours, planned; the reorder of a gradient adds. */
static dnnl_status_t attrs_make(plan *p)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&p->attr);
    if (status == dnnl_success)
        status =
            dnnl_primitive_attr_set_scratchpad_mode(p->attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&p->adding);
    if (status == dnnl_success)
        status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success)
        status = add_sum(ops, dnnl_f32);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(p->adding, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    return status;
}

/* The pass, and for a backward one the forward pass the library wants to know; its weights have the pass's type. */
static dnnl_status_t pass_make(const nami_convolution_spec *s, plan *p)
{
    const conv_pass pass = s->pass == NAMI_CONV_F    ? CONV_F
                           : s->pass == NAMI_CONV_BI ? CONV_BI
                                                     : CONV_BW;
    if (pass == CONV_F)
        return conv_desc(&p->pd, p->engine, &p->shape, pass, NULL, p->attr);
    conv_shape forward = p->shape;
    plan other = {0};
    nami_convolution_spec with_type = *s;
    with_type.pass = NAMI_CONV_F;
    dnnl_status_t status = descs_weights(&with_type, &other);
    forward.weights = other.shape.weights;
    if (status == dnnl_success)
        status = conv_desc(&p->hint, p->engine, &forward, CONV_F, NULL, p->attr);
    if (status == dnnl_success)
        status = conv_desc(&p->pd, p->engine, &p->shape, pass, p->hint, p->attr);
    desc_free(&other.shape.weights);
    desc_free(&other.plain);
    return status;
}

static dnnl_status_t reorder_make(nami_convolution *c, const plan *p,
                                  const desc *packed)
{
    const bool adds = c->spec.pass == NAMI_CONV_BW;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status =
        adds ? reorder_desc(&pd, p->engine, packed, &p->plain, p->adding)
             : reorder_desc(&pd, p->engine, &p->plain, packed, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&c->reorder, pd);
    if (status == dnnl_success)
        status = memory_of(&c->plain, &p->plain, p->engine);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return status;
}

static dnnl_status_t memories_make(nami_convolution *c, const plan *p,
                                   const desc *weights, const desc *scratch)
{
    dnnl_status_t status = memory_of(&c->memory[HANDLE_X], &p->shape.src, p->engine);
    if (status == dnnl_success)
        status = memory_of(&c->memory[HANDLE_W], weights, p->engine);
    if (status == dnnl_success && c->spec.bias)
        status = memory_of(&c->memory[HANDLE_BIAS], &p->shape.bias, p->engine);
    if (status == dnnl_success)
        status = memory_of(&c->memory[HANDLE_Y], &p->shape.dst, p->engine);
    c->packed = desc_size(weights);
    c->scratch = desc_size(scratch);
    if (status == dnnl_success && c->scratch)
        status = memory_of(&c->memory[HANDLE_SCRATCH], scratch, p->engine);
    return status;
}

/* All objects that follow from the descriptor of the pass. */
static dnnl_status_t objects_make(nami_convolution *c, const plan *p)
{
    desc weights =
        desc_of(p->pd, c->spec.pass == NAMI_CONV_BW ? dnnl_query_diff_weights_md
                                                    : dnnl_query_weights_md);
    desc scratch = desc_of(p->pd, dnnl_query_scratchpad_md);
    dnnl_status_t status = dnnl_primitive_create(&c->run, p->pd);
    if (status == dnnl_success)
        status = memories_make(c, p, &weights, &scratch);
    if (status == dnnl_success)
        status = reorder_make(c, p, &weights);
    desc_free(&weights);
    desc_free(&scratch);
    return status;
}

static void plan_free(plan *p)
{
    if (p->pd)
        dnnl_primitive_desc_destroy(p->pd);
    if (p->hint)
        dnnl_primitive_desc_destroy(p->hint);
    if (p->attr)
        dnnl_primitive_attr_destroy(p->attr);
    if (p->adding)
        dnnl_primitive_attr_destroy(p->adding);
    desc_free(&p->plain);
    desc_free(&p->shape.src);
    desc_free(&p->shape.weights);
    desc_free(&p->shape.bias);
    desc_free(&p->shape.dst);
}

static dnnl_status_t convolution_make(nami_convolution *c, plan *p)
{
    dnnl_status_t status = descs_make(&c->spec, p);
    if (status == dnnl_success)
        status = attrs_make(p);
    if (status == dnnl_success)
        status = pass_make(&c->spec, p);
    return status == dnnl_success ? objects_make(c, p) : status;
}

nami_status nami_convolution_new(const nami_onednn *d,
                                 const nami_convolution_spec *spec,
                                 nami_convolution **out)
{
    nami_convolution *c = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *c);
    plan p = {.engine = d->engine};
    c->spec = *spec;
    const dnnl_status_t status = convolution_make(c, &p);
    plan_free(&p);
    *out = c;
    if (status == dnnl_success)
        return NAMI_OK;
    nami_convolution_free(c);
    *out = NULL;
    return nami_fail(
        NAMI_EENV,
        "oneDNN has no convolution of %lld by %lld from %lld to %lld channels "
        "of type %s on this processor (status %d)",
        (long long)spec->window.kernel_h, (long long)spec->window.kernel_w,
        (long long)spec->in, (long long)spec->out, nami_dtype_name(spec->type),
        (int)status);
}

void nami_convolution_free(nami_convolution *c)
{
    if (!c)
        return;
    for (int i = 0; i < HANDLES; i++)
        if (c->memory[i])
            dnnl_memory_destroy(c->memory[i]);
    if (c->plain)
        dnnl_memory_destroy(c->plain);
    if (c->run)
        dnnl_primitive_destroy(c->run);
    if (c->reorder)
        dnnl_primitive_destroy(c->reorder);
    nami_free(c);
}

size_t nami_convolution_scratch(const nami_convolution *c)
{
    return nami_aligned(c->scratch) + (c->spec.pass == NAMI_CONV_BW ? c->packed : 0);
}

size_t nami_convolution_packed(const nami_convolution *c)
{
    return c->spec.pass == NAMI_CONV_BW ? 0 : c->packed;
}

static void set_data(dnnl_memory_t m, const void *data)
{
    union {
        const void *from;
        void *to;
    } u = {.from = data}; /* the library has one kind of pointer */
    if (m)
        NAMI_CHECK(dnnl_memory_set_data_handle(m, u.to) == dnnl_success);
}

/* Reorder between the weights of the model and those of the library. */
static void reorder(const nami_onednn *d, const nami_convolution *c)
{
    const bool adds = c->spec.pass == NAMI_CONV_BW;
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, adds ? c->memory[HANDLE_W] : c->plain},
        {DNNL_ARG_TO, adds ? c->plain : c->memory[HANDLE_W]}};
    NAMI_CHECK(dnnl_primitive_execute(c->reorder, d->stream, 2, args) == dnnl_success);
    NAMI_CHECK(dnnl_stream_wait(d->stream) == dnnl_success);
}

void nami_convolution_pack(const nami_onednn *d, nami_convolution *c, const void *w,
                           void *packed)
{
    set_data(c->plain, w);
    set_data(c->memory[HANDLE_W], packed);
    reorder(d, c);
}

void nami_convolution_run(const nami_onednn *d, nami_convolution *c, const void *x,
                          const void *weights, const void *bias, const void *y,
                          void *scratch)
{
    static const int role[3][HANDLES] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST,
         DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DIFF_DST,
         DNNL_ARG_SCRATCHPAD},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DIFF_DST,
         DNNL_ARG_SCRATCHPAD}};
    const int pass = (int)(c->spec.pass - NAMI_CONV_F);
    const bool gradient = c->spec.pass == NAMI_CONV_BW;
    const void *const data[HANDLES] = {
        x, gradient ? (char *)scratch + nami_aligned(c->scratch) : weights, bias, y,
        scratch};
    dnnl_exec_arg_t args[HANDLES];
    int count = 0;
    for (int i = 0; i < HANDLES; i++)
        if (c->memory[i]) {
            set_data(c->memory[i], data[i]);
            args[count++] = (dnnl_exec_arg_t){role[pass][i], c->memory[i]};
        }
    NAMI_CHECK(dnnl_primitive_execute(c->run, d->stream, count, args) == dnnl_success);
    NAMI_CHECK(dnnl_stream_wait(d->stream) == dnnl_success);
    if (!gradient)
        return;
    set_data(c->plain, weights);
    reorder(d, c);
}
