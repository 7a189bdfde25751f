/* SPDX-License-Identifier: MIT */
/* setup.c - from a deck to a run that can step: directories, checkpoint, plan, data, executor, logs. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/inner.h"
#include "train/state.h"

/* Make a directory with those above it. */
static nami_status make_directory(const char *path)
{
    char *copy = nami_strdup(path);
    nami_status status = NAMI_OK;
    for (char *slash = copy + 1; status == NAMI_OK; slash++) {
        char kept = *slash;
        if (kept != '/' && kept != '\0')
            continue;
        *slash = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST)
            status = nami_fail(NAMI_EENV, "directory %s cannot be made: %s", copy,
                               strerror(errno));
        *slash = kept;
        if (kept == '\0')
            break;
    }
    nami_free(copy);
    return status;
}

/* Entries of a directory that start with `prefix` and end with `suffix`; 0 when it is not there. */
static int count_entries(const char *path, const char *prefix, const char *suffix)
{
    DIR *directory = opendir(path);
    int count = 0;
    if (!directory)
        return 0;
    for (const struct dirent *e = readdir(directory); e; e = readdir(directory)) {
        size_t length = strlen(e->d_name), end = strlen(suffix);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            !strncmp(e->d_name, prefix, strlen(prefix)) && length >= end &&
            !strcmp(e->d_name + length - end, suffix))
            count++;
    }
    closedir(directory);
    return count;
}

static nami_status open_directory(const nami_run *run)
{
    const nami_run_options *o = &run->settings->run;
    if (!o->directory[0])
        return nami_fail(NAMI_EINPUT, "run.directory is empty: say where results go");
    if (!o->restart && count_entries(o->directory, "", "") > 0)
        return nami_fail(NAMI_EINPUT,
                         "run.directory %s is not empty, and run.restart = no; choose "
                         "another one, or restart = yes to resume",
                         o->directory);
    NAMI_TRY(make_directory(run->checkpoints));
    if (access(run->checkpoints, W_OK | X_OK))
        return nami_fail(NAMI_EENV, "directory %s cannot be written: %s",
                         run->checkpoints, strerror(errno));
    return NAMI_OK;
}

/* Path of the newest valid checkpoint into run->parent, and what it says. */
static nami_status find_checkpoint(nami_run *run)
{
    char *path = NULL;
    NAMI_TRY(nami_ckpt_newest(run->comm, run->checkpoints, &path));
    if (path) {
        nami_free(run->parent);
        run->parent = path;
        return nami_ckpt_state_read(run->comm, path, &run->found);
    }
    int broken =
        nami_run_leads(run) ? count_entries(run->checkpoints, "step-", ".h5") : 0;
    if (broken > 0)
        return nami_fail(NAMI_ERESTART,
                         "none of the %d checkpoints in %s is valid; remove them to "
                         "start anew, or choose another run.directory",
                         broken, run->checkpoints);
    return NAMI_OK;
}

static nami_status look_for_checkpoint(nami_run *run)
{
    nami_comm_phase(run->comm, "looking for a checkpoint",
                    run->settings->run.stall_seconds);
    NAMI_TRY(
        nami_agree(run->comm, nami_run_leads(run) ? open_directory(run) : NAMI_OK));
    NAMI_TRY(nami_agree(run->comm, find_checkpoint(run)));
    nami_status status = NAMI_OK;
    if (run->parent[0])
        status = nami_state_check(&run->found, run->parent, run->settings);
    return nami_agree(run->comm, status);
}

/* A checkpoint belongs to one training set. */
static nami_status check_data(const nami_run *run)
{
    const char *now = nami_job_identity(&run->job);
    if (!run->parent[0] || !strcmp(run->found.data, now))
        return NAMI_OK;
    return nami_fail(
        NAMI_ERESTART,
        "data.train is another data set (%s) than that of the checkpoint %s "
        "(%s)",
        now, run->parent, run->found.data);
}

static nami_status open_data(nami_run *run)
{
    nami_comm_phase(run->comm, "opening the data", run->settings->run.stall_seconds);
    NAMI_TRY(nami_agree(run->comm, nami_job_data(&run->job)));
    return nami_agree(run->comm, check_data(run));
}

static nami_status load(nami_run *run)
{
    const char *init = run->settings->train.init;
    if (run->parent[0])
        return nami_job_load(&run->job, run->parent, false);
    if (init[0])
        return nami_job_init(&run->job, init);
    return NAMI_OK;
}

static nami_status start_executor(nami_run *run)
{
    nami_comm_phase(run->comm, "building the executor",
                    run->settings->run.stall_seconds);
    run->job.from_step = run->step;
    run->job.from_sample = run->found.sample;
    NAMI_TRY(nami_job_start(&run->job));
    NAMI_TRY(nami_agree(run->comm, load(run)));
    nami_comm_phase(run->comm, "measuring the machine",
                    run->settings->run.stall_seconds);
    nami_meter_open(&run->meter, &run->job);
    return NAMI_OK;
}

static nami_status open_logs(nami_run *run)
{
    const char *directory = run->settings->run.directory;
    nami_text deck = {0};
    char *lines = nami_strf("%s/run.log", directory);
    char *events = nami_strf("%s/log.jsonl", directory);
    nami_status status = nami_journal_open(events, run->step, &run->journal);
    run->log = status == NAMI_OK ? fopen(lines, "a") : NULL;
    if (status == NAMI_OK && !run->log)
        status =
            nami_fail(NAMI_EENV, "%s cannot be opened: %s", lines, strerror(errno));
    nami_log_file(run->log);
    nami_text_add(&deck, "%s", run->request->deck);
    if (status == NAMI_OK)
        status = nami_run_write(run, "resolved.ini", &deck);
    nami_text_free(&deck);
    nami_free(events);
    nami_free(lines);
    return status;
}

/* Seconds of a save, before the first has been measured: a slow disk. */
static double estimate_save(const nami_job *job)
{
    double arrays = 1 + nami_optim_states(&job->settings->optim);
    return 0.5 + 4.0 * arrays * (double)nami_model_count(job->model) / 100e6;
}

nami_status nami_run_set_up(nami_run *run)
{
    run->clock = (nami_stop_clock){.started = nami_now(),
                                   .max_time = run->settings->run.max_time};
    nami_utc(run->begun);
    run->parent = nami_strdup("");
    run->checkpoints = nami_strf("%s/checkpoints", run->settings->run.directory);
    run->saved = -1;
    run->valid_loss = NAN;
    NAMI_TRY(look_for_checkpoint(run));
    run->step = run->leg_from = run->found.step;
    nami_run_best_read(run);
    NAMI_TRY(
        nami_job_open(&run->job, run->comm, run->settings, nami_comm_size(run->comm)));
    NAMI_TRY(open_data(run));
    NAMI_TRY(nami_job_place(&run->job, run->step, run->found.sample));
    NAMI_TRY(nami_job_layouts(&run->job, run->found.partials));
    NAMI_TRY(nami_agree(run->comm, nami_run_leads(run) ? open_logs(run) : NAMI_OK));
    NAMI_TRY(start_executor(run));
    run->clock.save_seconds = estimate_save(&run->job);
    if (run->parent[0])
        run->saved = run->step;
    return NAMI_OK;
}

void nami_run_take_down(nami_run *run)
{
    nami_log_file(NULL);
    if (run->log)
        fclose(run->log);
    nami_journal_close(run->journal);
    nami_free(run->results);
    for (int i = 0; i < run->pasts; i++)
        nami_run_forget(&run->past[i]);
    nami_meter_close(&run->meter);
    nami_job_close(&run->job);
    nami_ckpt_state_free(&run->found);
    nami_free(run->checkpoints);
    nami_free(run->parent);
}
