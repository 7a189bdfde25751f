/* SPDX-License-Identifier: MIT */
/* compare_schedules.c - `nami simulate --compare`: all named schedules side by side; those without a flush, whose
 * gradients are stale, in a block of their own with their delays. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/simulate.h"
#include "sched/order.h"
#include "sched/staleness.h"

enum { ROWS_MOST = 256 };

/* One line of the table. */
typedef struct candidate {
    nami_schedule s; /* lists freed after the simulation */
    nami_prediction p;
    double peak;   /* activations of the fullest position, M_a */
    double memory; /* the same with weights and their state */
} candidate;

typedef struct table {
    candidate *row;
    int rows;
    /* a line for each that its order or the profile does not admit */
    nami_text refused;
} table;

static int by_makespan(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->p.makespan != y->p.makespan)
        return x->p.makespan < y->p.makespan ? -1 : 1;
    return (x->peak > y->peak) - (x->peak < y->peak);
}

static nami_status simulate_one(nami_simulate_costs *c, const nami_recipe *r,
                                candidate *out)
{
    nami_cost cost;
    NAMI_TRY(nami_simulate_lists(c->flags, r, &out->s));
    NAMI_TRY(nami_simulate_costs_for(c, out->s.place.stages, &cost));
    NAMI_TRY(nami_simulate(&out->s, &cost, false, &out->p));
    for (int i = 0; i < r->positions; i++) {
        double memory = out->p.peak[i] + c->flags->state * out->p.weights[i];
        out->peak = fmax(out->peak, out->p.peak[i]);
        out->memory = fmax(out->memory, memory);
    }
    return NAMI_OK;
}

/* "hanayo W=2", "hanayo stash W=2" when the weights are not the schedule's own. */
static void label(const nami_recipe *r, char text[48])
{
    char size[16];
    const nami_preset *preset = nami_preset_find(r->name);
    bool own = preset == NULL || preset->weights == r->weights;
    nami_simulate_size(r, size);
    snprintf(text, 48, "%.20s%s%.10s%.15s", r->name, own ? "" : " ",
             own ? "" : nami_weights_name(r->weights), size);
}

/* Give the row back when what it stands for cannot be had. */
static nami_status add_row(nami_simulate_costs *c, const nami_recipe *r, table *t)
{
    nami_status status = nami_recipe_check(r);
    candidate *row = &t->row[t->rows];
    if (status == NAMI_OK)
        status = simulate_one(c, r, row);
    if (status == NAMI_OK) {
        t->rows++;
        return NAMI_OK;
    }
    nami_prediction_free(&row->p);
    nami_schedule_free(&row->s);
    if (status != NAMI_EPLAN)
        return status;
    char text[48];
    label(r, text);
    nami_text_add(&t->refused, "  %s: %s\n", text, nami_fail_text());
    nami_fail_clear();
    return NAMI_OK;
}

/* Simulate every size of one preset; a size that changes nothing is tried once. */
static nami_status add_preset(nami_simulate_costs *c, const char *name, table *t)
{
    static const int sizes[] = {1, 2, 4, 8};
    const nami_lists_flags *l = &c->flags->lists;
    for (int i = 0; i < 4 && t->rows < ROWS_MOST; i++) {
        nami_recipe r = {.positions = (int)l->positions,
                         .microbatches = (int)l->microbatches,
                         .waves = 1,
                         .chunks = 1,
                         .slices = 1,
                         .recompute = c->flags->recompute};
        NAMI_TRY(nami_recipe_preset(&r, name));
        const nami_order *order = nami_order_find(r.order);
        bool waves = r.placement == NAMI_PLACE_WAVE && !order->one_wave;
        if (waves)
            r.waves = sizes[i];
        else if (r.placement == NAMI_PLACE_LOOPING)
            r.chunks = 2 * sizes[i]; /* as many stages as so many waves have */
        else if (order->sliced)
            r.slices = 2 * sizes[i]; /* one slice is gpipe */
        else if (i > 0)
            break;
        NAMI_TRY(add_row(c, &r, t));
    }
    return NAMI_OK;
}

static void print_row(const candidate *c, const candidate *best, double memory,
                      nami_text *out)
{
    char text[48];
    label(&c->s.recipe, text);
    nami_text_add(out, "%-20s %6d %12.8g %8.3f %8.3f %11.6g %9.6g %9lld%s\n", text,
                  c->s.place.stages, c->p.makespan, 100.0 * c->p.bubble,
                  best->p.makespan > 0.0 ? c->p.makespan / best->p.makespan : 1.0,
                  c->peak, c->p.weights[0], (long long)c->p.messages,
                  memory > 0.0 && c->memory > memory ? "  too much memory" : "");
}

/* Largest over the stages of the mean delay when full, and of versions. */
static void worst_of(const nami_schedule *s, double *forward, double *backward,
                     int *versions)
{
    for (int i = 0; i < s->place.stages; i++) {
        nami_staleness d;
        nami_schedule_staleness(s, i, &d);
        *forward = fmax(*forward, d.forward[NAMI_WINDOW_STEADY].mean);
        *backward = fmax(*backward, d.backward[NAMI_WINDOW_STEADY].mean);
        *versions = d.versions > *versions ? d.versions : *versions;
    }
}

static void print_window(const candidate *c, double memory, nami_text *out)
{
    char text[48];
    double forward = 0.0, backward = 0.0, weights = 0.0;
    int versions = 0;
    label(&c->s.recipe, text);
    worst_of(&c->s, &forward, &backward, &versions);
    for (int p = 0; p < c->s.place.positions; p++)
        weights = fmax(weights, c->p.weights[p]);
    nami_text_add(out, "%-20s %6d %12.8g %8.3f %8.3f %11.6g %9.6g %8d %8.4g %8.4g%s\n",
                  text, c->s.place.stages, c->p.makespan, 100.0 * c->p.bubble,
                  100.0 * c->p.steady_bubble, c->peak, weights, versions, forward,
                  backward,
                  memory > 0.0 && c->memory > memory ? "  too much memory" : "");
}

/* What is not as good as it looks: gradients of old weights. */
static void print_windows(const nami_simulate_flags *f, const table *t, int first,
                          nami_text *out)
{
    nami_text_add(out,
                  "\nwithout a flush: %lld micro-batches between two drains, %lld an "
                  "update; gradients are stale, so times alone do not rank these "
                  "with the above\n\n",
                  (long long)f->lists.microbatches, (long long)f->lists.per_update);
    nami_text_add(out, "%-20s %6s %12s %8s %8s %11s %9s %8s %8s %8s\n", "schedule",
                  "stages", "makespan", "bubble %", "steady %", "peak [M_a]", "weights",
                  "versions", "delay F", "delay B");
    for (int i = first; i < t->rows; i++)
        print_window(&t->row[i], f->memory, out);
}

static void print_rows(const nami_simulate_flags *f, const table *t, int rows)
{
    const candidate *row = t->row;
    nami_text text = {0};
    if (f->json) {
        for (int i = 0; i < t->rows; i++) {
            nami_text_add(&text, "%s\n", i > 0 ? "," : "[");
            nami_simulate_json(&row[i].s, &row[i].p, true, &text);
        }
        nami_text_add(&text, "\n]\n");
    } else {
        nami_text_add(
            &text,
            "%lld positions, %lld micro-batches, T_F %.6g, message latency %.6g\n\n",
            (long long)f->lists.positions, (long long)f->lists.microbatches, f->tf,
            f->latency);
        nami_text_add(&text, "%-20s %6s %12s %8s %8s %11s %9s %9s\n", "schedule",
                      "stages", "makespan", "bubble %", "to best", "peak [M_a]",
                      "weights", "messages");
        for (int i = 0; i < rows; i++)
            print_row(&row[i], &row[0], f->memory, &text);
        print_windows(f, t, rows, &text);
        if (t->refused.length > 0)
            nami_text_add(&text, "\nnot for these counts:\n%s",
                          nami_text_get(&t->refused));
    }
    nami_print("%s", nami_text_get(&text));
    nami_text_free(&text);
}

/* Orders without a flush, each preset's and the waves; one of those with equal lists. */
static nami_status add_windows(nami_simulate_costs *c, table *t)
{
    const nami_lists_flags *l = &c->flags->lists;
    nami_recipe r = {.positions = (int)l->positions,
                     .microbatches = (int)l->microbatches,
                     .per_update = (int)l->per_update,
                     .waves = 1,
                     .chunks = 2,
                     .slices = 1,
                     .recompute = c->flags->recompute,
                     .stage_replicas = l->stage_replicas};
    for (int i = nami_presets_with_flush(); i < nami_presets(); i++) {
        const nami_preset *own = nami_preset_at(i), *before = nami_preset_at(i - 1);
        bool same = own->order == before->order && own->weights == before->weights &&
                    own->split == before->split;
        bool alone = own->split == NAMI_SPLIT_SAMPLE && l->stage_replicas.count == 0;
        if (same || alone)
            continue;
        NAMI_TRY(nami_recipe_preset(&r, own->name));
        NAMI_TRY(add_row(c, &r, t));
    }
    NAMI_TRY(nami_recipe_preset(&r, "hanayo"));
    for (int k = 0; k < 4; k++) {
        r.waves = 1 + k / 2;
        r.weights = k % 2 == 0 ? NAMI_WEIGHTS_STASH : NAMI_WEIGHTS_2BW;
        NAMI_TRY(add_row(c, &r, t));
    }
    return NAMI_OK;
}

/* What fits into the memory asked for comes first. */
static void sort_rows(candidate *row, int rows, double memory)
{
    int fits = 0;
    qsort(row, (size_t)rows, sizeof *row, by_makespan);
    for (int i = 0; i < rows && memory > 0.0; i++) {
        if (row[i].memory > memory)
            continue;
        candidate c = row[i];
        for (int k = i; k > fits; k--)
            row[k] = row[k - 1];
        row[fits++] = c;
    }
}

nami_status nami_simulate_compare(nami_simulate_costs *c)
{
    const nami_simulate_flags *f = c->flags;
    if (f->lists.positions == 0 || f->lists.microbatches == 0)
        return nami_fail(NAMI_EINPUT, "--compare needs --positions and --microbatches");
    table t = {.row = nami_calloc(NAMI_MEM_OTHER, ROWS_MOST + 1, sizeof *t.row)};
    nami_status status = NAMI_OK;
    for (int i = 0; i < nami_presets_with_flush() && status == NAMI_OK; i++)
        status = add_preset(c, nami_preset_at(i)->name, &t);
    int rows = t.rows;
    if (status == NAMI_OK)
        status = add_windows(c, &t);
    if (status == NAMI_OK) {
        sort_rows(t.row, rows, f->memory);
        sort_rows(t.row + rows, t.rows - rows, f->memory);
        print_rows(f, &t, rows);
    }
    for (int i = 0; i < t.rows; i++) {
        nami_prediction_free(&t.row[i].p);
        nami_schedule_free(&t.row[i].s);
    }
    nami_free(t.row);
    nami_text_free(&t.refused);
    return status;
}
