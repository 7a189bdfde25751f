/* SPDX-License-Identifier: MIT */
/* window.h - the window of an operator over images: its attributes and the extents of what it reads and makes. */
#ifndef NAMI_OP_WINDOW_H
#define NAMI_OP_WINDOW_H

#include "op/common.h"

/* The window of node n: attributes whole[0..5], extents of in0 and out [B,H,W,C]. Local. */
static inline nami_stencil nami_op_window(const nami_node *n, const nami_bind *b)
{
    const int64_t *x = b->in[0].shape.dim, *y = b->out.shape.dim;
    return (nami_stencil){.height = x[1],
                          .width = x[2],
                          .out_height = y[1],
                          .out_width = y[2],
                          .kernel_h = n->whole[0],
                          .kernel_w = n->whole[1],
                          .stride = n->whole[2],
                          .pad_h = n->whole[3],
                          .pad_w = n->whole[4],
                          .dilation = n->whole[5]};
}

#endif
