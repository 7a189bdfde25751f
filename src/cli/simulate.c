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

/* The lists asked for: compute actions, or with communication as well. */
static nami_status make_lists(const nami_simulate_flags *f, const nami_recipe *r,
                              nami_schedule *out)
{
    nami_purpose purpose = f->evaluate ? NAMI_PURPOSE_EVALUATE : NAMI_PURPOSE_TRAIN;
    if (f->lowered || !nami_recipe_flushes(r) || f->reduce_alone || f->update > 0.0 ||
        f->reduce > 0.0)
        return nami_schedule_make(r, purpose, out);
    NAMI_TRY(nami_schedule_generate(r, purpose, out));
    return nami_schedule_validate(out);
}

static nami_status simulate_lists(nami_simulate_costs *c, const nami_schedule *s)
{
    const nami_simulate_flags *f = c->flags;
    nami_cost cost;
    nami_prediction p;
    bool timeline = f->timeline || *f->svg != '\0' || *f->trace != '\0';
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
    r.recompute = f->recompute;
    nami_status status = make_lists(f, &r, &s);
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

#define FIELD(name) offsetof(nami_simulate_flags, name)
#define TIME(word, field, value, text)                                                 \
    {                                                                                  \
        .key = (word), .kind = NAMI_OPTION_REAL, .offset = FIELD(field),               \
        .fallback = (value), .minimum = 0.0, .maximum = 1e30, .help = (text)           \
    }
#define TEXT(word, field, value, text)                                                 \
    {                                                                                  \
        .key = (word), .kind = NAMI_OPTION_TEXT, .offset = FIELD(field),               \
        .fallback = (value), .help = (text)                                            \
    }
#define SWITCH(word, field, text)                                                      \
    {                                                                                  \
        .key = (word), .kind = NAMI_OPTION_BOOL, .offset = FIELD(field),               \
        .fallback = "no", .help = (text)                                               \
    }
static const nami_option rows[] = {
    NAMI_LISTS_ROWS(nami_simulate_flags, lists),
    TIME("tf", tf, "1",
         "forward of one micro-batch on one position's share of the model"),
    TIME("tb", tb, "2", "backward of the same"),
    TEXT("tbi", tbi, "", "backward with respect to the input; empty: half of --tb"),
    TEXT("tbw", tbw, "", "backward with respect to the weights; empty: half of --tb"),
    TEXT("tr", tr, "",
         "with --recompute: the forward run again in the backward; empty: --tf"),
    TEXT(
        "profile", profile, "",
        "file of measured times of layers or stages, instead of --tf and --tb: columns "
        "f, bi, bw (or b) and bytes, named in its first line"),
    TIME("latency", latency, "0", "time of a message between positions"),
    TEXT("bandwidth", bandwidth, "inf", "bytes a time unit of a message, or inf"),
    TIME("bytes", bytes, "0", "bytes of a message"),
    {.key = "samples",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(samples),
     .fallback = "0",
     .minimum = 0,
     .maximum = INT32_MAX,
     .help = "samples of a micro-batch, where they are split over ranks: decides how "
             "many messages there are; 0: very many"},
    {.key = "ranks-per-node",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(ranks_per_node),
     .fallback = "0",
     .minimum = 0,
     .maximum = NAMI_STAGES_MOST,
     .help = "positions that share a node; 0: all share one"},
    TEXT("node-latency", node_latency, "",
         "time of a message between nodes; empty: --latency"),
    TEXT("node-bandwidth", node_bandwidth, "",
         "bytes a time unit of a message between nodes, or inf; empty: --bandwidth"),
    SWITCH("apart", apart,
           "run pairs of actions one after the other, each when it can"),
    SWITCH("serial-links", serial,
           "a position sends one message after another to the same peer"),
    TIME("update", update, "0", "optimiser step of one position"),
    TIME("reduce", reduce, "0",
         "sum of one position's gradients, beside the computation"),
    SWITCH("reduce-alone", reduce_alone, "compute nothing beside such a sum"),
    SWITCH("recompute", recompute, "run each forward again in its backward"),
    SWITCH("evaluate", evaluate, "forwards only, as in an evaluation"),
    SWITCH("lowered", lowered, "with communication, REDUCE and UPDATE in the lists"),
    SWITCH("list", list, "print the named schedules and what they are"),
    SWITCH("json", json, "print one JSON object"),
    SWITCH("actions", actions,
           "print the lists in text form (2F0: stage, kind, micro-batch)"),
    SWITCH("timeline", timeline, "print the timeline in letters"),
    TEXT("csv", csv, "",
         "write the lists to this file, as torch.distributed.pipelining does"),
    TEXT("svg", svg, "", "write a picture of the timeline to this file"),
    TEXT("trace", trace, "", "write a Chrome or Perfetto trace to this file"),
    SWITCH("compare", compare,
           "all named schedules for the given P, M and costs, best first"),
    TIME("memory", memory, "0",
         "with --compare: the most activations (in M_a) that a position may hold; 0: "
         "any"),
    TIME("state", state, "0",
         "with --compare: what the weights of model/P take with gradients and "
         "optimiser, "
         "in M_a; counts against --memory for each copy"),
};
static const nami_option_table table = {.row = rows,
                                        .rows = sizeof rows / sizeof *rows};

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
    .options = &table,
    .size = sizeof(nami_simulate_flags),
    .most = 0,
    .run = run_simulate,
};
