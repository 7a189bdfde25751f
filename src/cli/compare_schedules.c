/* SPDX-License-Identifier: MIT */
/* compare_schedules.c - `nami simulate --compare`: all named schedules side by side. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/simulate.h"

enum { ROWS_MOST = 256 };

/* One line of the table. */
typedef struct candidate {
    nami_schedule s; /* lists freed after the simulation */
    nami_prediction p;
    double peak; /* of the fullest position */
} candidate;

static int by_makespan(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->p.makespan != y->p.makespan)
        return x->p.makespan < y->p.makespan ? -1 : 1;
    return (x->peak > y->peak) - (x->peak < y->peak);
}

static nami_status simulate_one(const nami_recipe *r, const nami_cost *cost,
                                double bytes, candidate *out)
{
    nami_cost own = *cost;
    NAMI_TRY(nami_schedule_generate(r, NAMI_PURPOSE_TRAIN, &out->s));
    double *table =
        nami_alloc(NAMI_MEM_OTHER, (size_t)out->s.place.stages * sizeof *table);
    for (int i = 0; i < out->s.place.stages; i++)
        table[i] = bytes;
    own.bytes = table;
    nami_status status = nami_simulate(&out->s, &own, false, &out->p);
    nami_free(table);
    for (int i = 0; i < r->positions && status == NAMI_OK; i++)
        out->peak = fmax(out->peak, out->p.peak[i]);
    return status;
}

/* Simulate every size of one preset; those that its order does not admit are left out. */
static nami_status add_preset(const nami_simulate_flags *f, const nami_cost *cost,
                              const char *name, candidate *row, int *rows)
{
    static const int sizes[] = {1, 2, 4, 8};
    for (int i = 0; i < 4 && *rows < ROWS_MOST; i++) {
        nami_recipe r = {.positions = (int)f->lists.positions,
                         .microbatches = (int)f->lists.microbatches,
                         .waves = 1,
                         .chunks = 1,
                         .slices = 1,
                         .recompute = f->recompute};
        NAMI_TRY(nami_recipe_preset(&r, name));
        if (r.placement == NAMI_PLACE_WAVE)
            r.waves = sizes[i];
        else if (r.placement == NAMI_PLACE_LOOPING)
            r.chunks = 2 * sizes[i]; /* as many stages as so many waves have */
        else if (i > 0)
            break;
        if (nami_recipe_check(&r) != NAMI_OK) {
            nami_fail_clear();
            continue;
        }
        NAMI_TRY(simulate_one(&r, cost, f->bytes, &row[(*rows)++]));
    }
    return NAMI_OK;
}

static void print_row(const candidate *c, const candidate *best, double memory,
                      nami_text *out)
{
    char label[40];
    const nami_recipe *r = &c->s.recipe;
    if (r->placement == NAMI_PLACE_WAVE)
        snprintf(label, sizeof label, "%.24s W=%d", r->name, r->waves);
    else if (r->placement == NAMI_PLACE_LOOPING)
        snprintf(label, sizeof label, "%.24s V=%d", r->name, r->chunks);
    else
        snprintf(label, sizeof label, "%.30s", r->name);
    nami_text_add(out, "%-20s %6d %12.8g %8.3f %8.3f %11.6g %9.6g %9lld%s\n", label,
                  c->s.place.stages, c->p.makespan, 100.0 * c->p.bubble,
                  best->p.makespan > 0.0 ? c->p.makespan / best->p.makespan : 1.0,
                  c->peak, c->p.weights[0], (long long)c->p.messages,
                  memory > 0.0 && c->peak > memory ? "  too much memory" : "");
}

static void print_rows(const nami_simulate_flags *f, const candidate *row, int rows)
{
    nami_text text = {0};
    if (f->json) {
        for (int i = 0; i < rows; i++) {
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
    }
    nami_print("%s", nami_text_get(&text));
    nami_text_free(&text);
}

/* What fits into the memory asked for comes first. */
static void sort_rows(candidate *row, int rows, double memory)
{
    int fits = 0;
    qsort(row, (size_t)rows, sizeof *row, by_makespan);
    for (int i = 0; i < rows && memory > 0.0; i++) {
        if (row[i].peak > memory)
            continue;
        candidate c = row[i];
        for (int k = i; k > fits; k--)
            row[k] = row[k - 1];
        row[fits++] = c;
    }
}

nami_status nami_simulate_compare(const nami_simulate_flags *f, const nami_cost *cost)
{
    if (f->lists.positions == 0 || f->lists.microbatches == 0)
        return nami_fail(NAMI_EINPUT, "--compare needs --positions and --microbatches");
    candidate *row = nami_calloc(NAMI_MEM_OTHER, ROWS_MOST, sizeof *row);
    int rows = 0;
    nami_status status = NAMI_OK;
    for (int i = 0; i < nami_presets() && status == NAMI_OK; i++)
        status = add_preset(f, cost, nami_preset_at(i)->name, row, &rows);
    if (status == NAMI_OK) {
        sort_rows(row, rows, f->memory);
        print_rows(f, row, rows);
    }
    for (int i = 0; i < rows; i++) {
        nami_prediction_free(&row[i].p);
        nami_schedule_free(&row[i].s);
    }
    nami_free(row);
    return status;
}
