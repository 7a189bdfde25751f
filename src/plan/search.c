/* SPDX-License-Identifier: MIT */
/* search.c - go through all candidates; leave out early what cannot be among the best.
 *
 * Nothing is left out by guess. A candidate is skipped unsimulated only when the work of its busiest position alone takes
 * longer than the last one kept; recomputation, which never makes a list faster, is tried where memory asks for it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "plan/price.h"
#include "sched/order.h"

enum { PRESETS_MOST = 64, SIZES = 4 };

typedef enum answer { UNKNOWN, NO, YES } answer;

typedef struct search {
    const nami_advise_request *r;
    nami_block_prices blocks;
    answer runs[PRESETS_MOST]; /* whether the executor carries out a preset's lists */
    nami_advice *out;
} search;

/* One candidate on its way. */
typedef struct candidate {
    int preset;
    const nami_shape_of_stages *shape;
    nami_stage_prices prices;
    nami_advice_row row;
} candidate;

/* The time that a newcomer must beat. */
static double bar(const nami_advice_list *l)
{
    return l->rows < l->most ? INFINITY : l->row[l->rows - 1].seconds;
}

static bool better(const nami_advice_row *a, const nami_advice_row *b)
{
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds < b->seconds;
    if (a->bytes < b->bytes || a->bytes > b->bytes)
        return a->bytes < b->bytes;
    return a->plain && !b->plain;
}

static bool same_layout(const nami_advice_row *a, const nami_advice_row *b)
{
    const nami_recipe *x = &a->recipe, *y = &b->recipe;
    return x->name == y->name && x->positions == y->positions &&
           a->replicas == b->replicas && x->waves == y->waves &&
           x->chunks == y->chunks && x->slices == y->slices;
}

/* Where a row must leave for `row`: the same layout with another M, else the last one of a full list, else the end. */
static int leaving(const nami_advice_list *l, const nami_advice_row *row)
{
    for (int i = 0; i < l->rows; i++) {
        if (same_layout(&l->row[i], row))
            return i;
    }
    return l->rows < l->most ? l->rows : l->most - 1;
}

/* Keep `row` if it is better than the one that must leave; returns whether a candidate was dropped for good. */
static bool insert(nami_advice_list *l, const nami_advice_row *row)
{
    int at = leaving(l, row);
    bool dropped = at < l->rows;
    if (dropped && !better(row, &l->row[at]))
        return true;
    l->rows += !dropped;
    for (; at > 0 && better(row, &l->row[at - 1]); at--)
        l->row[at] = l->row[at - 1];
    l->row[at] = *row;
    return dropped;
}

static void refuse(search *s, nami_refusal why, const char *reason)
{
    if (s->out->refused[why]++ == 0)
        snprintf(s->out->example[why], sizeof s->out->example[why], "%.250s", reason);
}

/* Whether the time of `c` may still earn a place. */
static bool in_time(const search *s, const candidate *c, double seconds)
{
    const nami_advice *a = s->out;
    answer runs = s->runs[c->preset];
    if (runs != NO && seconds <= bar(&a->best))
        return true;
    if (runs != NO && c->row.plain && seconds <= bar(&a->plain))
        return true;
    return runs != YES && seconds <= bar(&a->only);
}

static void refuse_memory(search *s, const candidate *c, double bytes)
{
    char name[48], need[32], have[32], text[256];
    s->out->least = fmin(s->out->least, bytes);
    snprintf(text, sizeof text,
             "%s, P=%d, D=%d, micro-batches of %lld%s: %s, but %s are allowed",
             nami_advice_name(&c->row, name), c->row.recipe.positions, c->row.replicas,
             (long long)c->row.micro, c->row.recipe.recompute ? ", recomputing" : "",
             nami_human_bytes(bytes, need), nami_human_bytes(s->r->limit, have));
    refuse(s, NAMI_REFUSED_MEMORY, text);
}

/* The executor's own bytes. Sets runs[]; NAMI_EPLAN is its refusal to carry the lists out. */
static nami_status budget(search *s, candidate *c, const nami_layout *l)
{
    size_t positions = (size_t)l->recipe.positions;
    nami_budget *b = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *b);
    nami_status status =
        nami_layout_budget(l, s->r->model, s->r->optim, s->r->backend, b);
    c->row.bytes = c->prices.least;
    for (size_t p = 0; p < positions && status == NAMI_OK; p++)
        c->row.bytes = fmax(c->row.bytes, (double)b[p].total);
    nami_free(b);
    if (status == NAMI_OK || status == NAMI_EPLAN)
        s->runs[c->preset] = status == NAMI_OK ? YES : NO;
    if (status != NAMI_EPLAN)
        return status;
    nami_fail_clear();
    return NAMI_OK;
}

static void keep(search *s, const candidate *c)
{
    bool runs = s->runs[c->preset] == YES;
    if (insert(runs ? &s->out->best : &s->out->only, &c->row))
        refuse(s, NAMI_REFUSED_SLOWER, "");
    if (runs && c->row.plain)
        insert(&s->out->plain, &c->row);
}

/* Simulate the lists of `l` and keep what is good enough; *full when memory refuses it. */
static nami_status judge(search *s, candidate *c, const nami_layout *l, bool *full)
{
    nami_prediction p;
    nami_cost cost = nami_stage_prices_cost(s->r, &c->prices);
    nami_status status = nami_simulate(&l->train, &cost, false, &p);
    if (status == NAMI_OK) {
        c->row.seconds = p.makespan + c->prices.after;
        c->row.bubble = p.bubble;
        c->row.messages = p.messages * c->row.replicas;
        for (int i = 0; i < l->recipe.positions; i++)
            c->row.sent += p.sent[i] * c->row.replicas;
    }
    nami_prediction_free(&p);
    NAMI_TRY(status);
    if (!in_time(s, c, c->row.seconds)) {
        refuse(s, NAMI_REFUSED_SLOWER, "");
        return NAMI_OK;
    }
    NAMI_TRY(budget(s, c, l));
    if (c->row.bytes <= s->r->limit) {
        keep(s, c);
        return NAMI_OK;
    }
    *full = true;
    refuse_memory(s, c, c->row.bytes);
    return NAMI_OK;
}

/* A layout that does not go together is a refusal, not a failure. */
static nami_status make_and_judge(search *s, candidate *c, bool *full)
{
    nami_layout l;
    const nami_advise_request *r = s->r;
    nami_layout_request wish = {.recipe = c->row.recipe,
                                .batch = r->batch,
                                .microbatches =
                                    c->row.recipe.microbatches * c->row.replicas,
                                .replicas = c->row.replicas,
                                .partials = r->partials,
                                .ranks = r->ranks,
                                .cuts = c->shape->place.stages,
                                .cut = c->shape->cut,
                                .act = r->act,
                                .recompute = c->row.recipe.recompute};
    nami_status status = nami_layout_make(&wish, r->model, &l);
    if (status == NAMI_EPLAN) {
        refuse(s, NAMI_REFUSED_COUNTS, nami_fail_text());
        nami_fail_clear();
        return NAMI_OK;
    }
    NAMI_TRY(status);
    status = judge(s, c, &l, full);
    nami_layout_free(&l);
    return status;
}

static nami_status consider(search *s, candidate *c, bool recompute, bool *full)
{
    const nami_stage_prices *p = &c->prices;
    double units = c->row.recipe.microbatches;
    *full = false;
    s->out->tried++;
    c->row.recipe.recompute = recompute;
    c->row.sent = 0;
    if (p->least > s->r->limit) {
        refuse_memory(s, c, p->least); /* recomputing does not help */
        return NAMI_OK;
    }
    if (!in_time(s, c,
                 units * (recompute ? p->again : p->busy) * (1 - 1e-12) + p->after)) {
        refuse(s, NAMI_REFUSED_SLOWER, "");
        return NAMI_OK;
    }
    return make_and_judge(s, c, full);
}

/* All of M that the batch, the replicas and the partial sums admit. */
static nami_status try_counts(search *s, candidate *c)
{
    const nami_advise_request *r = s->r;
    int partials = r->partials > 0 ? r->partials : c->row.replicas;
    for (int64_t m = partials; m <= r->batch; m += partials) {
        if (r->batch % m != 0 || m > INT32_MAX / 4 || partials % c->row.replicas != 0)
            continue;
        bool full = false;
        c->row.recipe.microbatches = (int)(m / c->row.replicas);
        c->row.micro = r->batch / m;
        if (nami_recipe_check(&c->row.recipe) != NAMI_OK) {
            s->out->tried++;
            refuse(s, NAMI_REFUSED_COUNTS, nami_fail_text());
            nami_fail_clear();
            continue;
        }
        nami_stage_prices_make(r, &s->blocks, c->shape, c->row.replicas, c->row.micro,
                               &c->prices);
        nami_status status = consider(s, c, false, &full);
        if (status == NAMI_OK && full)
            status = consider(s, c, true, &full);
        nami_stage_prices_free(&c->prices);
        NAMI_TRY(status);
    }
    return NAMI_OK;
}

/* Place and cut once for all M. */
static nami_status try_shape(search *s, candidate *c)
{
    const nami_model *m = s->r->model;
    nami_shape_of_stages shape = {0};
    int stages = nami_recipe_stages(&c->row.recipe);
    char text[128];
    if (stages > m->blocks) {
        s->out->tried++;
        snprintf(text, sizeof text, "%d stages, but the model has only %d blocks",
                 stages, m->blocks);
        refuse(s, NAMI_REFUSED_BLOCKS, text);
        return NAMI_OK;
    }
    nami_status status = nami_place_make(&c->row.recipe, &shape.place);
    if (status == NAMI_OK) {
        shape.cut = nami_calloc(NAMI_MEM_OTHER, (size_t)stages + 1, sizeof *shape.cut);
        status = nami_layout_cut(m, m->options.context, &shape.place, shape.cut);
        c->shape = &shape;
    }
    if (status == NAMI_OK)
        status = try_counts(s, c);
    c->shape = NULL;
    nami_free(shape.cut);
    nami_place_free(&shape.place);
    return status;
}

/* Set the size that the preset reads to the i-th one; false when there is none. */
static bool resize(nami_recipe *r, int i)
{
    static const int sizes[SIZES] = {1, 2, 4, 8};
    const nami_order *order = nami_order_find(r->order);
    if (r->placement == NAMI_PLACE_WAVE && !order->one_wave)
        r->waves = sizes[i];
    else if (r->placement == NAMI_PLACE_LOOPING)
        r->chunks = 2 * sizes[i]; /* as many stages as so many waves have */
    else if (order->sliced)
        r->slices = 2 * sizes[i]; /* one slice is gpipe */
    else
        return i == 0;
    return true;
}

/* All presets and sizes on P x D; one position alone has nothing to schedule. */
static nami_status try_grid(search *s, int positions, int replicas)
{
    for (int i = 0; i < nami_presets_with_flush() && i < PRESETS_MOST; i++) {
        const nami_preset *preset = nami_preset_at(i);
        bool plain = preset->placement == NAMI_PLACE_LINEAR &&
                     strcmp(preset->order, "1f1b") == 0;
        for (int size = 0; size < SIZES && (positions > 1 || plain); size++) {
            candidate c = {.preset = i, .row.plain = plain, .row.replicas = replicas};
            c.row.recipe = (nami_recipe){.positions = positions,
                                         .microbatches = 1,
                                         .waves = 1,
                                         .chunks = 1,
                                         .slices = 1,
                                         .zero = s->r->zero};
            NAMI_TRY(nami_recipe_preset(&c.row.recipe, preset->name));
            if (!resize(&c.row.recipe, size))
                break;
            NAMI_TRY(try_shape(s, &c));
        }
    }
    return NAMI_OK;
}

/* Nothing can be trained: say what stands in the way. */
static nami_status nothing(const search *s)
{
    const nami_advice *a = s->out;
    char least[32], limit[32];
    if (a->refused[NAMI_REFUSED_MEMORY] == 0)
        return nami_fail(
            NAMI_EPLAN,
            "no layout of this model goes with %d ranks and a batch of %lld: %s",
            s->r->ranks, (long long)s->r->batch,
            a->refused[NAMI_REFUSED_BLOCKS] > 0 ? a->example[NAMI_REFUSED_BLOCKS]
                                                : a->example[NAMI_REFUSED_COUNTS]);
    return nami_fail(NAMI_EPLAN,
                     "no layout fits: the smallest needs %s a rank, but %s are "
                     "allowed; use more ranks or --memory",
                     nami_human_bytes(a->least, least),
                     nami_human_bytes(s->r->limit, limit));
}

nami_status nami_advise(const nami_advise_request *r, nami_advice *out)
{
    search s = {.r = r, .out = out};
    *out = (nami_advice){.least = INFINITY};
    out->best.most = out->only.most = r->top;
    out->plain.most = 1;
    nami_status status = nami_block_prices_make(r, &s.blocks);
    for (int d = 1; d <= r->ranks && status == NAMI_OK; d++) {
        if (r->ranks % d == 0 && r->batch % d == 0)
            status = try_grid(&s, r->ranks / d, d);
    }
    nami_block_prices_free(&s.blocks);
    if (status == NAMI_OK && out->best.rows == 0)
        status = nothing(&s);
    return status;
}
