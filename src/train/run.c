/* SPDX-License-Identifier: MIT */
/* run.c - the loop: step, evaluate, save, stop. */
#include "train/run.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/inner.h"
#include "train/state.h"

static nami_status evaluate(nami_run *run, int64_t batches)
{
    nami_exec_result result;
    double start = nami_now();
    if (!run->job.valid)
        return NAMI_OK;
    nami_prof training = run->job.prof; /* its times are those of training */
    run->job.prof.record = false;
    NAMI_TRY(nami_agree(run->comm, nami_job_evaluate(&run->job, batches, &result)));
    run->job.prof = training;
    double seconds = nami_comm_max(run->comm, nami_now() - start);
    run->valid_loss = result.loss;
    run->eval_total += seconds;
    run->eval_seconds = fmax(run->eval_seconds, seconds);
    nami_run_tell_eval(run, &result, seconds);
    return NAMI_OK;
}

static nami_status save(nami_run *run)
{
    nami_ckpt_state state = {
        .step = run->step,
        .sample = run->job.from_sample +
                  (run->step - run->job.from_step) * run->job.layout.batch,
        .seed = run->settings->train.seed,
        .partials = run->job.layout.partials,
        .deck = (char *)(uintptr_t)run->request->deck, /* only read */
        .build = (char *)(uintptr_t)run->request->build,
        .parent = run->parent,
        .data = (char *)(uintptr_t)nami_job_identity(&run->job)};
    double start = nami_now();
    if (run->saved == run->step)
        return NAMI_OK;
    nami_comm_phase(run->comm, "saving a checkpoint", run->settings->run.stall_seconds);
    nami_status status = run->journal ? nami_journal_sync(run->journal) : NAMI_OK;
    NAMI_TRY(nami_agree(run->comm, status));
    NAMI_TRY(nami_agree(run->comm, nami_job_save(&run->job, run->checkpoints, &state)));
    double end = nami_now();
    nami_prof_add(&run->job.prof, NAMI_PHASE_IO, start, end);
    run->saved = run->step;
    run->save_total += end - start;
    run->clock.save_seconds = fmax(run->clock.save_seconds, end - start);
    nami_run_tell_checkpoint(run, end - start);
    return NAMI_OK;
}

/* One step and what all ranks wish after it. */
static nami_status step(nami_run *run, int *wishes)
{
    bool steady = run->step > run->job.from_step;
    nami_meter_step m;
    double start = nami_now();
    int own = run->log_status == NAMI_OK ? 0 : NAMI_WISH_FAILED;
    nami_comm_phase(run->comm, "training", run->settings->run.stall_seconds);
    run->job.prof.record = true;
    if (run->step == run->job.from_step + 1)
        nami_prof_reset(&run->job.prof); /* the first step warms up */
    run->meter.flops_before = run->job.prof.flops;
    NAMI_TRY(nami_agree(run->comm, nami_job_step(&run->job, run->step, &run->last)));
    run->step++;
    own |= nami_stop_poll(&run->clock,
                          nami_run_leads(run) ? run->settings->run.directory : NULL);
    nami_meter_end(&run->meter, &run->job, start, own, steady, run->last.tokens, &m);
    run->slow_step = fmax(m.seconds, 0.9 * run->slow_step);
    run->clock.step_seconds = run->slow_step + run->eval_seconds;
    *wishes = m.wishes;
    nami_run_tell_step(run, &m);
    return NAMI_OK;
}

static bool is_due(int64_t step, int64_t every)
{
    return every > 0 && step % every == 0;
}

/* What follows a step. */
static nami_status after_step(nami_run *run, int wishes)
{
    const nami_settings *s = run->settings;
    bool last = run->step == s->train.steps;
    if (wishes & NAMI_WISH_FAILED)
        return nami_agree(run->comm, run->log_status);
    if (last)
        NAMI_TRY(evaluate(run, 0));
    else if (is_due(run->step, s->train.eval_every))
        NAMI_TRY(evaluate(run, s->train.eval_batches));
    if (last || is_due(run->step, s->ckpt.every) ||
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
        NAMI_TRY(step(run, &wishes));
        NAMI_TRY(after_step(run, wishes));
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
    }
    NAMI_TRY(nami_run_report(run, "finished"));
    nami_run_tell_end(run, "end", "");
    return nami_agree(run->comm, run->log_status);
}

nami_status nami_train_run(const nami_run_request *request)
{
    nami_run run = {
        .request = request, .comm = request->comm, .settings = request->settings};
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
