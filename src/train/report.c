/* SPDX-License-Identifier: MIT */
/* report.c - report.json and timeline.svg: what a run cost, measured beside predicted. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/gap.h"
#include "train/inner.h"

/* What a rank says of itself. */
typedef struct rank_report {
    double seconds[NAMI_PHASES];
    double peak_bytes, resident_bytes;
} rank_report;

/* Bytes that the executor holds: it asks for all of them at its start. Data sets kept whole are not its own. */
static double held_bytes(void)
{
    double sum = 0;
    for (int t = NAMI_MEM_OTHER + 1; t < NAMI_MEM_TAGS; t++)
        if (t != NAMI_MEM_DATA)
            sum += (double)nami_memory_now((nami_tag)t);
    return sum;
}

/* ,"key":{"minimum":..,"average":..,"maximum":..} */
static void add_spread(nami_text *t, const char *key, const rank_report *all, int ranks,
                       int phase, bool first)
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

static void add_phases(nami_text *t, const rank_report *all, int ranks)
{
    nami_text_add(t, ",\n  \"phase_seconds\":{");
    for (int p = 0; p < NAMI_PHASES; p++)
        add_spread(t, nami_phase_name((nami_phase)p), all, ranks, p, p == 0);
    nami_text_add(t, "\n  }");
}

/* Most bytes of any replica of each position: measured, predicted, resident. */
static void add_memory(nami_text *t, const nami_job *job, const rank_report *all)
{
    const nami_layout *l = &job->layout;
    int positions = l->recipe.positions;
    const char *key[3] = {"peak_bytes_measured", "peak_bytes_predicted",
                          "resident_peak_bytes"};
    for (int k = 0; k < 3; k++) {
        nami_text_add(t, ",\n  \"%s\":[", key[k]);
        for (int p = 0; p < positions; p++) {
            double most = 0;
            for (int d = 0; d < nami_layout_replicas(l, p); d++) {
                const rank_report *r = &all[nami_layout_rank(l, p, d)];
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
    nami_text_add(t, ",\n  \"gaps\":[");
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

void nami_run_record(nami_run *run, nami_prediction *predicted, nami_leg_record *out)
{
    const nami_meter *m = &run->meter;
    const nami_layout *l = &run->job.layout;
    double n = (double)m->steps;
    nami_meter_predict(m, &run->job, predicted);
    *out = (nami_leg_record){.leg = run->job.current,
                             .first = run->leg_from + 1,
                             .last = run->step,
                             .steady = m->steps,
                             .positions = l->recipe.positions,
                             .replicas = l->replicas,
                             .stages = nami_layout_stages(l),
                             .seconds = NAN,
                             .tokens = NAN,
                             .bubble = NAN,
                             .stale = nami_stale_gather(&run->job),
                             .predicted = predicted->bubble,
                             .span = {NAN, NAN}};
    if (m->steps == 0)
        return;
    out->seconds = m->seconds / n;
    out->tokens = (double)m->tokens / m->seconds;
    out->bubble = m->idle / (m->makespan * run->job.ranks);
    out->span[0] = m->makespan / n;
    out->span[1] = predicted->makespan / l->window;
}

void nami_run_forget(nami_leg_record *record)
{
    nami_free(record->stale);
    *record = (nami_leg_record){0};
}

/* What nami plan said of a step of section [pipeline]; NaN where nobody asked it. */
static double planned(const nami_run *run)
{
    double predicted = run->settings->plan.predicted;
    return predicted > 0 && run->job.current == 0 ? predicted : NAN;
}

static void add_rates(nami_text *t, const nami_run *run, const nami_leg_record *now)
{
    const nami_meter *m = &run->meter;
    int64_t n = m->steps;
    nami_event_whole(t, "steady_steps", n);
    nami_event_number(t, "step_seconds", now->seconds);
    nami_event_number(t, "step_seconds_planned", planned(run));
    nami_event_number(t, "tokens_per_second", now->tokens);
    nami_text_add(t, "\n ");
    nami_event_number(t, "bubble_measured", now->bubble);
    nami_event_number(t, "bubble_predicted", now->predicted);
    nami_event_number(t, "span_seconds_measured", now->span[0]);
    nami_event_number(t, "span_seconds_predicted", now->span[1]);
    nami_event_number(t, "hop_seconds", m->hop);
    nami_event_number(t, "hop_step_seconds", m->step_hop);
    nami_text_add(t, "\n ");
    nami_event_number(t, "matrix_peak_share",
                      n ? m->flops / (m->seconds * m->peak) : NAN);
    nami_event_number(t, "matrix_peak_flops_per_second", m->peak);
    nami_event_number(t, "save_seconds", run->save_total);
    nami_event_number(t, "eval_seconds", run->eval_total);
}

/* What all ranks have to say, on rank 0. */
typedef struct findings {
    const rank_report *all;
    const nami_comm_place *place;
    nami_leg_record now; /* of the current leg */
    nami_prediction predicted;
    nami_timeline timeline;
} findings;

/* How the last window ran while it was full; a step with a flush is one. */
static void add_steady(nami_text *t, const findings *f)
{
    double steady, bubble = nami_timeline_steady(&f->timeline, &steady);
    const bool full = steady > 0 && f->predicted.steady > 0;
    nami_event_number(t, "steady_seconds_measured", full ? steady : NAN);
    nami_event_number(t, "steady_bubble_measured", full ? bubble : NAN);
    nami_event_number(t, "steady_bubble_predicted",
                      full ? f->predicted.steady_bubble : NAN);
    nami_text_add(t, "\n ");
}

static void add_layout(nami_text *t, const nami_run *run)
{
    const nami_layout *l = &run->job.layout;
    nami_text ranks = {0};
    nami_text_add(t, ",\n  \"layout\":{\"schedule\":");
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
    nami_text_add(t, ",\n  \"legs\":[");
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
    nami_text_add(t, ",\n  \"rank_hosts\":[");
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
    nami_event_text(t, "command", run->request->command);
    nami_text_add(t, "\n ,\"versions\":{\"nami\":");
    nami_text_json(t, run->request->version);
    nami_event_text(t, "mpi", nami_comm_version());
    nami_event_text(t, "build", run->request->build);
    nami_text_add(t, "}\n ");
    nami_event_text(t, "start_utc", run->begun);
    nami_event_text(t, "end_utc", nami_utc(utc));
    nami_event_text(t, "parent_checkpoint", run->parent);
    nami_event_text(t, "data_identity", nami_job_identity(&run->job));
    nami_event_whole(t, "seed", run->settings->train.seed);
}

static void compose(nami_text *t, const nami_run *run, const char *outcome,
                    const findings *f)
{
    int ranks = run->job.ranks;
    nami_text_add(t, "{\"outcome\":");
    nami_text_json(t, outcome);
    nami_event_whole(t, "steps_done", run->step);
    nami_event_whole(t, "steps", run->settings->train.steps);
    nami_event_number(t, "loss", run->last.loss);
    nami_event_number(t, "validation_loss", run->valid_loss);
    if (run->valid.tokens > 0) {
        double tokens = (double)run->valid.tokens;
        nami_event_number(t, "validation_top1", (double)run->valid.best / tokens);
        nami_event_number(t, "validation_top5", (double)run->valid.five / tokens);
    }
    if (run->valid.pairs > 0) {
        double pairs = (double)run->valid.pairs;
        nami_event_number(t, "validation_masked_loss", run->valid.part[0]);
        nami_event_number(t, "validation_next_loss", run->valid.part[1]);
        nami_event_number(t, "validation_next_accuracy",
                          (double)run->valid.right / pairs);
    }
    if (run->best.step > 0)
        nami_event_whole(t, "best_step", run->best.step);
    nami_event_whole(t, "parameters", nami_model_count(run->job.model));
    nami_event_whole(t, "ranks", ranks);
    nami_text_add(t, "\n ");
    add_rates(t, run, &f->now);
    add_steady(t, f);
    add_gaps(t, run, &f->timeline, &f->predicted);
    add_memory(t, &run->job, f->all);
    add_phases(t, f->all, ranks);
    add_layout(t, run);
    add_legs(t, run, &f->now);
    add_hosts(t, f->place, ranks);
    nami_text_add(t, "\n ");
    add_provenance(t, run);
    nami_text_add(t, "}\n");
}

nami_status nami_run_write(const nami_run *run, const char *name, const nami_text *text)
{
    char *path = nami_strf("%s/%s", run->settings->run.directory, name);
    char *fresh = nami_strf("%s.new", path);
    nami_status status = NAMI_OK;
    FILE *file = fopen(fresh, "w");
    bool good =
        file && fwrite(nami_text_get(text), 1, text->length, file) == text->length;
    if (file && fclose(file))
        good = false;
    if (!good || rename(fresh, path)) {
        status =
            nami_fail(NAMI_EENV, "%s cannot be written: %s", path, strerror(errno));
        (void)unlink(fresh);
    }
    nami_free(fresh);
    nami_free(path);
    return status;
}

static nami_status write_timeline(nami_run *run, const nami_timeline *timeline)
{
    nami_text svg = {0};
    char title[160];
    snprintf(title, sizeof title, "%.80s, measured: step %lld on %d ranks",
             nami_job_pipeline(&run->job)->schedule, (long long)run->step,
             run->job.ranks);
    nami_timeline_svg(timeline, title, "s", &svg);
    nami_status status = nami_run_write(run, "timeline.svg", &svg);
    nami_text_free(&svg);
    return status;
}

static nami_status write_all(nami_run *run, const char *outcome, const findings *f)
{
    nami_text text = {0};
    compose(&text, run, outcome, f);
    nami_status status = nami_run_write(run, "report.json", &text);
    nami_text_free(&text);
    if (status == NAMI_OK)
        status = write_timeline(run, &f->timeline);
    return status;
}

nami_status nami_run_report(nami_run *run, const char *outcome)
{
    size_t ranks = (size_t)run->job.ranks;
    rank_report own = {.peak_bytes = held_bytes(),
                       .resident_bytes = (double)nami_memory_resident_peak()};
    rank_report *all = nami_calloc(NAMI_MEM_OTHER, ranks, sizeof *all);
    nami_comm_place *place = nami_calloc(NAMI_MEM_OTHER, ranks, sizeof *place);
    findings f = {.all = all, .place = place};
    memcpy(own.seconds, run->job.prof.seconds, sizeof own.seconds);
    nami_comm_phase(run->comm, "writing the report", run->settings->run.stall_seconds);
    nami_comm_gather(run->comm, &own, sizeof own, all);
    nami_comm_places(run->comm, place);
    nami_meter_timeline(&run->meter, &run->job, &f.timeline);
    nami_run_record(run, &f.predicted, &f.now);
    nami_status status = NAMI_OK;
    if (nami_run_leads(run))
        status = write_all(run, outcome, &f);
    if (nami_run_leads(run) && f.now.steady > 0 && !isnan(planned(run)))
        nami_log(NAMI_INFO, "a step took %.4g s; nami plan predicted %.4g s",
                 f.now.seconds, planned(run));
    nami_run_tell_leg(run, &f.now);
    nami_run_forget(&f.now);
    nami_prediction_free(&f.predicted);
    nami_timeline_free(&f.timeline);
    nami_free(place);
    nami_free(all);
    return nami_agree(run->comm, status);
}
