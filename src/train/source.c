/* SPDX-License-Identifier: MIT */
/* source.c - which samples a step and an evaluation see. */
#include <math.h>

#include "base/memory.h"
#include "train/job.h"

/* Read windows of `data`; targets or tokens alone when the other is NULL. */
static nami_status read_windows(nami_data *data, const int64_t *from, int64_t count,
                                int64_t time, int32_t *token, int32_t *target)
{
    size_t bytes = (size_t)(count * time) * sizeof(int32_t);
    int32_t *unused = token && target ? NULL : nami_alloc(NAMI_MEM_OTHER, bytes);
    nami_status status = nami_data_read(data, from, count, token ? token : unused,
                                        target ? target : unused);
    nami_free(unused);
    return status;
}

/* Samples of a family that needs no data: each counts up from a number of its own. */
static nami_status make_up(void *context, int64_t step, int64_t first, int64_t count,
                           int32_t *token, int32_t *target)
{
    const nami_job *job = context;
    const int64_t time = job->layout.time;
    const int64_t words = job->model->options.vocabulary;
    for (int64_t i = 0; i < count * time; i++) {
        const int64_t sample = step * job->layout.batch + first + i / time;
        if (token)
            token[i] = (int32_t)((sample + i % time) % words);
        if (target)
            target[i] = (int32_t)((sample + i % time + 1) % words);
    }
    return NAMI_OK;
}

static nami_status read_training(void *context, int64_t step, int64_t first,
                                 int64_t count, int32_t *token, int32_t *target)
{
    nami_job *job = context;
    int64_t batch = job->layout.batch;
    int64_t counter = nami_job_counter(job, step) + first;
    int64_t *from = nami_alloc(NAMI_MEM_OTHER, 2 * (size_t)count * sizeof *from);
    for (int64_t i = 0; i < count; i++) {
        from[i] = nami_data_window(job->train, job->key, counter + i);
        from[count + i] = nami_data_window(job->train, job->key, counter + batch + i);
    }
    nami_status status =
        read_windows(job->train, from, count, job->layout.time, token, target);
    nami_data_expect(job->train, from + count, count);
    nami_free(from);
    return status;
}

static nami_status read_validation(void *context, int64_t index, int64_t first,
                                   int64_t count, int32_t *token, int32_t *target)
{
    const nami_job_batch *b = context;
    nami_job *job = b->job;
    int64_t time = job->layout.time, samples = nami_data_samples(job->valid);
    int64_t *from = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *from);
    (void)index;
    for (int64_t i = 0; i < count; i++) /* behind the end: the first ones again */
        from[i] = (b->first + first + i) % samples * time;
    nami_status status = read_windows(job->valid, from, count, time, token, target);
    nami_free(from);
    return status;
}

nami_status nami_job_steps(nami_job *job, int64_t step, int count,
                           nami_exec_result *out)
{
    const nami_settings *s = job->settings;
    nami_exec_source source = {.read = job->train_images ? nami_job_read_images
                                       : job->train_bert ? nami_job_read_sentences
                                       : job->train      ? read_training
                                                         : make_up,
                               .context = job};
    double *rate = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *rate);
    for (int i = 0; i < count; i++)
        rate[i] = nami_optim_rate(&s->optim, step + i, s->train.steps);
    nami_status status = nami_exec_window(job->exec, step, count, rate, &source, out);
    nami_free(rate);
    return status;
}

nami_status nami_job_step(nami_job *job, int64_t step, nami_exec_result *out)
{
    return nami_job_steps(job, step, 1, out);
}

int64_t nami_job_window(const nami_job *job, int64_t step)
{
    return job->layout.window - step % job->layout.window;
}

/* Batches of a whole evaluation. A set smaller than a batch is one short batch, whatever the deck says. */
static int64_t batches_of(const nami_job *job)
{
    int64_t samples = nami_job_validation(job), batch = job->layout.batch;
    int64_t whole = samples / batch;
    bool rest = samples % batch > 0;
    if (job->settings->data.last_batch == NAMI_LAST_DROP && whole > 0)
        return whole;
    return whole + rest;
}

/* Samples of batch `b` that count. */
static int64_t samples_of(const nami_job *job, int64_t b)
{
    int64_t batch = job->layout.batch;
    int64_t left = nami_job_validation(job) - b * batch;
    if (left >= batch || job->settings->data.last_batch == NAMI_LAST_PAD)
        return batch;
    return left;
}

nami_status nami_job_evaluate(nami_job *job, int64_t batches, nami_exec_result *out)
{
    int64_t all = batches_of(job);
    int64_t count = batches > 0 && batches < all ? batches : all;
    double sum[NAMI_MODEL_LOSSES] = {0};
    *out = (nami_exec_result){0};
    for (int64_t i = 0; i < count; i++) {
        int64_t b = i * all / count;
        nami_job_batch context = {.job = job, .first = b * job->layout.batch};
        nami_exec_source source = {.read =
                                       job->valid_images ? nami_job_read_valid_images
                                       : job->valid_bert ? nami_job_read_valid_sentences
                                                         : read_validation,
                                   .context = &context};
        nami_exec_result one;
        NAMI_TRY(nami_exec_evaluate(job->exec, i, samples_of(job, b), &source, &one));
        sum[0] += one.part[0] * (double)one.tokens;
        sum[1] += one.part[1] * (double)one.pairs;
        out->tokens += one.tokens;
        out->best += one.best;
        out->five += one.five;
        out->pairs += one.pairs;
        out->right += one.right;
    }
    out->part[0] = out->tokens > 0 ? sum[0] / (double)out->tokens : 0;
    out->part[1] = out->pairs > 0 ? sum[1] / (double)out->pairs : 0;
    out->loss = out->part[0] + out->part[1];
    if (!isfinite(out->loss))
        return nami_fail(NAMI_ENUMERIC, "the validation loss is not finite");
    return NAMI_OK;
}
