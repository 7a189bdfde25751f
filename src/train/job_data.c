/* SPDX-License-Identifier: MIT */
/* job_data.c - open the data sets of a run. */
#include "train/job.h"

/* Keys of images say nothing to a model of tokens. */
static nami_status check_keys(const nami_data_options *o)
{
    if (o->pad || o->crop || o->flip || o->cutout || o->mean[0] || o->deviation[0])
        return nami_fail(NAMI_EINPUT,
                         "data.pad, crop, flip, cutout, mean and deviation are for "
                         "images, but this model.family takes none; remove them");
    return NAMI_OK;
}

nami_status nami_job_data(nami_job *job)
{
    const nami_settings *s = job->settings;
    int64_t time = job->model->options.context,
            vocabulary = job->model->options.vocabulary;
    if (nami_model_made_up(&s->model)) {
        if (s->data.train[0] || s->data.valid[0])
            return nami_fail(
                NAMI_EINPUT,
                "data.train or data.valid is set, but this model.family makes "
                "up its samples; remove them");
        return check_keys(&s->data);
    }
    if (!s->data.train[0])
        return nami_fail(NAMI_EINPUT,
                         "data.train is not set: name a file made by nami import");
    if (nami_model_takes_images(&s->model))
        return nami_job_images(job);
    NAMI_TRY(check_keys(&s->data));
    if (nami_model_takes_sentences(&s->model))
        return nami_job_sentences(job);
    NAMI_TRY(nami_data_open(job->comm, s->data.train, time, vocabulary, &job->train));
    if (s->data.valid[0])
        NAMI_TRY(
            nami_data_open(job->comm, s->data.valid, time, vocabulary, &job->valid));
    return NAMI_OK;
}

const char *nami_job_identity(const nami_job *job)
{
    if (job->train_images)
        return nami_images_identity(job->train_images);
    if (job->train_bert)
        return nami_bert_identity(job->train_bert);
    return job->train ? nami_data_identity(job->train) : "made up";
}
