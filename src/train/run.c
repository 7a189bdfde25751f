/* SPDX-License-Identifier: MIT */
/* run.c - the loop: step, evaluate, save, stop. */
#include "train/run.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/inner.h"
#include "train/state.h"

static nami_status evaluate(nami_run *run, int64_t batches)
{
    nami_exec_result result;
    double start = nami_now();
    nami_prof training = run->job.prof; /* its times are those of training */
    run->job.prof.record = false;
    NAMI_TRY(nami_agree(run->comm, nami_job_evaluate(&run->job, batches, &result)));
    run->job.prof = training;
    double seconds = nami_comm_max(run->comm, nami_now() - start);
    run->valid_loss = result.loss;
    run->valid = result;
    run->eval_total += seconds;
    run->eval_seconds = fmax(run->eval_seconds, seconds);
    nami_run_tell_eval(run, &result, seconds);
    return NAMI_OK;
}

static nami_status save(nami_run *run)
{
    if (run->saved == run->step)
        return NAMI_OK;
    char *numbers = nami_run_numbers(run);
    nami_ckpt_state state = {
        .step = run->step,
        .sample = run->job.from_sample +
                  (run->step - run->job.from_step) * run->job.layout.batch,
        .seed = run->settings->train.seed,
        .partials = run->job.layout.partials,
        .deck = (char *)(uintptr_t)run->request->deck, /* only read */
        .build = (char *)(uintptr_t)run->request->build,
        .parent = run->parent,
        .data = (char *)(uintptr_t)nami_job_identity(&run->job),
        .numbers = numbers,
        .spare = run->best.step};
    double start = nami_now();
    nami_comm_phase(run->comm, "saving a checkpoint", run->settings->run.stall_seconds);
    nami_status status = run->journal ? nami_journal_sync(run->journal) : NAMI_OK;
    status = nami_agree(run->comm, status);
    if (status == NAMI_OK)
        status =
            nami_agree(run->comm, nami_job_save(&run->job, run->checkpoints, &state));
    nami_free(numbers);
    NAMI_TRY(status);
    double end = nami_now();
    nami_prof_add(&run->job.prof, NAMI_PHASE_IO, start, end);
    if (run->best.step == run->step)
        NAMI_TRY(nami_agree(run->comm,
                            nami_run_leads(run) ? nami_run_best_write(run) : NAMI_OK));
    run->saved = run->step;
    run->save_total += end - start;
    run->clock.save_seconds = fmax(run->clock.save_seconds, end - start);
    nami_run_tell_checkpoint(run, end - start);
    return NAMI_OK;
}

/* The epoch that the last step completed, 0: none. Epochs shorter than a batch are not told apart. */
static int64_t completed_epoch(const nami_run *run)
{
    int64_t samples = nami_job_epoch(&run->job);
    if (samples < run->job.layout.batch)
        return 0;
    int64_t now = nami_job_counter(&run->job, run->step) / samples;
    return now > nami_job_counter(&run->job, run->step - 1) / samples ? now : 0;
}

/* The smaller of `left` and the steps from `step` to the next multiple of `every`. */
static int64_t nearer(int64_t left, int64_t step, int64_t every)
{
    int64_t due = every > 0 ? every - step % every : left;
    return due < left ? due : left;
}

/* The smaller of `left` and the steps that complete the current epoch. */
static int64_t nearest_epoch(const nami_run *run, int64_t left)
{
    int64_t samples = nami_job_epoch(&run->job), batch = run->job.layout.batch;
    if (samples < batch)
        return left;
    int64_t rest = samples - nami_job_counter(&run->job, run->step) % samples;
    int64_t due = (rest + batch - 1) / batch;
    return due < left ? due : left;
}

/* Steps until the next drain. They depend on the deck alone, so a run that is stopped and resumed goes the same way. */
static int next_window(const nami_run *run)
{
    const nami_settings *s = run->settings;
    int64_t left = nami_job_window(&run->job, run->step);
    left = nearer(left, run->step, s->train.eval_every);
    left = nearer(left, run->step, s->ckpt.every);
    if (s->train.eval_epochs > 0)
        left = nearest_epoch(run, left);
    if (left > s->train.steps - run->step)
        left = s->train.steps - run->step;
    int64_t leg = nami_job_leg_end(&run->job) - run->step;
    return (int)(leg > 0 && leg < left ? leg : left);
}

/* Seconds that a window may take: without a flush it fills and drains. */
static double expect(const nami_run *run, int count)
{
    const nami_layout *l = &run->job.layout;
    int more = nami_recipe_flushes(&l->recipe) ? 0 : nami_layout_stages(l);
    return run->slow_step * (count + more);
}

/* Carry out `count` steps, results into run->results. */
static nami_status train(nami_run *run, int count)
{
    if (count > run->room) {
        run->results = nami_realloc(NAMI_MEM_OTHER, run->results,
                                    (size_t)count * sizeof *run->results);
        run->room = count;
    }
    nami_comm_phase(run->comm, "training", run->settings->run.stall_seconds);
    nami_comm_extend(run->comm, count > 1 ? expect(run, count) : 0);
    nami_status status = nami_agree(
        run->comm, nami_job_steps(&run->job, run->step, count, run->results));
    nami_comm_extend(run->comm, 0);
    return status;
}

/* Count the last step in its epoch, and tell the epoch when it is complete. */
static void add_to_epoch(nami_run *run, double seconds)
{
    int64_t epoch = completed_epoch(run);
    run->epoch.loss += run->last.loss * (double)run->last.tokens;
    run->epoch.tokens += run->last.tokens;
    run->epoch.best += run->last.best;
    run->epoch.seconds += seconds;
    if (epoch == 0)
        return;
    nami_run_tell_epoch(run, epoch);
    run->ended = epoch;
}

/* Count and tell the steps of a window. */
static void tell_steps(nami_run *run, const nami_meter_step *m)
{
    run->ended = 0;
    for (int i = 0; i < m->count; i++) {
        run->step++;
        run->last = run->results[i];
        nami_run_tell_step(run, m);
        add_to_epoch(run, m->seconds);
    }
}

/* One window and what all ranks wish after it. */
static nami_status window(nami_run *run, int *wishes)
{
    nami_meter_step m;
    nami_meter_window w = {.start = nami_now(),
                           .wishes = run->log_status == NAMI_OK ? 0 : NAMI_WISH_FAILED,
                           .steady = run->step > run->leg_from,
                           .count = next_window(run)};
    run->job.prof.record = true;
    if (run->warm && run->step > run->job.from_step) {
        nami_prof_reset(&run->job.prof); /* the first steps warm up */
        run->warm = false;
    }
    run->meter.flops_before = run->job.prof.flops;
    NAMI_TRY(train(run, w.count));
    for (int i = 0; i < w.count; i++)
        w.tokens += run->results[i].tokens;
    w.wishes |= nami_stop_poll(
        &run->clock, nami_run_leads(run) ? run->settings->run.directory : NULL);
    nami_meter_end(&run->meter, &run->job, &w, &m);
    run->slow_step = fmax(m.seconds, 0.9 * run->slow_step);
    tell_steps(run, &m);
    run->clock.step_seconds = expect(run, next_window(run)) + run->eval_seconds;
    *wishes = m.wishes;
    return NAMI_OK;
}

/* Go on with the next layout. */
static nami_status change_layout(nami_run *run)
{
    double start = nami_now();
    nami_prediction predicted;
    nami_comm_phase(run->comm, "changing the layout", run->settings->run.stall_seconds);
    nami_run_record(run, &predicted, &run->past[run->pasts++]);
    nami_run_tell_leg(run, &run->past[run->pasts - 1]);
    nami_prediction_free(&predicted);
    NAMI_TRY(nami_job_switch(&run->job));
    run->leg_from = run->step;
    run->slow_step = 0;
    nami_meter_turn(&run->meter, &run->job);
    nami_run_tell_switch(run, nami_comm_max(run->comm, nami_now() - start));
    return NAMI_OK;
}

static bool is_due(int64_t step, int64_t every)
{
    return every > 0 && step % every == 0;
}

/* Evaluate where it is due, and say whether the result is worth a checkpoint. */
static nami_status evaluate_if_due(nami_run *run, bool *best)
{
    const nami_train_options *o = &run->settings->train;
    bool last = run->step == o->steps;
    bool due = is_due(run->step, o->eval_every) ||
               (run->ended > 0 && is_due(run->ended, o->eval_epochs));
    *best = false;
    if (!(last || due) || nami_job_validation(&run->job) == 0)
        return NAMI_OK;
    NAMI_TRY(evaluate(run, last ? 0 : o->eval_batches));
    *best = nami_run_best_note(run);
    return NAMI_OK;
}

/* What follows a drain. */
static nami_status after_window(nami_run *run, int wishes)
{
    const nami_settings *s = run->settings;
    bool last = run->step == s->train.steps, best;
    if (wishes & NAMI_WISH_FAILED)
        return nami_agree(run->comm, run->log_status);
    NAMI_TRY(evaluate_if_due(run, &best));
    if (last || best || is_due(run->step, s->ckpt.every) ||
        (wishes & (NAMI_WISH_END | NAMI_WISH_SAVE)))
        NAMI_TRY(save(run));
    if (nami_run_leads(run))
        nami_stop_obeyed(wishes, s->run.directory);
    return NAMI_OK;
}

static nami_status loop(nami_run *run)
{
    int wishes = 0;
    while (run->step < run->settings->train.steps) {
        NAMI_TRY(window(run, &wishes));
        NAMI_TRY(after_window(run, wishes));
        if ((wishes & NAMI_WISH_END) && run->step < run->settings->train.steps) {
            NAMI_TRY(nami_run_report(run, "stopped"));
            nami_run_tell_end(run, "stop", nami_stop_reason(wishes));
            return nami_agree(
                run->comm,
                nami_fail(
                    NAMI_STOPPED,
                    "stopped after step %lld of %lld (%s); the same command resumes",
                    (long long)run->step, (long long)run->settings->train.steps,
                    nami_stop_reason(wishes)));
        }
        if (run->step == nami_job_leg_end(&run->job) &&
            run->step < run->settings->train.steps)
            NAMI_TRY(change_layout(run));
    }
    NAMI_TRY(nami_run_report(run, "finished"));
    nami_run_tell_end(run, "end", "");
    return nami_agree(run->comm, run->log_status);
}

nami_status nami_train_run(const nami_run_request *request)
{
    nami_run run = {.request = request,
                    .comm = request->comm,
                    .settings = request->settings,
                    .warm = true};
    nami_stop_watch();
    nami_status status = nami_run_set_up(&run);
    if (status == NAMI_OK) {
        nami_run_tell_start(&run);
        status = loop(&run);
        if (status == NAMI_ENUMERIC)
            nami_run_tell_end(&run, "failed", "loss or gradient not finite");
    }
    nami_run_take_down(&run);
    nami_stop_unwatch();
    return status;
}
