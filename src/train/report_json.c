/* SPDX-License-Identifier: MIT */
/* report_json.c - the text of report.json. */
#include <math.h>

#include "base/clock.h"
#include "train/gap.h"
#include "train/report.h"

/* --- one key a line --- */

static void add_key(nami_text *t, const char *key)
{
    nami_text_add(t, ",\n  \"%s\":", key);
}

static void add_number(nami_text *t, const char *key, double x)
{
    add_key(t, key);
    nami_text_number(t, x);
}

static void add_whole(nami_text *t, const char *key, int64_t x)
{
    add_key(t, key);
    nami_text_add(t, "%lld", (long long)x);
}

static void add_text(nami_text *t, const char *key, const char *text)
{
    add_key(t, key);
    nami_text_json(t, text);
}

/* ,"key":{"minimum":..,"average":..,"maximum":..} */
static void add_spread(nami_text *t, const char *key, const nami_rank_report *all,
                       int ranks, int phase, bool first)
{
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int r = 0; r < ranks; r++) {
        double x = all[r].seconds[phase];
        low = fmin(low, x);
        high = fmax(high, x);
        sum += x;
    }
    nami_text_add(t, "%s\n    ", first ? "" : ",");
    nami_text_json(t, key);
    nami_text_add(t, ":{\"minimum\":");
    nami_text_number(t, low);
    nami_event_number(t, "average", sum / ranks);
    nami_event_number(t, "maximum", high);
    nami_text_add(t, "}");
}

static void add_phases(nami_text *t, const nami_rank_report *all, int ranks)
{
    add_key(t, "phase_seconds");
    nami_text_add(t, "{");
    for (int p = 0; p < NAMI_PHASES; p++)
        add_spread(t, nami_phase_name((nami_phase)p), all, ranks, p, p == 0);
    nami_text_add(t, "\n  }");
}

/* Most bytes of any replica of each position: measured, predicted, resident. */
static void add_memory(nami_text *t, const nami_job *job, const nami_rank_report *all)
{
    const nami_layout *l = &job->layout;
    int positions = l->recipe.positions;
    const char *key[3] = {"peak_bytes_measured", "peak_bytes_predicted",
                          "resident_peak_bytes"};
    for (int k = 0; k < 3; k++) {
        add_key(t, key[k]);
        nami_text_add(t, "[");
        for (int p = 0; p < positions; p++) {
            double most = 0;
            for (int d = 0; d < nami_layout_replicas(l, p); d++) {
                const nami_rank_report *r = &all[nami_layout_rank(l, p, d)];
                most = fmax(most, k == 0 ? r->peak_bytes : r->resident_bytes);
            }
            if (k == 1)
                most = (double)(job->budget[p].total -
                                job->budget[p].bytes[NAMI_MEM_DATA]);
            nami_text_add(t, "%s%.0f", p ? "," : "", most);
        }
        nami_text_add(t, "]");
    }
}

/* Where the last step idled beyond its prediction. */
static void add_gaps(nami_text *t, const nami_run *run, const nami_timeline *measured,
                     const nami_prediction *predicted)
{
    nami_gap gap[NAMI_GAPS];
    int count =
        predicted->timeline.positions == 0
            ? 0
            : nami_gap_largest(measured, &predicted->timeline, &run->job.layout, gap);
    add_key(t, "gaps");
    nami_text_add(t, "[");
    for (int i = 0; i < count; i++) {
        nami_text_add(t, "%s\n    {\"before\":\"", i ? "," : "");
        nami_action_print(gap[i].before, t);
        nami_text_add(t, "\"");
        nami_event_whole(t, "rank", gap[i].rank);
        nami_event_number(t, "measured", gap[i].measured);
        nami_event_number(t, "predicted", gap[i].predicted);
        nami_text_add(t, "}");
    }
    nami_text_add(t, "\n  ]");
}

static void add_rates(nami_text *t, const nami_run *run, const nami_findings *f)
{
    const nami_meter *m = &run->meter;
    int64_t n = m->steps;
    add_whole(t, "steady_steps", n);
    add_number(t, "step_seconds", f->now.seconds);
    add_number(t, "step_seconds_planned", f->planned);
    add_number(t, "tokens_per_second", f->now.tokens);
    add_number(t, "bubble_measured", f->now.bubble);
    add_number(t, "bubble_predicted", f->now.predicted);
    add_number(t, "span_seconds_measured", f->now.span[0]);
    add_number(t, "span_seconds_predicted", f->now.span[1]);
    add_number(t, "hop_seconds", m->hop);
    add_number(t, "hop_step_seconds", m->step_hop);
    add_number(t, "matrix_peak_share", n ? m->flops / (m->seconds * m->peak) : NAN);
    add_number(t, "matrix_peak_flops_per_second", m->peak);
    add_number(t, "save_seconds", run->save_total);
    add_number(t, "eval_seconds", run->eval_total);
}

/* How the last window ran while it was full; a step with a flush is one. */
static void add_steady(nami_text *t, const nami_findings *f)
{
    double steady, bubble = nami_timeline_steady(&f->timeline, &steady);
    const bool full = steady > 0 && f->predicted.steady > 0;
    add_number(t, "steady_seconds_measured", full ? steady : NAN);
    add_number(t, "steady_bubble_measured", full ? bubble : NAN);
    add_number(t, "steady_bubble_predicted", full ? f->predicted.steady_bubble : NAN);
}

static void add_layout(nami_text *t, const nami_run *run)
{
    const nami_layout *l = &run->job.layout;
    nami_text ranks = {0};
    add_key(t, "layout");
    nami_text_add(t, "{\"schedule\":");
    nami_text_json(t, nami_job_pipeline(&run->job)->schedule);
    nami_event_whole(t, "positions", l->recipe.positions);
    nami_event_whole(t, "replicas", l->replicas);
    nami_leg_replicas(l, &ranks);
    nami_event_text(t, "stage_replicas", nami_text_get(&ranks));
    nami_text_free(&ranks);
    nami_event_whole(t, "partials", l->partials);
    nami_event_whole(t, "stages", nami_layout_stages(l));
    nami_event_whole(t, "microbatches", l->batch / l->micro);
    nami_event_whole(t, "microbatch_samples", l->micro);
    nami_text_add(t, ",\"cuts\":[");
    for (int s = 0; s < nami_layout_stages(l); s++)
        nami_text_add(t, "%s%d", s ? "," : "", l->cut[s]);
    nami_text_add(t, "]}");
}

/* ,"key":{"measured":..,"predicted":..} */
static void add_pair(nami_text *t, const char *key, double measured, double predicted)
{
    nami_text_add(t, ",\"%s\":{\"measured\":", key);
    nami_text_number(t, measured);
    nami_event_number(t, "predicted", predicted);
    nami_text_add(t, "}");
}

static void add_leg(nami_text *t, const nami_run *run, const nami_leg_record *r)
{
    nami_text_add(t, "{\"schedule\":");
    nami_text_json(t, run->job.leg[r->leg].pipeline.schedule);
    nami_event_text(t, "section", nami_leg_name(r->leg));
    nami_event_whole(t, "first_step", r->first);
    nami_event_whole(t, "last_step", r->last);
    nami_event_whole(t, "positions", r->positions);
    nami_event_whole(t, "replicas", r->replicas);
    nami_event_whole(t, "stages", r->stages);
    nami_event_whole(t, "measured_steps", r->steady);
    nami_event_number(t, "mean_step_seconds", r->seconds);
    nami_event_number(t, "mean_tokens_per_second", r->tokens);
    add_pair(t, "bubble", r->bubble, r->predicted);
    add_pair(t, "span_seconds", r->span[0], r->span[1]);
    nami_text_add(t, ",\"staleness\":");
    nami_stale_json(r->stale, r->stages, t);
    nami_text_add(t, "}");
}

/* Which layout ran which steps of this run. */
static void add_legs(nami_text *t, const nami_run *run, const nami_leg_record *now)
{
    add_key(t, "legs");
    nami_text_add(t, "[");
    for (int i = 0; i < run->pasts; i++) {
        nami_text_add(t, "\n    ");
        add_leg(t, run, &run->past[i]);
        nami_text_add(t, ",");
    }
    nami_text_add(t, "\n    ");
    add_leg(t, run, now);
    nami_text_add(t, "\n  ]");
}

static void add_hosts(nami_text *t, const nami_comm_place *place, int ranks)
{
    add_key(t, "rank_hosts");
    nami_text_add(t, "[");
    for (int r = 0; r < ranks; r++) {
        nami_text_add(t, "%s\n    {\"host\":", r ? "," : "");
        nami_text_json(t, place[r].host);
        nami_event_text(t, "cores", place[r].cores);
        nami_event_whole(t, "threads", place[r].threads);
        nami_text_add(t, "}");
    }
    nami_text_add(t, "\n  ]");
}

static void add_provenance(nami_text *t, const nami_run *run)
{
    char utc[32];
    add_text(t, "command", run->request->command);
    add_key(t, "versions");
    nami_text_add(t, "{\"nami\":");
    nami_text_json(t, run->request->version);
    nami_event_text(t, "mpi", nami_comm_version());
    nami_event_text(t, "build", run->request->build);
    nami_text_add(t, "}");
    add_text(t, "start_utc", run->begun);
    add_text(t, "end_utc", nami_utc(utc));
    add_text(t, "parent_checkpoint", run->parent);
    add_text(t, "data_identity", nami_job_identity(&run->job));
    add_whole(t, "seed", run->settings->train.seed);
}

void nami_report_compose(nami_text *t, const nami_run *run, const char *outcome,
                         const nami_findings *f)
{
    int ranks = run->job.ranks;
    nami_text_add(t, "{\n  \"outcome\":");
    nami_text_json(t, outcome);
    add_whole(t, "steps_done", run->step);
    add_whole(t, "steps", run->settings->train.steps);
    add_number(t, "loss", run->last.loss);
    add_number(t, "validation_loss", run->valid_loss);
    if (run->valid.tokens > 0) {
        double tokens = (double)run->valid.tokens;
        add_number(t, "validation_top1", (double)run->valid.best / tokens);
        add_number(t, "validation_top5", (double)run->valid.five / tokens);
    }
    if (run->valid.pairs > 0) {
        double pairs = (double)run->valid.pairs;
        add_number(t, "validation_masked_loss", run->valid.part[0]);
        add_number(t, "validation_next_loss", run->valid.part[1]);
        add_number(t, "validation_next_accuracy", (double)run->valid.right / pairs);
    }
    if (run->best.step > 0)
        add_whole(t, "best_step", run->best.step);
    add_whole(t, "parameters", nami_model_count(run->job.model));
    add_whole(t, "ranks", ranks);
    add_rates(t, run, f);
    add_steady(t, f);
    add_gaps(t, run, &f->timeline, &f->predicted);
    add_memory(t, &run->job, f->all);
    add_phases(t, f->all, ranks);
    add_layout(t, run);
    add_legs(t, run, &f->now);
    add_hosts(t, f->place, ranks);
    add_provenance(t, run);
    nami_text_add(t, "\n}\n");
}
