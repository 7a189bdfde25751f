/* SPDX-License-Identifier: MIT */
/* simulate.c - `nami simulate`: predict a schedule. */
#include "cli/simulate.h"

#include <stdio.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"

/* Make text with `fill` and write it, when a path is given. */
static nami_status write_lists(const char *path, const nami_schedule *s)
{
    nami_text text = {0};
    if (*path == '\0')
        return NAMI_OK;
    nami_schedule_csv(s, &text);
    nami_status status = nami_lists_write(path, &text);
    nami_text_free(&text);
    return status;
}

static nami_status write_svg(const char *path, const nami_schedule *s,
                             const nami_timeline *t)
{
    nami_text text = {0};
    char title[200];
    const nami_recipe *r = &s->recipe;
    if (*path == '\0')
        return NAMI_OK;
    int used = snprintf(title, sizeof title, "%.80s: %d positions, %d micro-batches",
                        r->name, r->positions, r->microbatches);
    if (r->placement == NAMI_PLACE_WAVE)
        snprintf(title + used, sizeof title - (size_t)used, ", %d wave%s", r->waves,
                 r->waves > 1 ? "s" : "");
    if (r->placement == NAMI_PLACE_LOOPING)
        snprintf(title + used, sizeof title - (size_t)used, ", %d chunks", r->chunks);
    nami_timeline_svg(t, title, "", &text);
    nami_status status = nami_lists_write(path, &text);
    nami_text_free(&text);
    return status;
}

static nami_status write_trace(const char *path, const nami_timeline *t)
{
    nami_text text = {0};
    if (*path == '\0')
        return NAMI_OK;
    nami_timeline_trace(t, &text);
    nami_status status = nami_lists_write(path, &text);
    nami_text_free(&text);
    return status;
}

static nami_status report(const nami_simulate_flags *f, const nami_schedule *s,
                          const nami_cost *cost, const nami_prediction *p)
{
    nami_text text = {0};
    if (f->json) {
        nami_simulate_json(s, p, false, &text);
        nami_text_add(&text, "\n");
    } else if (!f->actions) {
        nami_simulate_table(s, cost, p, &text);
    }
    if (f->actions)
        nami_schedule_print(s, &text);
    if (f->timeline)
        nami_timeline_text(&p->timeline, 160, &text);
    nami_print("%s", nami_text_get(&text));
    nami_text_free(&text);
    NAMI_TRY(write_lists(f->csv, s));
    NAMI_TRY(write_svg(f->svg, s, &p->timeline));
    return write_trace(f->trace, &p->timeline);
}

/* Lists that the validator refuses are reported, not simulated. */
static nami_status refuse(const nami_simulate_flags *f, nami_status status)
{
    nami_text text = {0};
    if (!f->json)
        return status;
    nami_text_add(&text, "{\"schedule\":");
    nami_text_json(&text, f->lists.schedule);
    nami_text_add(&text, ",\"valid\":false,\"reason\":");
    nami_text_json(&text, nami_fail_text());
    nami_print("%s}\n", nami_text_get(&text));
    nami_text_free(&text);
    return status;
}

static nami_status simulate_lists(nami_simulate_costs *c, const nami_schedule *s)
{
    const nami_simulate_flags *f = c->flags;
    nami_cost cost;
    nami_prediction p;
    bool timeline = f->timeline || *f->svg != '\0' || *f->trace != '\0';
    NAMI_TRY(nami_simulate_check_pairs(f, s));
    NAMI_TRY(nami_simulate_costs_for(c, s->place.stages, &cost));
    nami_status status = nami_simulate(s, &cost, timeline, &p);
    if (status == NAMI_OK)
        status = report(f, s, &cost, &p);
    nami_prediction_free(&p);
    return status;
}

static void print_presets(void)
{
    nami_text text = {0};
    nami_lists_presets(&text);
    nami_print("%s", nami_text_get(&text));
    nami_text_free(&text);
}

static nami_status simulate_one(nami_simulate_costs *c)
{
    const nami_simulate_flags *f = c->flags;
    nami_recipe r;
    nami_schedule s = {0};
    NAMI_TRY(nami_lists_recipe(&f->lists, &r));
    NAMI_TRY(nami_simulate_check_one(f, &r));
    r.recompute = f->recompute;
    nami_status status = nami_simulate_lists(f, &r, &s);
    if (status == NAMI_EPLAN)
        status = refuse(f, status);
    if (status == NAMI_OK)
        status = simulate_lists(c, &s);
    nami_schedule_free(&s);
    return status;
}

static nami_status run_simulate(const nami_call *call)
{
    const nami_simulate_flags *f = call->options;
    nami_simulate_costs c;
    NAMI_TRY(nami_simulate_check(f));
    if (f->list) {
        print_presets();
        return NAMI_OK;
    }
    nami_status status = nami_simulate_costs_open(f, &c);
    if (status == NAMI_OK)
        status = f->compare ? nami_simulate_compare(&c) : simulate_one(&c);
    nami_simulate_costs_close(&c);
    return status;
}

const nami_command nami_cli_simulate = {
    .name = "simulate",
    .words = "",
    .summary = "predict a schedule: makespan, bubble, memory, pictures",
    .text = "Times are in the unit of the given costs; M_a is what one micro-batch "
            "keeps on one position.\n"
            "bubble = idle / (P x makespan), over all positions, from the first start "
            "to the last end.\n"
            "span bubble counts each position from its own first to its own last "
            "action: the largest.\n"
            "Without a flush the lists are a window of updates between two drains; "
            "steady is the time between its fill and its drain, and the delays of "
            "weights are counted in updates of the stage.\n"
            "Example: nami simulate --schedule hanayo --positions 4 --microbatches 8 "
            "--waves 2 --svg a.svg\n"
            "Example: nami simulate --schedule ashpipe --stage-replicas 4-3-1 "
            "--microbatches 60\n",
    .options = &nami_simulate_flag_table,
    .size = sizeof(nami_simulate_flags),
    .most = 0,
    .run = run_simulate,
};
