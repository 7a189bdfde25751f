/* SPDX-License-Identifier: MIT */
/* budget.c - the bytes of every position, for tables and for refusing what cannot fit. */
#include "base/memory.h"
#include "exec/share.h"

static void describe(const nami_share *s, nami_budget *out)
{
    const nami_blueprint *p = s->blueprint;
    const nami_layout *l = p->layout;
    *out = (nami_budget){0};
    for (int t = 0; t < NAMI_MEM_TAGS; t++) {
        out->bytes[t] = s->bytes[t];
        out->total += s->bytes[t];
    }
    for (int i = 0; i < s->params; i++)
        out->parameters += s->param[i].count;
    for (int i = 0; i < s->stages; i++) {
        int stage = s->stage[i].stage;
        if (i == 0 || l->cut[stage] < out->first_block)
            out->first_block = l->cut[stage];
        if (l->cut[stage + 1] - 1 > out->last_block)
            out->last_block = l->cut[stage + 1] - 1;
        out->flops += nami_graph_bytes(s->stage[i].train)->flops[NAMI_FORWARD] *
                      nami_layout_slices(l) / l->train.place.copies;
        out->slots += s->train->kept[i];
    }
}

nami_status nami_layout_budget(const nami_layout *l, const nami_model *m,
                               const nami_optim_options *o, nami_backend *b,
                               nami_budget *out)
{
    nami_blueprint blueprint;
    nami_status status = nami_blueprint_make(l, m, o, b, &blueprint);
    for (int p = 0; status == NAMI_OK && p < l->train.place.positions; p++) {
        nami_share share;
        int largest = nami_layout_replicas(l, p) - 1; /* the last has most samples */
        status = nami_share_make(&blueprint, p, largest, &share);
        if (status == NAMI_OK)
            describe(&share, &out[p]);
        nami_share_free(&share);
    }
    nami_blueprint_free(&blueprint);
    return status;
}
