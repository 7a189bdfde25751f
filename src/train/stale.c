/* SPDX-License-Identifier: MIT */
/* stale.c - how old the weights were, of all stages. */
#include "train/stale.h"

#include "base/memory.h"
#include "train/journal.h"

/* Add what another rank counted of the same units, or of others. */
static void join_delays(nami_exec_delays *to, const nami_exec_delays *from)
{
    if (from->units == 0)
        return;
    to->least = to->units == 0 || from->least < to->least ? from->least : to->least;
    to->most = from->most > to->most ? from->most : to->most;
    to->sum += from->sum;
    to->units += from->units;
}

static void join_stage(nami_exec_staleness *to, const nami_exec_staleness *from)
{
    to->versions = from->versions > to->versions ? from->versions : to->versions;
    for (int pass = 0; pass < 2; pass++) {
        join_delays(&to->fill[pass], &from->fill[pass]);
        join_delays(&to->steady[pass], &from->steady[pass]);
        join_delays(&to->drain[pass], &from->drain[pass]);
    }
}

/* Replicas that split samples run the same units: one of them counts. */
static bool has_own_units(const nami_layout *l, int rank)
{
    return l->recipe.split == NAMI_SPLIT_MICROBATCH ||
           nami_layout_replica(l, rank) == 0;
}

nami_stale *nami_stale_gather(const nami_job *job)
{
    const nami_layout *l = &job->layout;
    int stages = nami_layout_stages(l), ranks = job->ranks;
    if (nami_recipe_flushes(&l->recipe))
        return NULL;
    size_t each = (size_t)stages * sizeof(nami_exec_staleness);
    nami_exec_staleness *own = nami_calloc(NAMI_MEM_OTHER, 1, each);
    nami_exec_staleness *all = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, each);
    nami_stale *out = nami_calloc(NAMI_MEM_OTHER, (size_t)stages, sizeof *out);
    (void)nami_exec_stages(job->exec, stages, own); /* the rest has no versions */
    nami_comm_gather(job->comm, own, each, all);
    for (int i = 0; i < ranks * stages; i++)
        if (all[i].versions > 0 && has_own_units(l, i / stages))
            join_stage(&out[all[i].stage].measured, &all[i]);
    for (int s = 0; s < stages; s++) {
        out[s].measured.stage = s;
        nami_schedule_staleness(&l->train, s, &out[s].lists);
    }
    nami_free(all);
    nami_free(own);
    return out;
}

/* {"units":..,"least":..,"mean":..,"most":..} */
static void add_delays(nami_text *t, int64_t units, int least, double mean, int most)
{
    nami_text_add(t, "{\"units\":%lld", (long long)units);
    nami_event_whole(t, "least", least);
    nami_event_number(t, "mean", mean);
    nami_event_whole(t, "most", most);
    nami_text_add(t, "}");
}

static double mean_of(const nami_exec_delays *d)
{
    return d->units > 0 ? d->sum / (double)d->units : 0;
}

/* ,"steady":{"forward":{"measured":{..},"lists":{..}},"backward":{..}} */
static void add_phase(nami_text *t, const nami_stale *s, nami_window_phase phase)
{
    const nami_exec_delays *const measured[NAMI_WINDOW_PHASES] = {
        s->measured.fill, s->measured.steady, s->measured.drain};
    nami_text_add(t, ",\"%s\":{", nami_window_phase_name(phase));
    for (int pass = 0; pass < 2; pass++) {
        const nami_exec_delays *m = &measured[phase][pass];
        const nami_spread *l =
            pass == 0 ? &s->lists.forward[phase] : &s->lists.backward[phase];
        nami_text_add(t, "%s{\"measured\":", pass ? ",\"backward\":" : "\"forward\":");
        add_delays(t, m->units, m->least, mean_of(m), m->most);
        nami_text_add(t, ",\"lists\":");
        add_delays(t, l->units, l->least, l->mean, l->most);
        nami_text_add(t, "}");
    }
    nami_text_add(t, "}");
}

void nami_stale_json(const nami_stale *all, int stages, nami_text *out)
{
    nami_text_add(out, "[");
    for (int s = 0; all && s < stages; s++) {
        nami_text_add(out, "%s\n      {\"stage\":%d", s ? "," : "", s);
        nami_text_add(out, ",\"versions\":{\"measured\":%d", all[s].measured.versions);
        nami_event_whole(out, "lists", all[s].lists.versions);
        nami_text_add(out, "}");
        for (int p = 0; p < NAMI_WINDOW_PHASES; p++)
            add_phase(out, &all[s], (nami_window_phase)p);
        nami_text_add(out, "}");
    }
    nami_text_add(out, "]");
}

void nami_stale_text(const nami_stale *all, int stages, nami_text *out)
{
    for (int s = 0; all && s < stages; s++) {
        const nami_exec_delays *f = &all[s].measured.steady[0],
                               *b = &all[s].measured.steady[1];
        nami_text_add(out, "\nstage %d: %d versions; ", s, all[s].measured.versions);
        if (f->units == 0)
            nami_text_add(out, "windows too short to become steady");
        else
            nami_text_add(out,
                          "updates late when steady: forward %d to %d (mean %.2f), "
                          "backward %d to %d (mean %.2f)",
                          f->least, f->most, mean_of(f), b->least, b->most, mean_of(b));
    }
}
