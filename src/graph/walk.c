/* SPDX-License-Identifier: MIT */
/* walk.c - carrying out a list of launches: fill in addresses, call the pass, nothing else. */
#include "graph/plan.h"

void nami_walk_begin(nami_walk *w, const nami_graph *g, nami_walk_kind kind,
                     const nami_graph_call *call)
{
    *w = (nami_walk){.graph = g, .kind = kind, .call = *call};
}

/* Start of each region in this call. */
static void set_base(const nami_graph_call *c, char *base[NAMI_REGIONS])
{
    base[NAMI_AT_NONE] = NULL;
    base[NAMI_AT_INPUT] = (char *)(uintptr_t)c->input;
    base[NAMI_AT_OUTPUT] = c->output;
    base[NAMI_AT_DOUTPUT] = (char *)(uintptr_t)c->doutput;
    base[NAMI_AT_DINPUT] = c->dinput;
    base[NAMI_AT_TARGETS] = (char *)(uintptr_t)c->targets;
    base[NAMI_AT_SIDE] = (char *)(uintptr_t)c->side;
    base[NAMI_AT_LOSS] = (char *)c->loss;
    base[NAMI_AT_SECOND] = (char *)c->second.loss;
    base[NAMI_AT_KEPT] = c->kept;
    base[NAMI_AT_HELD] = c->held;
    base[NAMI_AT_TRANSIENT] = c->transient;
    base[NAMI_AT_PACKED] = c->packed;
}

/* dst = src, or src + add where there is one. */
static void launch_sum(const nami_walk *w, const nami_launch *l, void *const *at)
{
    const nami_graph *g = w->graph;
    const nami_tensor *t = &g->value[l->value].type;
    if (!at[NAMI_SLOT_ADD0]) {
        nami_backend_copy(g->backend, w->lane, at[NAMI_SLOT_DIN0], at[NAMI_SLOT_IN0],
                          nami_tensor_bytes(t));
        return;
    }
    nami_arg_dropout a = {.act = t->dtype,
                          .batch = 1,
                          .count = nami_shape_count(&t->shape),
                          .x = at[NAMI_SLOT_IN0],
                          .add = at[NAMI_SLOT_ADD0],
                          .y = at[NAMI_SLOT_DIN0]};
    nami_backend_launch(g->backend, w->lane, g->sums[l->value], &a);
}

/* The bind of a launch: the node's shapes, the call's numbers, the addresses. */
static void fill(nami_bind *b, const nami_walk *w, const nami_launch *l,
                 void *const *at)
{
    const nami_graph_call *c = &w->call;
    const nami_node *n = &w->graph->node[l->node];
    *b = w->graph->shape[l->node];
    b->lane = w->lane;
    for (int k = 0; k < 2; k++) {
        b->in[k].data = at[NAMI_SLOT_IN0 + k];
        b->saved[k].data = at[NAMI_SLOT_SAVED0 + k];
        b->din[k].data = at[NAMI_SLOT_DIN0 + k];
        b->add[k] = at[NAMI_SLOT_ADD0 + k];
    }
    for (int k = 0; k < NAMI_OP_PARAM; k++) {
        b->param[k].data = n->param[k] < 0 ? NULL : c->param[n->param[k]];
        if (l->pass == NAMI_BACKWARD_WEIGHT && n->param[k] >= 0)
            b->dparam[k].data = c->dparam[n->param[k]];
    }
    b->out.data = at[NAMI_SLOT_OUT];
    b->dout.data = at[NAMI_SLOT_DOUT];
    b->packed_f = at[NAMI_SLOT_PACKED_F];
    b->packed_b = at[NAMI_SLOT_PACKED_B];
    b->scratch = at[NAMI_SLOT_SCRATCH];
    b->shared = at[NAMI_SLOT_SHARED];
    b->loss = at[NAMI_SLOT_LOSS];
    b->best = !b->loss ? NULL : n->second ? c->second.best : c->best;
    b->five = !b->loss ? NULL : n->second ? c->second.five : c->five;
    b->seed = c->seed;
    b->step = c->step;
    b->first_sample = c->first_sample;
    b->scale = n->second ? c->second.scale : c->scale;
    b->slice = c->slice;
    b->stride = c->stride;
}

/* Where slot s of a launch lies in this call; NULL: it has none. */
static void *address(const nami_launch *l, int s, char *const base[NAMI_REGIONS])
{
    const nami_spot *p = &l->place[s];
    return p->region == NAMI_AT_NONE ? NULL : base[p->region] + p->offset;
}

static void launch(const nami_walk *w, const nami_launch *l)
{
    char *base[NAMI_REGIONS];
    void *at[NAMI_SLOTS];
    set_base(&w->call, base);
    for (int s = 0; s < NAMI_SLOTS; s++)
        at[s] = address(l, s, base);
    if (l->node < 0) {
        launch_sum(w, l, at);
        return;
    }
    const nami_node *n = &w->graph->node[l->node];
    nami_bind b;
    fill(&b, w, l, at);
    if (l->pass == NAMI_FORWARD)
        n->op->forward(n, &b);
    else if (l->pass == NAMI_BACKWARD_INPUT)
        n->op->backward_input(n, &b);
    else if (l->pass == NAMI_BACKWARD_WEIGHT)
        n->op->backward_weight(n, &b);
    else if (l->pass == NAMI_FORWARD_OWN)
        n->op->forward_own(n, &b);
    else if (l->pass == NAMI_BACKWARD_OWN)
        n->op->backward_own(n, &b);
    else
        n->op->pack(n, &b);
}

bool nami_walk_next(nami_walk *w)
{
    const nami_launches *l = &w->graph->list[w->kind];
    if (w->at < l->count)
        launch(w, &l->item[w->at++]);
    return w->at < l->count;
}

double *nami_walk_shared(const nami_walk *w, int64_t *count)
{
    char *base[NAMI_REGIONS];
    const nami_launch *l = w->at > 0 ? &w->graph->list[w->kind].item[w->at - 1] : NULL;
    *count = l ? l->shared : 0;
    if (*count == 0)
        return NULL;
    set_base(&w->call, base);
    return address(l, NAMI_SLOT_SHARED, base);
}

int nami_walk_open(const nami_walk *w)
{
    const nami_launches *l = &w->graph->list[w->kind];
    return w->at < l->count ? l->item[w->at].open : 0;
}

const nami_node *nami_walk_peek(const nami_walk *w, nami_pass *pass)
{
    const nami_launches *l = &w->graph->list[w->kind];
    if (w->at >= l->count || l->item[w->at].node < 0)
        return NULL;
    *pass = l->item[w->at].pass;
    return &w->graph->node[l->item[w->at].node];
}
