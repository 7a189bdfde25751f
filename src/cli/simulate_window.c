/* SPDX-License-Identifier: MIT */
/* simulate_window.c - what was simulated of a window without a flush: phases, and how stale each stage is. */
#include "cli/simulate.h"
#include "sched/staleness.h"

static void add_value(const char *key, double x, nami_text *out)
{
    nami_text_add(out, ",\"%s\":", key);
    nami_text_number(out, x);
}

/* Delays of the weights, of one kind of pass, over the units of a phase: "[least,mean,most]". */
static void add_spread(const char *key, const nami_spread *s, nami_text *out)
{
    nami_text_add(out, ",\"%s\":[%d,", key, s->least);
    nami_text_number(out, s->mean);
    nami_text_add(out, ",%d]", s->most);
}

void nami_simulate_window_json(const nami_schedule *s, const nami_prediction *p,
                               nami_text *out)
{
    nami_text_add(out, ",\"weights\":\"%s\",\"per_update\":%d,\"updates\":%d",
                  nami_weights_name(s->recipe.weights), nami_recipe_group(&s->recipe),
                  nami_recipe_updates(&s->recipe));
    add_value("fill", p->fill, out);
    add_value("steady", p->steady, out);
    add_value("drain", p->drain, out);
    add_value("steady_bubble", p->steady_bubble, out);
    nami_text_add(out, ",\"delay\":[");
    for (int i = 0; i < s->place.stages; i++) {
        nami_staleness d;
        nami_schedule_staleness(s, i, &d);
        nami_text_add(out, "%s{\"stage\":%d,\"versions\":%d", i > 0 ? "," : "", i,
                      d.versions);
        for (int k = 0; k < NAMI_WINDOW_PHASES; k++) {
            const char *name = nami_window_phase_name((nami_window_phase)k);
            nami_text_add(out, ",\"%s\":{\"units\":%d", name, d.forward[k].units);
            add_spread("forward", &d.forward[k], out);
            add_spread("backward", &d.backward[k], out);
            nami_text_add(out, "}");
        }
        nami_text_add(out, "}");
    }
    nami_text_add(out, "]");
}

static void add_spread_text(const nami_spread *s, nami_text *out)
{
    if (s->units == 0)
        nami_text_add(out, " %16s", "-");
    else if (s->least == s->most)
        nami_text_add(out, " %16d", s->most);
    else
        nami_text_add(out, " %4d, %5.2f, %3d", s->least, s->mean, s->most);
}

void nami_simulate_window(const nami_schedule *s, const nami_prediction *p,
                          nami_text *out)
{
    nami_text_add(
        out, "weights      %s: %d updates of %d micro-batch%s between two drains\n",
        nami_weights_name(s->recipe.weights), nami_recipe_updates(&s->recipe),
        nami_recipe_group(&s->recipe), nami_recipe_group(&s->recipe) == 1 ? "" : "es");
    if (p->steady > 0.0)
        nami_text_add(out,
                      "fill         %.10g\nsteady       %.10g, bubble %.4f %%\n"
                      "drain        %.10g\n",
                      p->fill, p->steady, 100.0 * p->steady_bubble, p->drain);
    else
        nami_text_add(out, "steady       never: the window drains before it is full\n");
    nami_text_add(out, "\ndelays in updates of the stage: least, mean, most when full; "
                       "most while it fills\n"
                       "   stage  versions   forward delay   backward delay     "
                       "filling\n");
    for (int i = 0; i < s->place.stages; i++) {
        nami_staleness d;
        nami_schedule_staleness(s, i, &d);
        nami_text_add(out, "%8d %9d   ", i, d.versions);
        add_spread_text(&d.forward[NAMI_WINDOW_STEADY], out);
        nami_text_add(out, "  ");
        add_spread_text(&d.backward[NAMI_WINDOW_STEADY], out);
        nami_text_add(out, " %11d\n", d.forward[NAMI_WINDOW_FILL].most);
    }
}

void nami_simulate_ranks(const nami_place *p, nami_text *out)
{
    bool all_alone = true;
    for (int i = 0; i < p->positions; i++)
        all_alone = all_alone && p->replicas[i] == 1;
    if (all_alone)
        return;
    nami_text_add(out, "ranks        ");
    for (int i = 0; i < p->positions; i++)
        nami_text_add(out, "%s%d", i > 0 ? "-" : "", p->replicas[i]);
    nami_text_add(out, " = %d\n", nami_place_ranks(p));
}
