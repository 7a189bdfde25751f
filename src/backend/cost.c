/* SPDX-License-Identifier: MIT */
/* cost.c - operations and bytes of a launch, by its kernel and shape. */
#include "backend/query.h"

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
    return heads * time *
           (r->flags == NAMI_QUERY_WHOLE ? time : (time * slices + 1) / 2);
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
