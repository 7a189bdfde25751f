/* SPDX-License-Identifier: MIT */
/* schedule.c - from a recipe to lists. */
#include <string.h>

#include "base/memory.h"
#include "sched/order.h"

void nami_schedule_free(nami_schedule *s)
{
    for (int i = 0; s->list != NULL && i < s->place.positions; i++)
        nami_list_free(&s->list[i]);
    nami_free(s->list);
    nami_place_free(&s->place);
    *s = (nami_schedule){0};
}

/* Leave only the forwards, each by itself, of the newest weights: what is left of an order that finishes, finishes. */
static void keep_forwards(nami_schedule *s)
{
    for (int i = 0; i < s->place.positions; i++) {
        nami_list *l = &s->list[i];
        int64_t kept = 0;
        for (int64_t j = 0; j < l->count; j++) {
            nami_kind kind = l->item[j].kind;
            if (kind != NAMI_F && kind != NAMI_SEND_F && kind != NAMI_RECV_F)
                continue;
            l->item[kept] = l->item[j];
            l->item[kept].version = 0; /* lists of a window from a file name others */
            l->item[kept++].flags = 0; /* no pair is left whole */
        }
        l->count = kept;
    }
    s->updates = false;
}

/* The lists of a file, which must have the counts that the recipe asks for (0: any). */
static nami_status from_file(const nami_recipe *r, nami_schedule *out)
{
    NAMI_TRY(nami_schedule_read_file(r->name + strlen("file:"), out));
    if (r->positions != 0 && r->positions != out->recipe.positions)
        return nami_fail(NAMI_EPLAN,
                         "%s has %d positions (lines), but the layout has %d", r->name,
                         out->recipe.positions, r->positions);
    if (r->microbatches != 0 && r->microbatches != out->recipe.microbatches)
        return nami_fail(NAMI_EPLAN,
                         "%s has %d micro-batches, but each pipeline has %d a step",
                         r->name, out->recipe.microbatches, r->microbatches);
    nami_recipe own = *r;
    own.positions = out->recipe.positions;
    own.microbatches = out->recipe.microbatches;
    own.slices = out->recipe.slices;
    own.waves = own.chunks = 1;
    out->recipe = own;
    if (own.depth.count > 0 || own.stage_recompute.count > 0)
        return nami_fail(
            NAMI_EPLAN,
            "%s says what runs ahead and what runs again; remove depth and "
            "stage_recompute",
            r->name);
    NAMI_TRY(nami_recipe_check_place(&own));
    nami_place_fill(&own, &out->place);
    if (!nami_recipe_flushes(&own) && (out->place.copies > 1 || own.slices > 1))
        return nami_fail(NAMI_EPLAN,
                         "%s has %d copies of the model and %d token slices; weights = "
                         "%s goes with one of each",
                         r->name, out->place.copies, own.slices,
                         nami_weights_name(own.weights));
    return nami_recipe_check_updates(&own);
}

/* Each backward of a stage that holds inputs only is preceded by its R. */
static void insert_recomputations(const nami_recipe *r, nami_list *l)
{
    nami_list out = {0};
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        bool backward = a.kind == NAMI_B || a.kind == NAMI_BI;
        if (backward && r->stage_recompute.item[a.stage] != 0) {
            nami_action again = a;
            again.kind = NAMI_R;
            nami_list_add(&out, again);
        }
        nami_list_add(&out, a);
    }
    nami_list_free(l);
    *l = out;
}

/* An evaluation reads the newest weights and updates none: any number of micro-batches will do. */
static nami_recipe evaluating(const nami_recipe *r)
{
    nami_recipe e = *r;
    e.weights = NAMI_WEIGHTS_FLUSH;
    e.per_update = 0;
    e.depth = e.stage_recompute = (nami_ints){0};
    return e;
}

nami_status nami_schedule_generate(const nami_recipe *wish, nami_purpose purpose,
                                   nami_schedule *out)
{
    const nami_recipe own = purpose == NAMI_PURPOSE_EVALUATE ? evaluating(wish) : *wish,
                      *r = &own;
    *out = (nami_schedule){.recipe = own, .purpose = purpose};
    NAMI_TRY(nami_recipe_check(r));
    if (r->placement == NAMI_PLACE_FREE) {
        NAMI_TRY(from_file(r, out));
    } else {
        NAMI_TRY(nami_place_make(r, &out->place));
        out->list =
            nami_calloc(NAMI_MEM_OTHER, (size_t)r->positions, sizeof *out->list);
        const nami_order *order = nami_order_find(r->order);
        for (int i = 0; i < r->positions; i++) {
            order->generate(r, &out->place, i, &out->list[i]);
            if (r->stage_recompute.count > 0)
                insert_recomputations(r, &out->list[i]);
        }
    }
    out->purpose = purpose;
    if (purpose == NAMI_PURPOSE_EVALUATE)
        keep_forwards(out);
    return NAMI_OK;
}

nami_status nami_schedule_make(const nami_recipe *r, nami_purpose purpose,
                               nami_schedule *out)
{
    nami_schedule bare;
    *out = (nami_schedule){0};
    nami_status status = nami_schedule_generate(r, purpose, &bare);
    if (status == NAMI_OK && r->placement == NAMI_PLACE_FREE)
        status = nami_schedule_validate(&bare); /* in terms of the lines of the file */
    if (status == NAMI_OK)
        status = nami_schedule_lower(&bare, 1, out);
    nami_schedule_free(&bare);
    if (status == NAMI_OK)
        status = nami_schedule_validate(out);
    if (status != NAMI_OK)
        nami_schedule_free(out);
    return status;
}
