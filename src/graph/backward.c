/* SPDX-License-Identifier: MIT */
/* backward.c - the launches of the backward passes, in reverse order of the nodes.
 *
 * The gradient of a value with several uses: the first contribution (the last use) is written, each later one is
 * added by the pass that makes it (add), in place where nobody reads the old sum any more. A gradient that passes
 * through an operator unchanged is the same buffer under two names.
 */
#include "graph/plan.h"

typedef struct backward {
    nami_graph *g;
    bool split;
    nami_walk_kind input,
        weight;       /* lists of backward-input and backward-weight launches */
    int *vbuf;        /* [values] buffer of a value, own one where run again */
    int *gbuf;        /* [values] buffer of its gradient so far, -1: none yet */
    int *left;        /* [values] contributions still to come */
    bool *want;       /* [values] its gradient is of use */
    bool *flows;      /* [nodes] a gradient reaches the node */
    bool *need, *run; /* [values], [nodes] for recomputation */
    int dinput;       /* buffer of the input's gradient */
} backward;

static bool has_param(const nami_node *n)
{
    for (int k = 0; k < NAMI_OP_PARAM; k++)
        if (n->param[k] >= 0)
            return true;
    return false;
}

static bool passes(const nami_node *n, int k)
{
    return n->op->passes && n->op->passes(n, k);
}

/* Whether the gradient of in[k] is computed by backward_input. */
static bool computes(const backward *b, const nami_node *n, int k)
{
    return n->in[k] >= 0 && b->want[n->in[k]] && n->op->backward_input &&
           !passes(n, k) && !n->op->in_place_gradient;
}

static bool has_bi(const backward *b, const nami_node *n)
{
    return computes(b, n, 0) || computes(b, n, 1);
}

static bool has_bw(const nami_node *n)
{
    return n->op->backward_weight && has_param(n);
}

/* Whose gradients are of use: values that depend on a parameter or on a real-valued input. */
static void find_wanted(backward *b)
{
    const nami_graph *g = b->g;
    b->want[g->input] = !g->given && g->value[g->input].type.dtype != NAMI_I32;
    for (int i = 0; i < g->nodes; i++) {
        const nami_node *n = &g->node[i];
        bool want = has_param(n);
        for (int k = 0; k < NAMI_OP_IN; k++)
            want = want || (n->in[k] >= 0 && b->want[n->in[k]]);
        if (n->out >= 0)
            b->want[n->out] = want;
    }
}

/* Which nodes a gradient reaches, and how many contributions each value gets. */
static void find_flow(backward *b)
{
    const nami_graph *g = b->g;
    for (int i = g->nodes - 1; i >= 0; i--) {
        const nami_node *n = &g->node[i];
        b->flows[i] = n->op->in_place_gradient || n->out == g->output ||
                      (n->out >= 0 && b->left[n->out] > 0);
        for (int k = 0; k < NAMI_OP_IN && b->flows[i]; k++)
            if (computes(b, n, k) ||
                (n->in[k] >= 0 && b->want[n->in[k]] && passes(n, k)) ||
                (n->op->in_place_gradient && k == 0))
                b->left[n->in[k]]++;
    }
}

/* What a backward pass of `n` with reading bits `reads` touches. */
static void touch_reads(backward *b, nami_walk_kind w, int node, unsigned reads)
{
    static const unsigned in_bit[NAMI_OP_IN] = {NAMI_READ_IN0, NAMI_READ_IN1};
    nami_graph *g = b->g;
    const nami_node *n = &g->node[node];
    for (int k = 0; k < NAMI_OP_IN; k++)
        if ((reads & in_bit[k]) && n->in[k] >= 0)
            nami_plan_touch(g, w, NAMI_SLOT_IN0 + k, b->vbuf[n->in[k]]);
    if ((reads & NAMI_READ_OUT) && n->out >= 0)
        nami_plan_touch(g, w, NAMI_SLOT_OUT, b->vbuf[n->out]);
    for (int k = 0; k < NAMI_OP_SAVED; k++)
        if ((reads & NAMI_READ_SAVED) && n->saved[k] >= 0)
            nami_plan_touch(g, w, NAMI_SLOT_SAVED0 + k, b->vbuf[n->saved[k]]);
    if (reads & NAMI_READ_DOUT)
        nami_plan_touch(g, w, NAMI_SLOT_DOUT, b->gbuf[n->out]);
    nami_plan_touch(g, w, NAMI_SLOT_SCRATCH, nami_plan_buffer(g, 0, NAMI_AT_NONE, 0));
}

/* Whether the gradient sum of value v may be overwritten by the launch being written. */
static bool may_overwrite(const backward *b, int v)
{
    const nami_graph *g = b->g;
    int old = b->gbuf[v];
    const nami_buffer *buffer = &g->buffer[old];
    const nami_launches *l = &g->list[b->input];
    if (buffer->place.region != NAMI_AT_NONE || buffer->first[NAMI_WALK_BW] >= 0)
        return false;
    for (int u = 0; u < g->values; u++)
        if (u != v && b->gbuf[u] == old)
            return false;
    for (int s = 0; s < NAMI_SLOTS; s++)
        if (l->item[l->count - 1].buffer[s] == old)
            return false;
    return true;
}

/* Where the next contribution to v goes; *add receives the sum so far or -1. */
static int destination(backward *b, int v, int *add)
{
    bool last = --b->left[v] == 0;
    *add = b->gbuf[v];
    if (last && v == b->g->input)
        return b->dinput;
    if (*add >= 0 && may_overwrite(b, v))
        return *add;
    return nami_plan_value_buffer(b->g, v);
}

/* A launch without node: to = from (+ add). */
static void emit_sum(backward *b, int v, int from, int add, int to)
{
    nami_graph *g = b->g;
    nami_plan_launch(g, b->input, -1, NAMI_BACKWARD_INPUT)->value = v;
    nami_plan_touch(g, b->input, NAMI_SLOT_IN0, from);
    if (add >= 0)
        nami_plan_touch(g, b->input, NAMI_SLOT_ADD0, add);
    nami_plan_touch(g, b->input, NAMI_SLOT_DIN0, to);
}

/* The backward-input launch of a node: its computed gradients, then sums for an operator that cannot add. */
static void emit_bi(backward *b, int node)
{
    nami_graph *g = b->g;
    const nami_node *n = &g->node[node];
    int made[NAMI_OP_IN] = {-1, -1};
    const int shared = nami_plan_emit_own(g, b->input, node, NAMI_BACKWARD_OWN);
    if (shared >= 0)
        touch_reads(b, b->input, node, n->op->bi_reads);
    nami_plan_launch(g, b->input, node, NAMI_BACKWARD_INPUT);
    touch_reads(b, b->input, node, n->op->bi_reads);
    if (shared >= 0)
        nami_plan_touch(g, b->input, NAMI_SLOT_SHARED, shared);
    if (n->op->pack)
        nami_plan_touch(g, b->input, NAMI_SLOT_PACKED_B, 2 * node + 1);
    for (int k = 0; k < NAMI_OP_IN; k++) {
        int add = -1, v = n->in[k];
        if (!computes(b, n, k))
            continue;
        if (b->gbuf[v] >= 0 && !n->op->adds) {
            made[k] = nami_plan_value_buffer(g, v);
            nami_plan_touch(g, b->input, NAMI_SLOT_DIN0 + k, made[k]);
            continue;
        }
        int to = destination(b, v, &add);
        if (add >= 0)
            nami_plan_touch(g, b->input, NAMI_SLOT_ADD0 + k, add);
        nami_plan_touch(g, b->input, NAMI_SLOT_DIN0 + k, to);
        b->gbuf[v] = to;
    }
    for (int k = 0; k < NAMI_OP_IN; k++)
        if (made[k] >= 0) {
            int add, to = destination(b, n->in[k], &add);
            emit_sum(b, n->in[k], made[k], add, to);
            b->gbuf[n->in[k]] = to;
        }
}

/* Gradients that pass through: another name of the same buffer, a sum or copy where that will not do. */
static void pass_through(backward *b, const nami_node *n)
{
    for (int k = 0; k < NAMI_OP_IN; k++) {
        int v = n->in[k], add;
        if (v < 0 || !b->want[v] || !passes(n, k))
            continue;
        int dout = b->gbuf[n->out];
        if (b->gbuf[v] < 0 && !(v == b->g->input && b->left[v] == 1)) {
            b->gbuf[v] = dout;
            b->left[v]--;
            continue;
        }
        int to = destination(b, v, &add);
        emit_sum(b, v, dout, add, to);
        b->gbuf[v] = to;
    }
}

static void emit_bw(backward *b, int node)
{
    nami_plan_launch(b->g, b->weight, node, NAMI_BACKWARD_WEIGHT);
    touch_reads(b, b->weight, node, b->g->node[node].op->bw_reads);
}

/* Mark the values made in nodes [from, to) that backward launches of these nodes read. */
static void find_needed(backward *b, int from, int to)
{
    const nami_graph *g = b->g;
    for (int i = from; i < to; i++) {
        const nami_node *n = &g->node[i];
        unsigned reads = (b->flows[i] && has_bi(b, n) ? n->op->bi_reads : 0) |
                         (b->flows[i] && has_bw(n) ? n->op->bw_reads : 0);
        if ((reads & NAMI_READ_IN0) && n->in[0] >= 0)
            b->need[n->in[0]] = true;
        if ((reads & NAMI_READ_IN1) && n->in[1] >= 0)
            b->need[n->in[1]] = true;
        if ((reads & NAMI_READ_OUT) && n->out >= 0)
            b->need[n->out] = true;
        for (int k = 0; k < NAMI_OP_SAVED; k++)
            if ((reads & NAMI_READ_SAVED) && n->saved[k] >= 0)
                b->need[n->saved[k]] = true;
    }
}

/* Give what node i makes a buffer of its own in this pass. */
static void renew(backward *b, const nami_node *n)
{
    if (n->out >= 0)
        b->vbuf[n->out] = nami_plan_value_buffer(b->g, n->out);
    for (int k = 0; k < NAMI_OP_SAVED; k++)
        if (n->saved[k] >= 0)
            b->vbuf[n->saved[k]] = nami_plan_value_buffer(b->g, n->saved[k]);
}

/* Run those nodes of [from, to) forward again whose results the backward passes of these nodes need. */
static void run_again(backward *b, int from, int to)
{
    nami_graph *g = b->g;
    find_needed(b, from, to);
    for (int i = to - 1; i >= from; i--) {
        const nami_node *n = &g->node[i];
        b->run[i] = n->op->in_place_gradient || (n->out >= 0 && b->need[n->out]);
        for (int k = 0; k < NAMI_OP_SAVED; k++)
            b->run[i] = b->run[i] || (n->saved[k] >= 0 && b->need[n->saved[k]]);
        for (int k = 0; k < NAMI_OP_IN && b->run[i]; k++)
            if (n->in[k] >= 0)
                b->need[n->in[k]] = true;
    }
    for (int i = from; i < to; i++)
        if (b->run[i]) {
            renew(b, &g->node[i]);
            int loss =
                nami_plan_buffer(g, (size_t)g->batch * sizeof(double), NAMI_AT_NONE, 0);
            nami_plan_emit_forward(g, b->input, i, b->vbuf, loss);
        }
}

/* The loss has turned its input into the input's gradient: nobody else may use that value. */
static nami_status take_loss(backward *b, const nami_node *n)
{
    int v = n->in[0];
    if (b->left[v] != 1)
        return nami_fail(NAMI_EBUG, "graph: value %d has uses beside the loss", v);
    b->gbuf[v] = b->vbuf[v];
    b->left[v] = 0;
    return NAMI_OK;
}

/* All backward launches of one node. */
static nami_status emit_node(backward *b, int i)
{
    const nami_node *n = &b->g->node[i];
    if (!b->flows[i])
        return NAMI_OK;
    if (n->op->in_place_gradient)
        return take_loss(b, n);
    if (has_bi(b, n))
        emit_bi(b, i);
    pass_through(b, n);
    if (has_bw(n))
        emit_bw(b, i);
    b->gbuf[n->out] = -1;
    return NAMI_OK;
}

static nami_status emit_all(backward *b)
{
    nami_graph *g = b->g;
    for (int i = g->nodes - 1, end = g->nodes; i >= 0; i--) {
        if (i + 1 < g->nodes && g->node[i].block != g->node[i + 1].block)
            end = i + 1;
        if (g->recompute && end == i + 1) {
            int from = i;
            while (from > 0 && g->node[from - 1].block == g->node[i].block)
                from--;
            run_again(b, from, end);
        }
        NAMI_TRY(emit_node(b, i));
    }
    return NAMI_OK;
}

/* Zeroed arrays, buffers of the outer gradients. */
static void begin(backward *b, nami_graph *g, const int *vbuf, bool split)
{
    size_t n = (size_t)g->values + 1, nodes = (size_t)g->nodes + 1;
    *b = (backward){.g = g,
                    .split = split,
                    .input = split ? NAMI_WALK_BI : NAMI_WALK_B,
                    .weight = split ? NAMI_WALK_BW : NAMI_WALK_B,
                    .vbuf = nami_calloc(NAMI_MEM_OTHER, n, sizeof(int)),
                    .gbuf = nami_calloc(NAMI_MEM_OTHER, n, sizeof(int)),
                    .left = nami_calloc(NAMI_MEM_OTHER, n, sizeof(int)),
                    .want = nami_calloc(NAMI_MEM_OTHER, n, sizeof(bool)),
                    .need = nami_calloc(NAMI_MEM_OTHER, n, sizeof(bool)),
                    .flows = nami_calloc(NAMI_MEM_OTHER, nodes, sizeof(bool)),
                    .run = nami_calloc(NAMI_MEM_OTHER, nodes, sizeof(bool)),
                    .dinput = nami_plan_buffer(g, 0, NAMI_AT_DINPUT, 0)};
    for (int v = 0; v < g->values; v++) {
        b->vbuf[v] = vbuf[v];
        b->gbuf[v] = -1;
    }
    if (g->output >= 0)
        b->gbuf[g->output] = nami_plan_buffer(g, 0, NAMI_AT_DOUTPUT, 0);
}

static void end(backward *b)
{
    nami_free(b->vbuf);
    nami_free(b->gbuf);
    nami_free(b->left);
    nami_free(b->want);
    nami_free(b->need);
    nami_free(b->flows);
    nami_free(b->run);
}

nami_status nami_plan_backward(nami_graph *g, const int *vbuf, bool split)
{
    backward b;
    begin(&b, g, vbuf, split);
    find_wanted(&b);
    find_flow(&b);
    nami_status status = emit_all(&b);
    end(&b);
    return status;
}
