/* SPDX-License-Identifier: MIT */
/* template.c - a pattern for a new operator: copy it, then list the new one in op.h and op/Makefile.inc.
 *
 * It computes GELU, so that the tests can prove it. The header says what in, out, param, saved and the
 * attributes (real, whole) mean, with shapes:
 *
 * in0 x [...] act; out y, the same shape.
 */
#include "op/common.h"

/* The argument struct of the kernels, for preparing (data pointers unset) and for running. */
static nami_arg_gelu template_args(const nami_bind *b)
{
    return (nami_arg_gelu){.act = b->in[0].dtype,
                           .count = nami_op_count(&b->in[0]),
                           .x = b->in[0].data,
                           .y = b->out.data,
                           .dy = b->dout.data,
                           .dx = b->din[0].data};
}

/* Choose a kernel for each pass; refuse here what cannot run, so that the passes need no checks. */
static nami_status template_prepare(nami_node *n, const nami_bind *shapes)
{
    const nami_arg_gelu a = template_args(shapes);
    NAMI_TRY(nami_op_prepare(n, shapes, NAMI_FORWARD, NAMI_GELU_F, &a));
    if (!shapes->train)
        return NAMI_OK;
    return nami_op_prepare(n, shapes, NAMI_BACKWARD_INPUT, NAMI_GELU_BI, &a);
}

/* Write out; write saved too when the operator has some. */
static void template_forward(const nami_node *n, const nami_bind *b)
{
    const nami_arg_gelu a = template_args(b);
    nami_op_launch(n, b, NAMI_FORWARD, &a);
}

/* Overwrite din; with .adds also add b->add. The values read must be those that .bi_reads names. */
static void template_backward_input(const nami_node *n, const nami_bind *b)
{
    const nami_arg_gelu a = template_args(b);
    nami_op_launch(n, b, NAMI_BACKWARD_INPUT, &a);
}

/* The table row: no backward_weight, since there are no parameters, and nothing is packed. */
const nami_op nami_op_template = {
    .name = "template",
    .bi_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
    .prepare = template_prepare,
    .forward = template_forward,
    .backward_input = template_backward_input,
};
