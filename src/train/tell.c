/* SPDX-License-Identifier: MIT */
/* tell.c - what a run says: events for programs, lines and a progress line for people. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/inner.h"
#include "train/state.h"

/* End an event; the first failure stays. */
static void finish(nami_run *run, nami_text *event)
{
    nami_status status = nami_event_end(event, run->journal);
    if (run->log_status == NAMI_OK)
        run->log_status = status;
    if (run->log && (ferror(run->log) || fflush(run->log)) &&
        run->log_status == NAMI_OK)
        run->log_status = nami_fail(NAMI_EENV, "%s/run.log cannot be written",
                                    run->settings->run.directory);
}

/* "1:02:03" into buf. */
static const char *duration(double seconds, char buf[32])
{
    long long s = seconds > 0 && seconds < 1e9 ? (long long)(seconds + 0.5) : 0;
    snprintf(buf, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    return buf;
}

static void describe_layout(const nami_run *run)
{
    const nami_layout *l = &run->job.layout;
    char exact[256], bytes[32];
    nami_text shape = {0};
    size_t most = 0;
    for (int p = 0; p < l->recipe.positions; p++)
        most = run->job.budget[p].total > most ? run->job.budget[p].total : most;
    nami_leg_shape(l, &shape);
    nami_log(
        NAMI_INFO,
        "schedule %s: %s, %d stage%s, %lld micro-batch%s of %lld sample%s, %s a rank "
        "at most",
        nami_job_pipeline(&run->job)->schedule, nami_text_get(&shape),
        nami_layout_stages(l), nami_plural(nami_layout_stages(l)),
        (long long)(l->batch / l->micro), l->batch == l->micro ? "" : "es",
        (long long)l->micro, nami_plural(l->micro),
        nami_human_bytes((double)most, bytes));
    nami_text_free(&shape);
    (void)nami_layout_exact(l, exact);
    nami_log(NAMI_INFO, "%s", exact);
}

static void describe(const nami_run *run)
{
    const nami_layout *l = &run->job.layout;
    nami_log(NAMI_INFO, "nami %s: %lld parameters in %d blocks, %s, %s on %s",
             run->request->version, (long long)nami_model_count(run->job.model),
             run->job.model->blocks, nami_settings_backend(run->settings),
             nami_dtype_name(l->act),
             nami_job_epoch(&run->job) > 0 ? run->settings->data.train
                                           : "made-up samples");
    describe_layout(run);
    for (int i = run->job.current + 1; i < run->job.legs; i++)
        nami_log(NAMI_INFO, "%s changes the layout after step %lld%s", nami_leg_name(i),
                 (long long)run->job.leg[i].first,
                 run->job.leg[i].first < run->settings->train.steps
                     ? ""
                     : ", which this run does not pass");
}

static void add_layout(const nami_run *run, nami_text *event)
{
    const nami_layout *l = &run->job.layout;
    nami_event_whole(event, "positions", l->recipe.positions);
    nami_event_whole(event, "replicas", l->replicas);
    if (l->recipe.split == NAMI_SPLIT_SAMPLE) {
        nami_text ranks = {0};
        nami_leg_replicas(l, &ranks);
        nami_event_text(event, "stage_replicas", nami_text_get(&ranks));
        nami_text_free(&ranks);
    }
    nami_event_whole(event, "partials", l->partials);
    nami_event_text(event, "schedule", nami_job_pipeline(&run->job)->schedule);
}

void nami_run_tell_start(nami_run *run)
{
    const nami_layout *l = &run->job.layout;
    nami_text event = {0};
    bool resumed = run->parent[0] != '\0';
    if (!nami_run_leads(run))
        return;
    describe(run);
    if (resumed) {
        nami_log(NAMI_INFO, "resuming after step %lld from %s", (long long)run->step,
                 run->parent);
        nami_state_differences(&run->found, run->settings);
        nami_run_tell_numbers(run);
    }
    nami_event_begin(&event, resumed ? "restart" : "start", run->step);
    nami_event_text(&event, "time_utc", run->begun);
    nami_event_text(&event, "version", run->request->version);
    nami_event_whole(&event, "ranks", run->job.ranks);
    add_layout(run, &event);
    nami_event_text(&event, "precision", nami_dtype_name(l->act));
    nami_event_whole(&event, "threads", run->job.threads);
    if (resumed)
        nami_event_text(&event, "checkpoint", run->parent);
    finish(run, &event);
}

static bool images(const nami_run *run)
{
    return nami_model_takes_images(&run->settings->model);
}

static bool sentences(const nami_run *run)
{
    return nami_model_takes_sentences(&run->settings->model);
}

/* What the first loss is counted over. */
static const char *unit(const nami_run *run)
{
    return images(run) ? "images" : sentences(run) ? "masked tokens" : "tokens";
}

static double share(int64_t count, int64_t all)
{
    return all > 0 ? (double)count / (double)all : 0;
}

/* The two losses of sentences, and how many answers were right. */
static void add_parts(const nami_run *run, const nami_exec_result *r, nami_text *event)
{
    if (!sentences(run))
        return;
    nami_event_number(event, "masked_loss", r->part[0]);
    nami_event_number(event, "masked_accuracy", share(r->best, r->tokens));
    nami_event_number(event, "next_loss", r->part[1]);
    nami_event_number(event, "next_accuracy", share(r->right, r->pairs));
    nami_event_whole(event, "pairs", r->pairs);
}

static double percent(int64_t count, const nami_exec_result *r)
{
    return 100 * share(count, r->tokens);
}

static void show_progress(nami_run *run, const nami_meter_step *m)
{
    char left[32], line[200];
    int64_t rest = run->settings->train.steps - run->step;
    double mean = run->meter.steps > 0 ? run->meter.seconds / (double)run->meter.steps
                                       : m->seconds;
    bool plain = run->step % run->settings->train.log_every == 0 || rest == 0;
    bool due = nami_now() - run->shown > 0.2;
    if (!plain && !(due && nami_log_terminal()))
        return;
    snprintf(line, sizeof line,
             "step %lld/%lld  loss %.4f  %.0f %s/s  %.0f %% of peak  bubble %.0f %%  "
             "left %s",
             (long long)run->step, (long long)run->settings->train.steps,
             run->last.loss, (double)run->last.tokens / m->seconds, unit(run),
             100 * m->share, 100 * m->bubble, duration(mean * (double)rest, left));
    if (plain)
        nami_log(NAMI_INFO, "%s", line);
    else
        nami_progress("%s", line);
    run->shown = nami_now();
}

void nami_run_tell_step(nami_run *run, const nami_meter_step *m)
{
    nami_text event = {0};
    char hex[64];
    if (!nami_run_leads(run))
        return;
    snprintf(hex, sizeof hex, "%a", run->last.loss);
    nami_event_begin(&event, "step", run->step);
    nami_event_number(&event, "loss", run->last.loss);
    nami_event_text(&event, "loss_hex", hex);
    nami_event_whole(&event, "tokens", run->last.tokens);
    nami_event_number(&event, "step_seconds", m->seconds);
    nami_event_number(&event, "tokens_per_second",
                      (double)run->last.tokens / m->seconds);
    add_parts(run, &run->last, &event);
    nami_event_number(&event, "grad_norm", run->last.norm);
    nami_event_number(&event, "bubble", m->bubble);
    nami_event_number(&event, "matrix_peak_share", m->share);
    show_progress(run, m);
    finish(run, &event);
}

void nami_run_tell_switch(nami_run *run, double seconds)
{
    nami_text event = {0};
    if (!nami_run_leads(run))
        return;
    nami_log(NAMI_INFO, "step %lld  %s: another layout, after %.2f s",
             (long long)run->step, nami_leg_name(run->job.current), seconds);
    describe_layout(run);
    nami_event_begin(&event, "switch", run->step);
    add_layout(run, &event);
    nami_event_number(&event, "switch_seconds", seconds);
    finish(run, &event);
}

/* The line for people. */
static void show_eval(const nami_run *run, const nami_exec_result *r, double seconds)
{
    const long long step = (long long)run->step, tokens = (long long)r->tokens;
    if (images(run))
        nami_log(NAMI_INFO,
                 "step %lld  validation loss %.4f  top-1 %.2f %%  top-5 %.2f %%  (%lld "
                 "images, %.1f s)",
                 step, r->loss, percent(r->best, r), percent(r->five, r), tokens,
                 seconds);
    else if (sentences(run))
        nami_log(NAMI_INFO,
                 "step %lld  validation loss %.4f: masked tokens %.4f, %.1f %% of %lld "
                 "right; next sentences %.4f, %.1f %% of %lld right  (%.1f s)",
                 step, r->loss, r->part[0], 100 * share(r->best, r->tokens), tokens,
                 r->part[1], 100 * share(r->right, r->pairs), (long long)r->pairs,
                 seconds);
    else
        nami_log(NAMI_INFO,
                 "step %lld  validation loss %.4f nats a token  perplexity %.2f  (%lld "
                 "tokens, %.1f s)",
                 step, r->loss, exp(r->loss), tokens, seconds);
}

void nami_run_tell_eval(nami_run *run, const nami_exec_result *r, double seconds)
{
    nami_text event = {0};
    char hex[64];
    if (!nami_run_leads(run))
        return;
    snprintf(hex, sizeof hex, "%a", r->loss);
    show_eval(run, r, seconds);
    nami_event_begin(&event, "eval", run->step);
    nami_event_number(&event, "loss", r->loss);
    nami_event_text(&event, "loss_hex", hex);
    nami_event_whole(&event, "tokens", r->tokens);
    if (!images(run))
        nami_event_number(&event, "perplexity", exp(r->part[0]));
    nami_event_number(&event, "top1", share(r->best, r->tokens));
    nami_event_number(&event, "top5", share(r->five, r->tokens));
    add_parts(run, r, &event);
    nami_event_number(&event, "eval_seconds", seconds);
    finish(run, &event);
}

void nami_run_tell_epoch(nami_run *run, int64_t epoch)
{
    nami_epoch e = run->epoch;
    nami_text event = {0};
    char right[40] = "";
    run->epoch = (nami_epoch){0};
    if (!nami_run_leads(run))
        return;
    if (images(run))
        snprintf(right, sizeof right, "  top-1 %.2f %%",
                 100 * (double)e.best / (double)e.tokens);
    nami_log(NAMI_INFO,
             "epoch %lld  step %lld  training loss %.4f%s  (%lld %s, %.1f s)",
             (long long)epoch, (long long)run->step, e.loss / (double)e.tokens, right,
             (long long)e.tokens, unit(run), e.seconds);
    nami_event_begin(&event, "epoch", run->step);
    nami_event_whole(&event, "epoch", epoch);
    nami_event_number(&event, "loss", e.loss / (double)e.tokens);
    nami_event_whole(&event, "tokens", e.tokens);
    if (images(run))
        nami_event_number(&event, "top1", (double)e.best / (double)e.tokens);
    nami_event_number(&event, "epoch_seconds", e.seconds);
    finish(run, &event);
}

void nami_run_tell_checkpoint(nami_run *run, double seconds)
{
    nami_text event = {0};
    if (!nami_run_leads(run))
        return;
    nami_log(NAMI_DETAIL, "checkpoint of step %lld saved in %.2f s",
             (long long)run->step, seconds);
    nami_event_begin(&event, "checkpoint", run->step);
    nami_event_number(&event, "save_seconds", seconds);
    nami_event_number(&event, "run_seconds", nami_now() - run->clock.started);
    finish(run, &event);
}

static void tell_stale(nami_run *run, const nami_leg_record *leg)
{
    nami_text event = {0}, lines = {0};
    nami_stale_text(leg->stale, leg->stages, &lines);
    nami_log(NAMI_INFO, "steps %lld to %lld without a flush:%s", (long long)leg->first,
             (long long)leg->last, nami_text_get(&lines));
    nami_event_begin(&event, "staleness", run->step);
    nami_text_add(&event, ",\"stages\":");
    nami_stale_json(leg->stale, leg->stages, &event);
    for (size_t i = 0; i < event.length; i++) /* one line an event */
        if (event.data[i] == '\n')
            event.data[i] = ' ';
    nami_text_free(&lines);
    finish(run, &event);
}

void nami_run_tell_leg(nami_run *run, const nami_leg_record *leg)
{
    if (!nami_run_leads(run))
        return;
    if (leg->steady > 0)
        nami_log(NAMI_INFO,
                 "steps %lld to %lld: %.4g s each; from its first action to its last "
                 "%.4g s, predicted %.4g s; bubble %.1f %%, predicted %.1f %%",
                 (long long)leg->first, (long long)leg->last, leg->seconds,
                 leg->span[0], leg->span[1], 100 * leg->bubble, 100 * leg->predicted);
    if (leg->stale)
        tell_stale(run, leg);
}

void nami_run_tell_end(nami_run *run, const char *event_name, const char *reason)
{
    nami_text event = {0};
    char utc[32];
    if (!nami_run_leads(run))
        return;
    nami_event_begin(&event, event_name, run->step);
    nami_event_text(&event, "time_utc", nami_utc(utc));
    if (reason[0])
        nami_event_text(&event, "reason", reason);
    nami_event_number(&event, "run_seconds", nami_now() - run->clock.started);
    finish(run, &event);
}
