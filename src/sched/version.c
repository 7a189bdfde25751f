/* SPDX-License-Identifier: MIT */
/* version.c - versions of the weights: which number a policy demands, and how many are needed at once. */
#include "sched/version.h"

#include "base/memory.h"

enum { SLOTS_MOST = 256 }; /* an action names its slot in 8 bits */

static const char *const name_of[] = {
    [NAMI_WEIGHTS_FLUSH] = "flush",       [NAMI_WEIGHTS_STASH] = "stash",
    [NAMI_WEIGHTS_VERTICAL] = "vertical", [NAMI_WEIGHTS_2BW] = "2bw",
    [NAMI_WEIGHTS_NEWEST] = "newest",     [NAMI_WEIGHTS_PREDICT] = "predict",
    [NAMI_WEIGHTS_GROUPED] = "grouped",
};

const char *nami_weights_name(nami_weights weights)
{
    return name_of[weights];
}

bool nami_versions_kept(const nami_schedule *s)
{
    return s->recipe.weights != NAMI_WEIGHTS_FLUSH &&
           s->purpose == NAMI_PURPOSE_TRAIN && s->updates;
}

/* What the forwards of stage 0 read: the newest at that time. */
static void read_entries(nami_versions *v)
{
    const nami_list *l = &v->s->list[nami_place_of(&v->s->place, 0, 0)];
    int32_t newest = 0;
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        if (a.stage == 0 && a.kind == NAMI_F)
            v->entry[a.unit] = newest;
        newest += a.stage == 0 && a.kind == NAMI_UPDATE;
    }
}

void nami_versions_open(nami_versions *v, const nami_schedule *s)
{
    size_t stages = (size_t)s->place.stages, units = (size_t)s->recipe.microbatches;
    *v = (nami_versions){.s = s};
    v->newest = nami_calloc(NAMI_MEM_OTHER, stages, sizeof *v->newest);
    v->forward = nami_calloc(NAMI_MEM_OTHER, stages * units, sizeof *v->forward);
    v->entry = nami_calloc(NAMI_MEM_OTHER, units, sizeof *v->entry);
    read_entries(v);
}

void nami_versions_close(nami_versions *v)
{
    nami_free(v->newest);
    nami_free(v->forward);
    nami_free(v->entry);
    *v = (nami_versions){0};
}

/* What the forward of `a`'s unit reads at its stage, when the list stands before it. */
static int32_t forward_number(const nami_versions *v, nami_action a)
{
    const int32_t group = a.unit / nami_recipe_group(&v->s->recipe);
    switch (v->s->recipe.weights) {
    case NAMI_WEIGHTS_VERTICAL:
        return v->entry[a.unit];
    case NAMI_WEIGHTS_2BW:
        return group > 0 ? group - 1 : 0;
    case NAMI_WEIGHTS_GROUPED:
        if (2 * a.stage >= v->s->place.stages)
            return group;
        return group > 0 ? group - 1 : 0;
    default: /* stash, newest, predict */
        return v->newest[a.stage];
    }
}

int nami_versions_see(nami_versions *v, nami_action a)
{
    const nami_weights policy = v->s->recipe.weights;
    if (a.kind == NAMI_UPDATE)
        return ++v->newest[a.stage];
    if (!nami_semantics_of(a.kind)->compute)
        return -1;
    int32_t *forward =
        &v->forward[(int64_t)a.stage * v->s->recipe.microbatches + a.unit];
    if (a.kind == NAMI_F)
        return *forward = forward_number(v, a);
    bool newest = policy == NAMI_WEIGHTS_NEWEST || policy == NAMI_WEIGHTS_PREDICT;
    return newest ? v->newest[a.stage] : *forward;
}

/* Walk a position's list backwards: behind an update, all numbers from the newest down to the oldest that is still
 * read are needed. */
static void count_position(const nami_list *l, const int32_t *number, int32_t *oldest,
                           int *ring)
{
    for (int64_t i = l->count - 1; i >= 0; i--) {
        nami_action a = l->item[i];
        if (number[i] < 0)
            continue;
        if (a.kind != NAMI_UPDATE) {
            oldest[a.stage] = number[i] < oldest[a.stage] ? number[i] : oldest[a.stage];
            continue;
        }
        int needed = number[i] - oldest[a.stage] + 1;
        ring[a.stage] = needed > ring[a.stage] ? needed : ring[a.stage];
    }
}

/* The number of every action of `position` into number[]. */
static void number_position(nami_versions *v, int position, int32_t *number)
{
    const nami_list *l = &v->s->list[position];
    for (int64_t i = 0; i < l->count; i++)
        number[i] = nami_versions_see(v, l->item[i]);
}

static int64_t longest(const nami_schedule *s)
{
    int64_t most = 0;
    for (int p = 0; p < s->place.positions; p++)
        most = s->list[p].count > most ? s->list[p].count : most;
    return most;
}

/* Versions that the stages of positions first .. last - 1 need, into ring[stages]; 1 for others. */
static void count_some(const nami_schedule *s, int first, int last, int *ring)
{
    const int stages = s->place.stages;
    for (int i = 0; i < stages; i++)
        ring[i] = 1;
    if (!nami_versions_kept(s))
        return;
    nami_versions v;
    nami_versions_open(&v, s);
    int32_t *oldest = nami_alloc(NAMI_MEM_OTHER, (size_t)stages * sizeof *oldest);
    int32_t *number =
        nami_alloc(NAMI_MEM_OTHER, (size_t)(longest(s) + 1) * sizeof *number);
    for (int i = 0; i < stages; i++)
        oldest[i] = INT32_MAX / 2;
    for (int p = first; p < last; p++) {
        number_position(&v, p, number);
        count_position(&s->list[p], number, oldest, ring);
    }
    nami_free(number);
    nami_free(oldest);
    nami_versions_close(&v);
}

void nami_versions_count(const nami_schedule *s, int *ring)
{
    count_some(s, 0, s->place.positions, ring);
}

int nami_schedule_versions(const nami_schedule *s, int copy, int stage)
{
    NAMI_CHECK(copy >= 0 && copy < s->place.copies && stage < s->place.stages);
    const int position = nami_place_of(&s->place, copy, stage);
    int *ring = nami_alloc(NAMI_MEM_OTHER, (size_t)s->place.stages * sizeof *ring);
    count_some(s, position, position + 1, ring);
    int versions = ring[stage];
    nami_free(ring);
    return versions;
}

void nami_versions_explain(const nami_versions *v, nami_action a, int number,
                           nami_text *out)
{
    const nami_recipe *r = &v->s->recipe;
    int made = v->newest[a.stage];
    nami_text_add(
        out,
        "weights = %s: it is of update %d (%d unit%s an update) and must read "
        "version %d of stage %d, but only %d update%s before it",
        nami_weights_name(r->weights), a.unit / nami_recipe_group(r),
        nami_recipe_group(r), nami_plural(nami_recipe_group(r)), number, a.stage, made,
        made == 1 ? " stands" : "s stand");
}

static nami_status refuse(const nami_versions *v, int position, int64_t index,
                          int number)
{
    nami_text text = {0}, word = {0};
    nami_action a = v->s->list[position].item[index];
    nami_action_print(a, &word);
    nami_versions_explain(v, a, number, &text);
    nami_status status =
        nami_fail(NAMI_EPLAN, "position %d, entry %lld (%s): %s", position,
                  (long long)index, nami_text_get(&word), nami_text_get(&text));
    nami_text_free(&text);
    nami_text_free(&word);
    return status;
}

static nami_status assign_position(nami_versions *v, int position, const int *ring)
{
    nami_list *l = &v->s->list[position];
    for (int64_t i = 0; i < l->count; i++) {
        nami_action *a = &l->item[i];
        a->version = 0;
        int number = nami_versions_see(v, *a);
        if (number > v->newest[a->stage])
            return refuse(v, position, i, number);
        if (number >= 0)
            a->version = (uint8_t)(number % ring[a->stage]);
    }
    return NAMI_OK;
}

nami_status nami_versions_assign(nami_schedule *s)
{
    nami_versions v;
    nami_status status = NAMI_OK;
    int *ring = nami_alloc(NAMI_MEM_OTHER, (size_t)s->place.stages * sizeof *ring);
    nami_versions_count(s, ring);
    for (int i = 0; i < s->place.stages && status == NAMI_OK; i++) {
        if (ring[i] > SLOTS_MOST)
            status =
                nami_fail(NAMI_EPLAN,
                          "weights = %s: stage %d keeps %d versions of its "
                          "weights; at most %d fit",
                          nami_weights_name(s->recipe.weights), i, ring[i], SLOTS_MOST);
    }
    nami_versions_open(&v, s);
    for (int p = 0; p < s->place.positions && status == NAMI_OK; p++)
        status = assign_position(&v, p, ring);
    nami_versions_close(&v);
    nami_free(ring);
    return status;
}
