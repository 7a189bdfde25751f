/* SPDX-License-Identifier: MIT */
/* simulate.c - `nami simulate`: predict a schedule. */
#include "cli/simulate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"

/* A number of at least zero, or `fallback` when the text is empty. */
static nami_status read_time(const char *key, const char *text, double fallback,
                             double *out)
{
    *out = fallback;
    if (*text == '\0')
        return NAMI_OK;
    if (!nami_parse_real(text, out) || !(*out >= 0.0) || isinf(*out))
        return nami_fail(NAMI_EINPUT,
                         "--%s \"%.40s\": a number of at least 0 is expected", key,
                         text);
    return NAMI_OK;
}

static nami_status read_cost(const nami_simulate_flags *f, nami_cost *out)
{
    *out = (nami_cost){
        .tf = f->tf, .latency = f->latency, .update = f->update, .reduce = f->reduce};
    NAMI_TRY(read_time("tbi", f->tbi, f->tb / 2.0, &out->tbi));
    NAMI_TRY(read_time("tbw", f->tbw, f->tb / 2.0, &out->tbw));
    if (strcmp(f->bandwidth, "inf") == 0)
        return NAMI_OK;
    if (!nami_parse_real(f->bandwidth, &out->bandwidth) || !(out->bandwidth > 0.0))
        return nami_fail(NAMI_EINPUT,
                         "--bandwidth \"%.40s\": a number above 0, or inf, is expected",
                         f->bandwidth);
    return NAMI_OK;
}

static void add_array(const char *key, const double *x, int count, nami_text *out)
{
    nami_text_add(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        nami_text_add(out, "%s", i > 0 ? "," : "");
        nami_text_number(out, x[i]);
    }
    nami_text_add(out, "]");
}

static void add_value(const char *key, double x, nami_text *out)
{
    nami_text_add(out, ",\"%s\":", key);
    nami_text_number(out, x);
}

void nami_simulate_json(const nami_schedule *s, const nami_prediction *p, bool sizes,
                        nami_text *out)
{
    int positions = s->place.positions;
    nami_text_add(out, "{\"schedule\":");
    nami_text_json(out, s->recipe.name);
    nami_text_add(out, ",\"positions\":%d,\"microbatches\":%d,\"stages\":%d", positions,
                  s->recipe.microbatches, s->place.stages);
    if (sizes)
        nami_text_add(out, ",\"waves\":%d,\"chunks\":%d", s->recipe.waves,
                      s->recipe.chunks);
    add_value("makespan", p->makespan, out);
    add_value("bubble", p->bubble, out);
    add_value("span_bubble", p->span_bubble, out);
    add_array("idle", p->idle, positions, out);
    add_array("peak_activations", p->peak, positions, out);
    add_array("weight_copies", p->weights, positions, out);
    nami_text_add(out, ",\"messages\":%lld,\"valid\":true}", (long long)p->messages);
}

/* The bubble that the Hanayo paper's equation (1) gives at M = P, T_B = 2 T_F, beside what its drawn schedule has. */
static void add_paper(const nami_schedule *s, const nami_cost *c, nami_text *out)
{
    const nami_recipe *r = &s->recipe;
    if (r->placement != NAMI_PLACE_WAVE || r->microbatches != r->positions ||
        c->tbi + c->tbw != 2.0 * c->tf)
        return;
    int p = r->positions, w = r->waves;
    nami_text_add(out,
                  "equation (1) of the Hanayo paper gives %.2f %%: its denominator has "
                  "T_B/(2W) where "
                  "the schedule it draws takes T_B/W\n",
                  100.0 * (2.0 * p - 2.0) / (3.0 * p * w + p - 1.0));
}

static void add_table(const nami_schedule *s, const nami_cost *c,
                      const nami_prediction *p, nami_text *out)
{
    nami_text_add(out, "%s: %d positions, %d micro-batches, %d stages\n",
                  s->recipe.name, s->place.positions, s->recipe.microbatches,
                  s->place.stages);
    nami_text_add(out,
                  "makespan     %.10g\nbubble       %.4f %%\nspan bubble  %.4f "
                  "%%\nmessages     %lld\n",
                  p->makespan, 100.0 * p->bubble, 100.0 * p->span_bubble,
                  (long long)p->messages);
    add_paper(s, c, out);
    nami_text_add(out, "\nposition       busy       idle   idle %%   activations [M_a] "
                       "  weights [model/P]\n");
    for (int i = 0; i < s->place.positions; i++)
        nami_text_add(out, "%8d %10.6g %10.6g %8.2f %19.6g %19.6g\n", i, p->busy[i],
                      p->idle[i],
                      p->makespan > 0.0 ? 100.0 * p->idle[i] / p->makespan : 0.0,
                      p->peak[i], p->weights[i]);
}

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
        add_table(s, cost, p, &text);
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
    if (f->lowered || f->update > 0.0 || f->reduce > 0.0)
        return nami_schedule_make(r, purpose, out);
    NAMI_TRY(nami_schedule_generate(r, purpose, out));
    return nami_schedule_validate(out);
}

static nami_status simulate_lists(const nami_simulate_flags *f, const nami_schedule *s,
                                  nami_cost *cost)
{
    nami_prediction p;
    bool timeline = f->timeline || *f->svg != '\0' || *f->trace != '\0';
    double *bytes = nami_alloc(NAMI_MEM_OTHER, (size_t)s->place.stages * sizeof *bytes);
    for (int i = 0; i < s->place.stages; i++)
        bytes[i] = f->bytes;
    cost->bytes = bytes;
    nami_status status = nami_simulate(s, cost, timeline, &p);
    if (status == NAMI_OK)
        status = report(f, s, cost, &p);
    nami_prediction_free(&p);
    nami_free(bytes);
    cost->bytes = NULL;
    return status;
}

static void print_presets(void)
{
    nami_text text = {0};
    nami_lists_presets(&text);
    nami_print("%s", nami_text_get(&text));
    nami_text_free(&text);
}

static nami_status run_simulate(const nami_call *call)
{
    const nami_simulate_flags *f = call->options;
    nami_cost cost;
    nami_recipe r;
    nami_schedule s = {0};
    if (f->list) {
        print_presets();
        return NAMI_OK;
    }
    NAMI_TRY(read_cost(f, &cost));
    if (f->compare)
        return nami_simulate_compare(f, &cost);
    NAMI_TRY(nami_lists_recipe(&f->lists, &r));
    r.recompute = f->recompute;
    nami_status status = make_lists(f, &r, &s);
    if (status == NAMI_EPLAN)
        status = refuse(f, status);
    if (status == NAMI_OK)
        status = simulate_lists(f, &s, &cost);
    nami_schedule_free(&s);
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
    TIME("latency", latency, "0", "time of a message between positions"),
    TEXT("bandwidth", bandwidth, "inf", "bytes a time unit of a message, or inf"),
    TIME("bytes", bytes, "0", "bytes of a message"),
    TIME("update", update, "0", "optimiser step of one position"),
    TIME("reduce", reduce, "0",
         "sum of one position's gradients, beside the computation"),
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
            "Example: nami simulate --schedule hanayo --positions 4 --microbatches 8 "
            "--waves 2 --svg a.svg\n",
    .options = &table,
    .size = sizeof(nami_simulate_flags),
    .most = 0,
    .run = run_simulate,
};
