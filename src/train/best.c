/* SPDX-License-Identifier: MIT */
/* best.c - which checkpoint had the best evaluation: file checkpoints/best, "step-00000938.h5 0.1095". */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/inner.h"

/* Step and measure of a line; false when it is none. */
static bool parse(char *line, nami_best *best)
{
    char *end = strstr(line, ".h5 ");
    if (strncmp(line, "step-", 5) != 0 || !end)
        return false;
    *end = '\0';
    end[4 + strcspn(end + 4, "\n")] = '\0';
    return nami_parse_int(line + 5, &best->step) &&
           nami_parse_real(end + 4, &best->measure) && best->step > 0;
}

/* What the file says, if the checkpoint it names is there and not behind the run. */
static void look(const nami_run *run, nami_best *best)
{
    char line[128] = "", *path = nami_strf("%s/best", run->checkpoints);
    nami_best found = {0};
    FILE *file = fopen(path, "r");
    bool good = file && fgets(line, sizeof line, file) && parse(line, &found);
    if (file && fclose(file))
        good = false;
    nami_free(path);
    path = nami_strf("%s/step-%08lld.h5", run->checkpoints, (long long)found.step);
    if (good && found.step <= run->step && access(path, R_OK) == 0)
        *best = found;
    nami_free(path);
}

void nami_run_best_read(nami_run *run)
{
    run->best = (nami_best){0};
    if (nami_run_leads(run))
        look(run, &run->best);
    nami_comm_broadcast(run->comm, &run->best, sizeof run->best, 0);
}

bool nami_run_best_note(nami_run *run)
{
    const nami_exec_result *r = &run->valid;
    double measure = nami_model_takes_images(&run->settings->model)
                         ? 1 - (double)r->best / (double)r->tokens
                         : r->loss;
    if (!run->settings->ckpt.best ||
        (run->best.step > 0 && measure >= run->best.measure))
        return false;
    run->best = (nami_best){.step = run->step, .measure = measure};
    return true;
}

nami_status nami_run_best_write(const nami_run *run)
{
    char *path = nami_strf("%s/best", run->checkpoints);
    char *line = nami_strf("step-%08lld.h5 %.17g\n", (long long)run->best.step,
                           run->best.measure);
    nami_status status = nami_file_replace(path, line, strlen(line));
    nami_free(line);
    nami_free(path);
    return status == NAMI_OK ? nami_store_sync_directory(run->checkpoints) : status;
}
