/* SPDX-License-Identifier: MIT */
/* blueprint.c - what all positions of a layout have in common: routes, uses of parameters, slices. */
#include "base/memory.h"
#include "exec/share.h"

nami_status nami_blueprint_graph(const nami_blueprint *p, int stage, int64_t micro,
                                 nami_graph **out)
{
    const nami_layout *l = p->layout;
    const int64_t together =
        nami_layout_together(l, nami_place_of(&l->train.place, 0, stage));
    NAMI_TRY(nami_model_graph_sliced(p->model, l->cut[stage], l->cut[stage + 1],
                                     p->backend, l->act, micro, l->time,
                                     nami_layout_slices(l), out));
    if (together > micro)
        nami_graph_share(*out, together);
    return NAMI_OK;
}

/* Note the uses of all stages. */
static nami_status find_uses(nami_blueprint *p)
{
    const nami_place *place = &p->layout->train.place;
    for (int s = 0; s < place->stages; s++) {
        nami_graph *g = NULL;
        NAMI_TRY(nami_blueprint_graph(p, s, p->layout->micro, &g));
        int n = nami_graph_uses(g);
        p->use =
            nami_realloc(NAMI_MEM_OTHER, p->use,
                         (size_t)(p->uses + n * place->copies + 1) * sizeof *p->use);
        for (int i = 0; i < n * place->copies; i++) {
            int u = i / place->copies, copy = i % place->copies;
            p->use[p->uses++] =
                (nami_share_use){.param = nami_graph_use_param(g, u),
                                 .stage = s,
                                 .copy = copy,
                                 .position = nami_place_of(place, copy, s),
                                 .number = u};
        }
        nami_graph_free(g);
    }
    return NAMI_OK;
}

/* What would need all stages before an update. */
static nami_status check_rolling(const nami_blueprint *p)
{
    const nami_recipe *r = &p->layout->recipe;
    const char *weights = nami_weights_name(r->weights);
    if (nami_recipe_flushes(r))
        return NAMI_OK;
    if (p->optim->clip > 0 && p->optim->clip_scope == NAMI_CLIP_ALL)
        return nami_fail(NAMI_EPLAN,
                         "train.clip = %g needs the norm of all stages before any "
                         "update, and weights = %s does not wait for them: use "
                         "train.clip_scope = stage, or train.clip = 0",
                         p->optim->clip, weights);
    for (int i = 0; i < p->uses; i++) {
        for (int j = 0; j < i; j++) {
            const nami_share_use *a = &p->use[j], *b = &p->use[i];
            if (a->param == b->param && a->stage != b->stage)
                return nami_fail(NAMI_EPLAN,
                                 "stages %d and %d share %s, and with weights = %s "
                                 "they would update it at different times: use "
                                 "model.tied = no, or cut the model elsewhere",
                                 a->stage, b->stage, p->model->param[a->param].name,
                                 weights);
        }
    }
    return NAMI_OK;
}

/* MPI counts what is merged of a step or window in an int. */
static nami_status check_numbers(const nami_blueprint *p)
{
    const nami_layout *l = p->layout;
    const int losses = nami_model_sample_of(p->model, l->time).losses;
    const int64_t each = 3 * l->batch * losses + p->square[p->model->params] + losses;
    if (each <= INT32_MAX / l->window)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "losses and gradient norms of %d steps of train.batch = %lld "
                     "samples are %.3g numbers; at most %d can be merged at once%s",
                     l->window, (long long)l->batch, (double)each * l->window,
                     INT32_MAX, l->window > 1 ? ": use a smaller pipeline.window" : "");
}

nami_status nami_blueprint_make(const nami_layout *l, const nami_model *m,
                                const nami_optim_options *o, nami_backend *b,
                                nami_blueprint *out)
{
    *out = (nami_blueprint){.layout = l, .model = m, .optim = o, .backend = b};
    size_t positions = (size_t)l->train.place.positions;
    out->train = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *out->train);
    out->evaluate = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *out->evaluate);
    NAMI_TRY(nami_routes_make(&l->train, out->train));
    NAMI_TRY(nami_routes_make(&l->evaluate, out->evaluate));
    NAMI_TRY(find_uses(out));
    nami_slices_make(out);
    NAMI_TRY(check_numbers(out));
    return check_rolling(out);
}

void nami_blueprint_free(nami_blueprint *p)
{
    int positions = p->layout->train.place.positions;
    nami_routes_free(p->train, positions);
    nami_routes_free(p->evaluate, positions);
    nami_free(p->train);
    nami_free(p->evaluate);
    nami_free(p->use);
    nami_slices_free(p);
    *p = (nami_blueprint){0};
}
