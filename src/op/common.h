/* SPDX-License-Identifier: MIT */
/* common.h - what every operator's file uses. */
#ifndef NAMI_OP_COMMON_H
#define NAMI_OP_COMMON_H

#include "op/op.h"

/* Prepare kernel `k` as pass `pass` of node n. Local. */
static inline nami_status nami_op_prepare(nami_node *n, const nami_bind *b,
                                          nami_pass pass, nami_kernel k,
                                          const void *args)
{
    return nami_backend_prepare(b->backend, k, args, &n->prepared[pass]);
}

/* Launch the kernel of pass `pass`. Local. */
static inline void nami_op_launch(const nami_node *n, const nami_bind *b,
                                  nami_pass pass, const void *args)
{
    nami_backend_launch(b->backend, b->lane, n->prepared[pass], args);
}

/* The random stream of this node in this step. Local. */
static inline uint64_t nami_op_key(const nami_node *n, const nami_bind *b)
{
    return nami_mix(nami_mix(b->seed, n->key), (uint64_t)b->step);
}

/* Elements of a tensor. Local. */
static inline int64_t nami_op_count(const nami_tensor *t)
{
    return nami_shape_count(&t->shape);
}

/* Extent of the last axis. Local. */
static inline int64_t nami_op_last(const nami_tensor *t)
{
    return t->shape.dim[t->shape.rank - 1];
}

#endif
