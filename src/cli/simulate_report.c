/* SPDX-License-Identifier: MIT */
/* simulate_report.c - what was simulated, as a table and as JSON. */
#include <stdio.h>

#include "cli/simulate.h"
#include "sched/order.h"
#include "sched/version.h"

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

/* Kinds with a time in the chain. */
static void add_critical_json(const nami_critical *c, nami_text *out)
{
    nami_text_add(out, ",\"critical_path\":{\"first\":%d,\"last\":%d", c->first,
                  c->last);
    for (int kind = 0; kind < NAMI_KINDS; kind++) {
        if (c->kind[kind] > 0.0)
            add_value(nami_semantics_of(kind)->name, c->kind[kind], out);
    }
    add_value("message", c->message, out);
    nami_text_add(out, ",\"messages\":%lld}", (long long)c->messages);
}

static void add_critical(const nami_critical *c, nami_text *out)
{
    nami_text_add(out, "critical path from position %d to %d:", c->first, c->last);
    for (int kind = 0; kind < NAMI_KINDS; kind++) {
        if (c->kind[kind] > 0.0)
            nami_text_add(out, " %s %.6g,", nami_semantics_of(kind)->name,
                          c->kind[kind]);
    }
    nami_text_add(out, " messages %.6g (%lld)\n", c->message, (long long)c->messages);
}

/* What the order itself says against these counts. */
static void add_advice(const nami_recipe *r, nami_text *out)
{
    const nami_order *order = nami_order_find(r->order);
    const char *advice = order && order->advise ? order->advise(r) : NULL;
    if (advice)
        nami_text_add(out, "note: %s\n", advice);
}

void nami_simulate_size(const nami_recipe *r, char text[16])
{
    const nami_order *order = nami_order_find(r->order);
    text[0] = '\0';
    if (r->placement == NAMI_PLACE_WAVE && !order->one_wave)
        snprintf(text, 16, " W=%d", r->waves);
    if (r->placement == NAMI_PLACE_LOOPING)
        snprintf(text, 16, " V=%d", r->chunks);
    if (r->slices > 1)
        snprintf(text, 16, " K=%d", r->slices);
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
        nami_text_add(out, ",\"waves\":%d,\"chunks\":%d,\"slices\":%d", s->recipe.waves,
                      s->recipe.chunks, s->recipe.slices);
    add_value("makespan", p->makespan, out);
    add_value("bubble", p->bubble, out);
    add_value("span_bubble", p->span_bubble, out);
    add_array("idle", p->idle, positions, out);
    add_array("peak_activations", p->peak, positions, out);
    add_array("weight_copies", p->weights, positions, out);
    nami_text_add(out, ",\"messages\":%lld", (long long)p->messages);
    add_array("bytes_sent", p->sent, positions, out);
    add_array("bytes_received", p->received, positions, out);
    add_critical_json(&p->critical, out);
    if (nami_versions_kept(s))
        nami_simulate_window_json(s, p, out);
    nami_text_add(out, ",\"valid\":true}");
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

/* Bytes stand there where messages have a size. */
static void add_positions(int positions, const nami_prediction *p, nami_text *out)
{
    bool bytes = false;
    for (int i = 0; i < positions; i++)
        bytes = bytes || p->sent[i] > 0.0;
    nami_text_add(out,
                  "\nposition       busy       idle   idle %%  activations [M_a]  "
                  "weights [model/P]%s\n",
                  bytes ? " bytes sent   received" : "");
    for (int i = 0; i < positions; i++) {
        nami_text_add(out, "%8d %10.6g %10.6g %8.2f %18.6g %18.6g", i, p->busy[i],
                      p->idle[i],
                      p->makespan > 0.0 ? 100.0 * p->idle[i] / p->makespan : 0.0,
                      p->peak[i], p->weights[i]);
        if (bytes)
            nami_text_add(out, " %10.5g %10.5g", p->sent[i], p->received[i]);
        nami_text_add(out, "\n");
    }
}

void nami_simulate_table(const nami_schedule *s, const nami_cost *c,
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
    add_critical(&p->critical, out);
    nami_simulate_ranks(&s->place, out);
    if (nami_versions_kept(s))
        nami_simulate_window(s, p, out);
    add_paper(s, c, out);
    add_advice(&s->recipe, out);
    add_positions(s->place.positions, p, out);
}
