/* SPDX-License-Identifier: MIT */
/* onednn_version.h - what differs between versions 2.6 and 3 of oneDNN: descriptors are values in 2, objects in 3. */
#ifndef NAMI_BACKEND_CPU_ONEDNN_VERSION_H
#define NAMI_BACKEND_CPU_ONEDNN_VERSION_H

#include <stdbool.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#include "tensor/tensor.h"

typedef dnnl_memory_desc_t desc;

/* A convolution for conv_desc; the same descriptors stand for values and for their gradients. */
typedef struct conv_shape {
    desc src, weights, bias, dst;
    bool has_bias;
    dnnl_dims_t strides, dilates, padding;
    /* take the first implementation whose name begins so, if there is one; NULL: the first */
    const char *prefer;
} conv_shape;

/* How blocks of a matrix lie: padded sizes, elements between blocks, and the blocks inside. */
typedef struct desc_blocks {
    dnnl_dim_t padded[2], stride[2];
    int count; /* of inner blocks */
    dnnl_dim_t inner[3], axis[3];
} desc_blocks;

typedef enum conv_pass { CONV_F, CONV_BI, CONV_BW } conv_pass;

/* Whether the name of the implementation begins with `prefix`. */
static inline bool is_named(const_dnnl_primitive_desc_t pd, const char *prefix)
{
    const char *name = NULL;
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) ==
               dnnl_success &&
           strncmp(name, prefix, strlen(prefix)) == 0;
}

#if DNNL_VERSION_MAJOR >= 3
static inline dnnl_status_t desc_strided(desc *d, int rank, const dnnl_dims_t dims,
                                         dnnl_data_type_t type,
                                         const dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(d, rank, dims, type, strides);
}

static inline dnnl_status_t desc_any(desc *d, int rank, const dnnl_dims_t dims,
                                     dnnl_data_type_t type)
{
    return dnnl_memory_desc_create_with_tag(d, rank, dims, type, dnnl_format_tag_any);
}

static inline void desc_free(desc *d)
{
    if (*d)
        dnnl_memory_desc_destroy(*d);
}

static inline dnnl_status_t memory_of(dnnl_memory_t *out, const desc *d,
                                      dnnl_engine_t e)
{
    return dnnl_memory_create(out, *d, e, DNNL_MEMORY_NONE);
}

static inline size_t desc_size(const desc *d)
{
    return dnnl_memory_desc_get_size(*d);
}

static inline desc desc_of(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    desc d = NULL; /* a copy, since the query's answer belongs to pd */
    if (dnnl_memory_desc_clone(&d, dnnl_primitive_desc_query_md(pd, what, 0)) !=
        dnnl_success)
        return NULL;
    return d;
}

static inline bool blocks_of(const desc *d, desc_blocks *out)
{
    const dnnl_dims_t *padded, *stride, *inner, *axis;
    if (dnnl_memory_desc_query(*d, dnnl_query_inner_nblks_s32, &out->count) ||
        dnnl_memory_desc_query(*d, dnnl_query_padded_dims, (void *)&padded) ||
        dnnl_memory_desc_query(*d, dnnl_query_strides, (void *)&stride) ||
        dnnl_memory_desc_query(*d, dnnl_query_inner_blks, (void *)&inner) ||
        dnnl_memory_desc_query(*d, dnnl_query_inner_idxs, (void *)&axis))
        return false;
    for (int i = 0; i < 2; i++) {
        out->padded[i] = (*padded)[i];
        out->stride[i] = (*stride)[i];
    }
    for (int i = 0; i < out->count && i < 3; i++) {
        out->inner[i] = (*inner)[i];
        out->axis[i] = (*axis)[i];
    }
    return true;
}

static inline dnnl_status_t add_sum(dnnl_post_ops_t ops, dnnl_data_type_t type)
{
    return dnnl_post_ops_append_sum(ops, 1, 0, type);
}

static inline dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                        const desc *a, const desc *b, const desc *bias,
                                        const desc *c, const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, e, *a, *b, bias ? *bias : NULL, *c,
                                             attr);
}

static inline dnnl_status_t reorder_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                         const desc *from, const desc *to,
                                         const_dnnl_primitive_attr_t attr)
{
    return dnnl_reorder_primitive_desc_create(pd, *from, e, *to, e, attr);
}

static inline dnnl_status_t conv_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                         const conv_shape *c,
                                         const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(
        pd, e, dnnl_forward_training, dnnl_convolution_direct, c->src, c->weights,
        c->has_bias ? c->bias : NULL, c->dst, c->strides, c->dilates, c->padding,
        c->padding, attr);
}

static inline dnnl_status_t conv_preferred(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                           const conv_shape *c,
                                           const_dnnl_primitive_attr_t attr)
{
    dnnl_status_t status = conv_forward(pd, e, c, attr);
    if (status != dnnl_success || !c->prefer)
        return status;
    while (!is_named(*pd, c->prefer))
        if (dnnl_primitive_desc_next_impl(*pd) != dnnl_success) {
            dnnl_primitive_desc_destroy(*pd);
            return conv_forward(pd, e, c, attr);
        }
    return dnnl_success;
}

static inline dnnl_status_t conv_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                      const conv_shape *c, conv_pass pass,
                                      const_dnnl_primitive_desc_t hint,
                                      const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    if (pass == CONV_F)
        return conv_preferred(pd, e, c, attr);
    if (pass == CONV_BI)
        return dnnl_convolution_backward_data_primitive_desc_create(
            pd, e, direct, c->src, c->weights, c->dst, c->strides, c->dilates,
            c->padding, c->padding, hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        pd, e, direct, c->src, c->weights, NULL, c->dst, c->strides, c->dilates,
        c->padding, c->padding, hint, attr);
}
#else
static inline dnnl_status_t desc_strided(desc *d, int rank, const dnnl_dims_t dims,
                                         dnnl_data_type_t type,
                                         const dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(d, rank, dims, type, strides);
}

static inline dnnl_status_t desc_any(desc *d, int rank, const dnnl_dims_t dims,
                                     dnnl_data_type_t type)
{
    return dnnl_memory_desc_init_by_tag(d, rank, dims, type, dnnl_format_tag_any);
}

static inline void desc_free(desc *d)
{
    (void)d;
}

static inline dnnl_status_t memory_of(dnnl_memory_t *out, const desc *d,
                                      dnnl_engine_t e)
{
    return dnnl_memory_create(out, d, e, DNNL_MEMORY_NONE);
}

static inline size_t desc_size(const desc *d)
{
    return dnnl_memory_desc_get_size(d);
}

static inline desc desc_of(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return *dnnl_primitive_desc_query_md(pd, what, 0);
}

static inline bool blocks_of(const desc *d, desc_blocks *out)
{
    const dnnl_blocking_desc_t *b = &d->format_desc.blocking;
    if (d->format_kind != dnnl_blocked)
        return false;
    out->count = b->inner_nblks;
    for (int i = 0; i < 2; i++) {
        out->padded[i] = d->padded_dims[i];
        out->stride[i] = b->strides[i];
    }
    for (int i = 0; i < out->count && i < 3; i++) {
        out->inner[i] = b->inner_blks[i];
        out->axis[i] = b->inner_idxs[i];
    }
    return true;
}

static inline dnnl_status_t add_sum(dnnl_post_ops_t ops, dnnl_data_type_t type)
{
    (void)type;
    return dnnl_post_ops_append_sum(ops, 1);
}

static inline dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                        const desc *a, const desc *b, const desc *bias,
                                        const desc *c, const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t m;
    const dnnl_status_t status = dnnl_matmul_desc_init(&m, a, b, bias, c);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &m, attr, e, NULL)
                                  : status;
}

static inline dnnl_status_t reorder_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                         const desc *from, const desc *to,
                                         const_dnnl_primitive_attr_t attr)
{
    return dnnl_reorder_primitive_desc_create(pd, from, e, to, e, attr);
}

/* The preferred implementation of `d`, NULL when there is none. */
static inline dnnl_primitive_desc_t preferred(const dnnl_convolution_desc_t *d,
                                              dnnl_engine_t e, const char *prefer,
                                              const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_iterator_t i = NULL;
    dnnl_primitive_desc_t found = NULL;
    if (dnnl_primitive_desc_iterator_create(&i, d, attr, e, NULL) != dnnl_success)
        return NULL;
    do {
        if (found)
            dnnl_primitive_desc_destroy(found);
        found = dnnl_primitive_desc_iterator_fetch(i);
        if (found && is_named(found, prefer))
            break;
    } while (dnnl_primitive_desc_iterator_next(i) == dnnl_success);
    if (found && !is_named(found, prefer)) {
        dnnl_primitive_desc_destroy(found);
        found = NULL;
    }
    dnnl_primitive_desc_iterator_destroy(i);
    return found;
}

static inline dnnl_status_t conv_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                      const conv_shape *c, conv_pass pass,
                                      const_dnnl_primitive_desc_t hint,
                                      const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t d;
    dnnl_status_t status;
    if (pass == CONV_F)
        status = dnnl_dilated_convolution_forward_desc_init(
            &d, dnnl_forward_training, direct, &c->src, &c->weights,
            c->has_bias ? &c->bias : NULL, &c->dst, c->strides, c->dilates, c->padding,
            c->padding);
    else if (pass == CONV_BI)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &d, direct, &c->src, &c->weights, &c->dst, c->strides, c->dilates,
            c->padding, c->padding);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, direct, &c->src, &c->weights, NULL, &c->dst, c->strides, c->dilates,
            c->padding, c->padding);
    if (status == dnnl_success && pass == CONV_F && c->prefer &&
        (*pd = preferred(&d, e, c->prefer, attr)))
        return dnnl_success;
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, e, hint)
                                  : status;
}
#endif

static inline dnnl_data_type_t type_of(nami_dtype d)
{
    return d == NAMI_BF16 ? dnnl_bf16 : dnnl_f32;
}

#endif
