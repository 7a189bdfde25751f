/* SPDX-License-Identifier: MIT */
/* sentences.c - which masked sentences a step and an evaluation see. */
#include <string.h>

#include "train/job.h"

static nami_status open_set(const nami_job *job, const char *path, nami_bert **out)
{
    nami_model_sample s = nami_model_sample_of(job->model, job->model->options.context);
    const nami_bert_want want = {
        .time = s.time, .masked = s.masked, .vocabulary = s.classes};
    return nami_bert_open(job->comm, path, &want, out);
}

/* Both sets must mean the same by a token. */
static nami_status check_words(const nami_job *job)
{
    const char *train = nami_bert_wordpiece(job->train_bert),
               *valid = nami_bert_wordpiece(job->valid_bert);
    if (*train && *valid && strcmp(train, valid) != 0)
        return nami_fail(NAMI_EINPUT,
                         "data.train and data.valid were made with different "
                         "vocabulary files: their checksums are %s and %s",
                         train, valid);
    return NAMI_OK;
}

nami_status nami_job_sentences(nami_job *job)
{
    const nami_data_options *o = &job->settings->data;
    NAMI_TRY(open_set(job, o->train, &job->train_bert));
    if (!o->valid[0])
        return NAMI_OK;
    NAMI_TRY(open_set(job, o->valid, &job->valid_bert));
    return check_words(job);
}

/* Where sample i of a call goes; NULL: not wanted. */
static int32_t *at(int32_t *words, int64_t i, int64_t each)
{
    return words ? words + i * each : NULL;
}

nami_status nami_job_read_sentences(void *context, int64_t step, int64_t first,
                                    int64_t count, int32_t *token, int32_t *target)
{
    nami_job *job = context;
    nami_model_sample s = nami_model_sample_of(job->model, job->layout.time);
    int64_t from = nami_job_counter(job, step) + first;
    for (int64_t i = 0; i < count; i++)
        NAMI_TRY(nami_bert_read(job->train_bert, job->key, from + i,
                                at(token, i, s.words), at(target, i, s.targets)));
    return NAMI_OK;
}

nami_status nami_job_read_valid_sentences(void *context, int64_t index, int64_t first,
                                          int64_t count, int32_t *token,
                                          int32_t *target)
{
    const nami_job_batch *b = context;
    nami_job *job = b->job;
    nami_model_sample s = nami_model_sample_of(job->model, job->layout.time);
    int64_t samples = nami_job_validation(job);
    (void)index;
    for (int64_t i = 0; i < count; i++) /* behind the end: the first ones again */
        NAMI_TRY(nami_bert_read_fixed(job->valid_bert, (b->first + first + i) % samples,
                                      at(token, i, s.words), at(target, i, s.targets)));
    return NAMI_OK;
}
