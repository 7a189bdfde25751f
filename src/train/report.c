/* SPDX-License-Identifier: MIT */
/* report.c - report.json and timeline.svg: what a run cost, measured beside predicted. */
#include "train/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

/* Bytes that the executor holds: it asks for all of them at its start. Data sets kept whole are not its own. */
static double held_bytes(void)
{
    double sum = 0;
    for (int t = NAMI_MEM_OTHER + 1; t < NAMI_MEM_TAGS; t++)
        if (t != NAMI_MEM_DATA)
            sum += (double)nami_memory_now((nami_tag)t);
    return sum;
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

nami_status nami_run_write(const nami_run *run, const char *name, const nami_text *text)
{
    char *path = nami_strf("%s/%s", run->settings->run.directory, name);
    nami_status status = nami_file_replace(path, nami_text_get(text), text->length);
    nami_free(path);
    return status;
}

static nami_status write_timeline(nami_run *run, const nami_timeline *timeline)
{
    nami_text svg = {0};
    char title[160];
    snprintf(title, sizeof title, "%.80s, measured: step %lld on %d rank%s",
             nami_job_pipeline(&run->job)->schedule, (long long)run->step,
             run->job.ranks, nami_plural(run->job.ranks));
    nami_timeline_svg(timeline, title, "s", &svg);
    nami_status status = nami_run_write(run, "timeline.svg", &svg);
    nami_text_free(&svg);
    return status;
}

static nami_status write_all(nami_run *run, const char *outcome, const nami_findings *f)
{
    nami_text text = {0};
    nami_report_compose(&text, run, outcome, f);
    nami_status status = nami_run_write(run, "report.json", &text);
    nami_text_free(&text);
    if (status == NAMI_OK)
        status = write_timeline(run, &f->timeline);
    return status;
}

nami_status nami_run_report(nami_run *run, const char *outcome)
{
    size_t ranks = (size_t)run->job.ranks;
    nami_rank_report own = {.peak_bytes = held_bytes(),
                            .resident_bytes = (double)nami_memory_resident_peak()};
    nami_rank_report *all = nami_calloc(NAMI_MEM_OTHER, ranks, sizeof *all);
    nami_comm_place *place = nami_calloc(NAMI_MEM_OTHER, ranks, sizeof *place);
    nami_findings f = {.all = all, .place = place, .planned = planned(run)};
    memcpy(own.seconds, run->job.prof.seconds, sizeof own.seconds);
    nami_comm_phase(run->comm, "writing the report", run->settings->run.stall_seconds);
    nami_comm_gather(run->comm, &own, sizeof own, all);
    nami_comm_places(run->comm, place);
    nami_meter_timeline(&run->meter, &run->job, &f.timeline);
    nami_run_record(run, &f.predicted, &f.now);
    nami_status status = NAMI_OK;
    if (nami_run_leads(run))
        status = write_all(run, outcome, &f);
    if (nami_run_leads(run) && f.now.steady > 0 && !isnan(f.planned))
        nami_log(NAMI_INFO, "a step took %.4g s; nami plan predicted %.4g s",
                 f.now.seconds, f.planned);
    nami_run_tell_leg(run, &f.now);
    nami_run_forget(&f.now);
    nami_prediction_free(&f.predicted);
    nami_timeline_free(&f.timeline);
    nami_free(place);
    nami_free(all);
    return nami_agree(run->comm, status);
}
