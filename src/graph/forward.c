/* SPDX-License-Identifier: MIT */
/* forward.c - the launches of a forward pass. */
#include "graph/plan.h"

int nami_plan_emit_own(nami_graph *g, nami_walk_kind w, int node, nami_pass own)
{
    const nami_node *n = &g->node[node];
    const int64_t count = n->op->shared ? n->op->shared(n, &g->shape[node]) : 0;
    if (count == 0)
        return -1;
    nami_plan_launch(g, w, node, own)->shared = count;
    const int buffer =
        nami_plan_buffer(g, (size_t)count * sizeof(double), NAMI_AT_NONE, 0);
    nami_plan_touch(g, w, NAMI_SLOT_SHARED, buffer);
    return buffer;
}

static void touch_in(nami_graph *g, nami_walk_kind w, const nami_node *n,
                     const int *vbuf)
{
    for (int k = 0; k < NAMI_OP_IN; k++)
        if (n->in[k] >= 0)
            nami_plan_touch(g, w, NAMI_SLOT_IN0 + k, vbuf[n->in[k]]);
}

static void touch_scratch(nami_graph *g, nami_walk_kind w)
{
    nami_plan_touch(g, w, NAMI_SLOT_SCRATCH, nami_plan_buffer(g, 0, NAMI_AT_NONE, 0));
}

void nami_plan_emit_forward(nami_graph *g, nami_walk_kind w, int node, const int *vbuf,
                            int loss)
{
    const nami_node *n = &g->node[node];
    const int shared = nami_plan_emit_own(g, w, node, NAMI_FORWARD_OWN);
    if (shared >= 0) {
        touch_in(g, w, n, vbuf);
        touch_scratch(g, w);
    }
    nami_plan_launch(g, w, node, NAMI_FORWARD);
    touch_in(g, w, n, vbuf);
    if (shared >= 0)
        nami_plan_touch(g, w, NAMI_SLOT_SHARED, shared);
    for (int k = 0; k < NAMI_OP_SAVED; k++)
        if (n->saved[k] >= 0)
            nami_plan_touch(g, w, NAMI_SLOT_SAVED0 + k, vbuf[n->saved[k]]);
    if (n->out >= 0)
        nami_plan_touch(g, w, NAMI_SLOT_OUT, vbuf[n->out]);
    else
        nami_plan_touch(g, w, NAMI_SLOT_LOSS, loss);
    nami_plan_touch(g, w, NAMI_SLOT_PACKED_F, 2 * node);
    touch_scratch(g, w);
}

int nami_plan_value_buffer(nami_graph *g, int value)
{
    return nami_plan_buffer(g, nami_tensor_bytes(&g->value[value].type), NAMI_AT_NONE,
                            0);
}

void nami_plan_forward(nami_graph *g, int *vbuf)
{
    for (int v = 0; v < g->values; v++)
        vbuf[v] = nami_plan_value_buffer(g, v);
    g->buffer[vbuf[g->input]].place.region = NAMI_AT_INPUT;
    if (g->output >= 0)
        g->buffer[vbuf[g->output]].place.region = NAMI_AT_OUTPUT;
    if (g->targets >= 0)
        g->buffer[vbuf[g->targets]].place.region = NAMI_AT_TARGETS;
    if (g->side >= 0)
        g->buffer[vbuf[g->side]].place.region = NAMI_AT_SIDE;
    int loss[] = {nami_plan_buffer(g, 0, NAMI_AT_LOSS, 0),
                  nami_plan_buffer(g, 0, NAMI_AT_SECOND, 0)};
    for (int i = 0; i < g->nodes; i++)
        nami_plan_emit_forward(g, NAMI_WALK_F, i, vbuf, loss[g->node[i].second]);
}
