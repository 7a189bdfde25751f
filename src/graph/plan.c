/* SPDX-License-Identifier: MIT */
/* plan.c - planning a graph: write the lists, prepare the kernels, place the memory. */
#include "graph/plan.h"

int nami_plan_buffer(nami_graph *g, size_t bytes, nami_region region, size_t offset)
{
    int n = g->buffers++;
    if ((n & (n - 1)) == 0)
        g->buffer = nami_realloc(NAMI_MEM_OTHER, g->buffer,
                                 (n ? 2 * (size_t)n : 1) * sizeof *g->buffer);
    nami_buffer *b = &g->buffer[n];
    *b = (nami_buffer){.bytes = bytes, .place = {region, offset}};
    for (int w = 0; w < NAMI_WALKS; w++)
        b->first[w] = b->last[w] = -1;
    return n;
}

nami_launch *nami_plan_launch(nami_graph *g, nami_walk_kind w, int node, nami_pass pass)
{
    nami_launches *l = &g->list[w];
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 16;
        l->item = nami_realloc(NAMI_MEM_OTHER, l->item,
                               (size_t)l->capacity * sizeof *l->item);
    }
    nami_launch *launch = &l->item[l->count++];
    *launch = (nami_launch){.node = node, .pass = pass, .value = -1};
    for (int s = 0; s < NAMI_SLOTS; s++)
        launch->buffer[s] = -1;
    return launch;
}

void nami_plan_touch(nami_graph *g, nami_walk_kind w, nami_launch_slot slot, int buffer)
{
    int at = g->list[w].count - 1;
    g->list[w].item[at].buffer[slot] = buffer;
    nami_buffer *b = &g->buffer[buffer];
    if (b->first[w] < 0)
        b->first[w] = at;
    b->last[w] = at;
}

/* Whether the parts fit together; a fault here is one of the model's builder. */
static nami_status check(const nami_graph *g)
{
    for (int i = 0; i < g->nodes; i++) {
        const nami_node *n = &g->node[i];
        for (int k = 0; k < NAMI_OP_IN; k++)
            if (n->in[k] >= 0 && g->value[n->in[k]].producer < 0 &&
                n->in[k] != g->input && n->in[k] != g->targets && n->in[k] != g->side)
                return nami_fail(NAMI_EBUG,
                                 "graph: node %d (%s) reads value %d before it is made",
                                 i, n->op->name, n->in[k]);
        if (n->in[0] >= 0 && n->in[0] == n->in[1])
            return nami_fail(NAMI_EBUG, "graph: node %d (%s) reads value %d twice", i,
                             n->op->name, n->in[0]);
        if (n->out >= 0)
            g->value[n->out].producer = i;
        for (int k = 0; k < NAMI_OP_SAVED; k++)
            if (n->saved[k] >= 0)
                g->value[n->saved[k]].producer = i;
    }
    if (g->input < 0 || (g->output >= 0 && g->value[g->output].producer < 0))
        return nami_fail(NAMI_EBUG, "graph: the stage's input or output is not set");
    return NAMI_OK;
}

/* Refuse what sizes could not be computed of. */
static nami_status check_bytes(const nami_graph *g)
{
    if (g->bytes <= NAMI_GRAPH_MOST)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "blocks %d to %d make %.3g bytes of a micro-batch of %lld samples "
                     "of %lld tokens, too many for any memory; use smaller sizes in "
                     "[model] or a smaller train.batch",
                     g->node[0].block, g->block, g->bytes, (long long)g->batch,
                     (long long)g->time);
}

/* The type of value or use `i`, absent when i < 0. */
static nami_tensor value_type(const nami_graph *g, int i)
{
    return i < 0 ? (nami_tensor){0} : g->value[i].type;
}

static nami_tensor use_type(const nami_graph *g, int i)
{
    return i < 0 ? (nami_tensor){0}
                 : (nami_tensor){.dtype = g->wide, .shape = g->use[i].shape};
}

/* The bind of node i with its types and shapes. */
static void set_shapes(nami_graph *g, int i)
{
    const nami_node *n = &g->node[i];
    nami_bind *b = &g->shape[i];
    *b = (nami_bind){.backend = g->backend,
                     .train = g->train,
                     .slices = g->slices,
                     .together = g->train ? g->together : 0};
    for (int k = 0; k < NAMI_OP_IN; k++)
        b->in[k] = b->din[k] = value_type(g, n->in[k]);
    for (int k = 0; k < NAMI_OP_SAVED; k++)
        b->saved[k] = value_type(g, n->saved[k]);
    for (int k = 0; k < NAMI_OP_PARAM; k++)
        b->param[k] = b->dparam[k] = use_type(g, n->param[k]);
    b->out = b->dout = value_type(g, n->out);
}

/* Let node->op prepare its kernels, told which gradients are added to. */
static nami_status prepare_nodes(nami_graph *g)
{
    static const char there[1];
    const nami_launches *back = &g->list[NAMI_WALK_B];
    for (int i = 0; i < back->count; i++) {
        const nami_launch *l = &back->item[i];
        if (l->node >= 0 && l->buffer[NAMI_SLOT_ADD0] >= 0)
            g->shape[l->node].add[0] = there;
        if (l->node >= 0 && l->buffer[NAMI_SLOT_ADD1] >= 0)
            g->shape[l->node].add[1] = there;
    }
    for (int i = 0; i < g->nodes; i++) {
        NAMI_TRY(g->node[i].op->prepare(&g->node[i], &g->shape[i]));
        g->shape[i].add[0] = g->shape[i].add[1] = NULL;
    }
    return NAMI_OK;
}

/* Prepare the kernels of sums: a dropout that drops nothing adds. */
static nami_status prepare_sums(nami_graph *g)
{
    g->sums = nami_calloc(NAMI_MEM_OTHER, (size_t)g->values + 1, sizeof(*g->sums));
    for (int w = 0; w < NAMI_WALKS; w++)
        for (int i = 0; i < g->list[w].count; i++) {
            const nami_launch *l = &g->list[w].item[i];
            if (l->node >= 0 || l->buffer[NAMI_SLOT_ADD0] < 0 || g->sums[l->value])
                continue;
            const nami_tensor *t = &g->value[l->value].type;
            nami_arg_dropout a = {.act = t->dtype,
                                  .batch = 1,
                                  .count = nami_shape_count(&t->shape),
                                  .add = g};
            NAMI_TRY(nami_backend_prepare(g->backend, NAMI_DROPOUT_F, &a,
                                          &g->sums[l->value]));
        }
    return NAMI_OK;
}

/* Bytes of the packed weights of a node in forward (back false) or backward form. */
static size_t packed_bytes(const nami_node *n, bool back)
{
    size_t most = 0;
    for (int p = 0; p < NAMI_PASSES; p++)
        if (n->prepared[p]) {
            size_t bytes = back ? n->prepared[p]->packed_b : n->prepared[p]->packed_f;
            most = bytes > most ? bytes : most;
        }
    return most;
}

/* Lay the packed weights out in the order of the nodes, and write the list that packs. */
static void plan_packed(nami_graph *g)
{
    size_t at = 0;
    for (int i = 0; i < 2 * g->nodes; i++) {
        nami_buffer *b = &g->buffer[i];
        b->bytes = packed_bytes(&g->node[i / 2], i % 2);
        b->place.offset = at;
        if (b->bytes == 0)
            b->place.region = NAMI_AT_NONE;
        at += nami_plan_round(b->bytes);
    }
    g->sizes.packed = at;
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i].op->pack && g->node[i].prepared[NAMI_PACK]) {
            nami_plan_launch(g, NAMI_WALK_PACK, i, NAMI_PACK);
            nami_plan_touch(g, NAMI_WALK_PACK, NAMI_SLOT_PACKED_F, 2 * i);
            nami_plan_touch(g, NAMI_WALK_PACK, NAMI_SLOT_PACKED_B, 2 * i + 1);
            int scratch = nami_plan_buffer(g, 0, NAMI_AT_NONE, 0);
            nami_plan_touch(g, NAMI_WALK_PACK, NAMI_SLOT_SCRATCH, scratch);
        }
}

/* Scratch is known once kernels are; count the work too. */
static void finish_launches(nami_graph *g)
{
    for (int w = 0; w < NAMI_WALKS; w++)
        for (int i = 0; i < g->list[w].count; i++) {
            const nami_launch *l = &g->list[w].item[i];
            const nami_prepared *p =
                l->node < 0 ? NULL : g->node[l->node].prepared[l->pass];
            if (!p)
                continue;
            g->buffer[l->buffer[NAMI_SLOT_SCRATCH]].bytes = p->scratch;
            if (w == NAMI_WALK_B && l->pass == NAMI_FORWARD)
                g->sizes.rerun += p->flops;
            else if (w == NAMI_WALK_F || w == NAMI_WALK_B)
                g->sizes.flops[l->pass] += p->flops;
        }
}

/* Kept values lie with the forward pass; a backward pass must not want the output, which has been sent. */
static nami_status check_output(const nami_graph *g)
{
    for (int w = NAMI_WALK_B; w <= NAMI_WALK_BW; w++)
        for (int i = 0; i < g->list[w].count; i++)
            for (int s = 0; s < NAMI_SLOTS; s++) {
                int b = g->list[w].item[i].buffer[s];
                if (b >= 0 && g->buffer[b].place.region == NAMI_AT_OUTPUT)
                    return nami_fail(NAMI_EBUG,
                                     "graph: node %d (%s) reads the stage's "
                                     "output after it was sent",
                                     g->list[w].item[i].node,
                                     g->node[g->list[w].item[i].node].op->name);
            }
    return NAMI_OK;
}

/* Until when each list adds to the sums of uses. */
static void note_open(nami_graph *g)
{
    for (int w = 0; w < NAMI_WALKS; w++) {
        int open = 0;
        for (int i = g->list[w].count - 1; i >= 0; i--) {
            nami_launch *l = &g->list[w].item[i];
            for (int k = 0; k < NAMI_OP_PARAM; k++) {
                int use = l->node >= 0 && l->pass == NAMI_BACKWARD_WEIGHT
                              ? g->node[l->node].param[k]
                              : -1;
                open = use >= open ? use + 1 : open;
            }
            l->open = open;
        }
    }
}

/* Buffers become places, the memory of planning is given back. */
static void resolve(nami_graph *g)
{
    for (int w = 0; w < NAMI_WALKS; w++)
        for (int i = 0; i < g->list[w].count; i++) {
            nami_launch *l = &g->list[w].item[i];
            for (int s = 0; s < NAMI_SLOTS; s++)
                if (l->buffer[s] >= 0)
                    l->place[s] = g->buffer[l->buffer[s]].place;
        }
    nami_free(g->buffer);
    g->buffer = NULL;
    g->buffers = 0;
}

/* What other slices read must be there until the last of them is through. */
static nami_status keep_mixed(nami_graph *g, const int *vbuf)
{
    for (int i = 0; i < g->nodes && g->slices > 1; i++) {
        const nami_node *n = &g->node[i];
        if (!n->op->mixes_slices)
            continue;
        if (g->value[n->in[0]].producer < 0 || n->in[0] == g->output)
            return nami_fail(NAMI_EBUG,
                             "graph: node %d (%s) reads value %d of earlier token "
                             "slices, but it lies outside",
                             i, n->op->name, n->in[0]);
        g->buffer[vbuf[n->in[0]]].keep = true;
        if (n->saved[1] >= 0)
            g->buffer[vbuf[n->saved[1]]].keep = true;
    }
    return NAMI_OK;
}

/* Write all lists; the first buffers are the packed weights. vbuf [values] receives buffer numbers. */
static nami_status write_lists(nami_graph *g, int *vbuf)
{
    for (int i = 0; i < 2 * g->nodes; i++)
        nami_plan_buffer(g, 0, NAMI_AT_PACKED, 0);
    nami_plan_forward(g, vbuf);
    NAMI_TRY(keep_mixed(g, vbuf));
    if (g->train)
        NAMI_TRY(nami_plan_backward(g, vbuf, false));
    if (g->train && g->split)
        NAMI_TRY(nami_plan_backward(g, vbuf, true));
    NAMI_TRY(check_output(g));
    NAMI_TRY(prepare_nodes(g));
    NAMI_TRY(prepare_sums(g));
    plan_packed(g);
    finish_launches(g);
    nami_plan_place(g);
    note_open(g);
    return NAMI_OK;
}

nami_status nami_graph_plan(nami_graph *g, bool train, bool split, bool recompute)
{
    NAMI_CHECK(!g->shape); /* planned once */
    NAMI_CHECK(g->slices == 1 || !recompute);
    g->train = train;
    g->split = split && train;
    g->recompute = recompute && train;
    for (int i = 0; i < g->nodes && !train; i++)
        if (g->node[i].op->mixes_slices)
            g->node[i].saved[1] = -1;
    NAMI_TRY(check_bytes(g));
    NAMI_TRY(check(g));
    g->shape = nami_calloc(NAMI_MEM_OTHER, (size_t)g->nodes + 1, sizeof *g->shape);
    for (int i = 0; i < g->nodes; i++)
        set_shapes(g, i);
    int *vbuf = nami_calloc(NAMI_MEM_OTHER, (size_t)g->values + 1, sizeof *vbuf);
    nami_status status = write_lists(g, vbuf);
    resolve(g);
    nami_free(vbuf);
    return status;
}
