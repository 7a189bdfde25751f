/* SPDX-License-Identifier: MIT */
/* images.c - which images a step and an evaluation see, and how. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "train/job.h"

int64_t nami_job_epoch(const nami_job *job)
{
    if (job->train_images)
        return nami_images_facts(job->train_images)->samples;
    if (job->train_bert)
        return nami_bert_samples(job->train_bert);
    return job->train ? nami_data_samples(job->train) : 0;
}

int64_t nami_job_validation(const nami_job *job)
{
    if (job->valid_images)
        return nami_images_facts(job->valid_images)->samples;
    if (job->valid_bert)
        return nami_bert_samples(job->valid_bert);
    return job->valid ? nami_data_samples(job->valid) : 0;
}

int64_t nami_job_counter(const nami_job *job, int64_t step)
{
    return job->from_sample + (step - job->from_step) * job->layout.batch;
}

/* A set must have the images the model was made for. */
static nami_status check_set(const nami_job *job, const char *key, const nami_images *d)
{
    const nami_image_facts *f = nami_images_facts(d);
    const nami_model_options *m = &job->model->options;
    int64_t edge = 2 * job->settings->data.pad;
    if (f->height + edge != m->image_height || f->width + edge != m->image_width ||
        f->channels != m->image_channels)
        return nami_fail(
            NAMI_EINPUT,
            "%s has images of %lld x %lld x %lld, with data.pad %lld x %lld "
            "x %lld, but the model takes %lld x %lld x %lld (height, width, "
            "channels)",
            key, (long long)f->height, (long long)f->width, (long long)f->channels,
            (long long)(f->height + edge), (long long)(f->width + edge),
            (long long)f->channels, (long long)m->image_height,
            (long long)m->image_width, (long long)m->image_channels);
    if (f->classes > m->classes)
        return nami_fail(NAMI_EINPUT, "%s has %lld classes, but the model %lld", key,
                         (long long)f->classes, (long long)m->classes);
    return NAMI_OK;
}

/* Mean or deviation: what the deck says, else the training set's. */
static nami_status choose(const char *key, const char *given, double least,
                          const double *own, int64_t channels, double *out)
{
    for (int64_t c = 0; c < channels; c++)
        out[c] = fmax(own[c], least);
    if (*given && !nami_image_numbers(given, least, channels, out))
        return nami_fail(NAMI_EINPUT,
                         "data.%s = '%s': expected one number%s for each of %lld "
                         "channels",
                         key, given, least > 0 ? " above 1e-3" : "",
                         (long long)channels);
    return NAMI_OK;
}

static nami_status make_view(nami_job *job)
{
    const nami_data_options *o = &job->settings->data;
    const nami_image_facts *f = nami_images_facts(job->train_images);
    nami_view *v = &job->view;
    *v = (nami_view){.channels = f->channels,
                     .height = f->height,
                     .width = f->width,
                     .pad = o->pad,
                     .crop = o->crop,
                     .cutout = o->cutout,
                     .flip = o->flip};
    NAMI_TRY(choose("mean", o->mean, 0, f->mean, f->channels, v->mean));
    return choose("deviation", o->deviation, 1e-3, f->deviation, f->channels,
                  v->deviation);
}

/* Both sets must mean the same by a class. */
static nami_status check_names(const nami_job *job)
{
    const char *train = nami_images_names(job->train_images),
               *valid = nami_images_names(job->valid_images);
    if (*train && *valid && strcmp(train, valid) != 0)
        return nami_fail(NAMI_EINPUT,
                         "data.train and data.valid have other classes: their names "
                         "differ");
    return NAMI_OK;
}

nami_status nami_job_images(nami_job *job)
{
    const nami_data_options *o = &job->settings->data;
    NAMI_TRY(nami_images_open(job->comm, o->train, &job->train_images));
    NAMI_TRY(check_set(job, "data.train", job->train_images));
    NAMI_TRY(make_view(job));
    if (!o->valid[0])
        return NAMI_OK;
    NAMI_TRY(nami_images_open(job->comm, o->valid, &job->valid_images));
    NAMI_TRY(check_set(job, "data.valid", job->valid_images));
    return check_names(job);
}

/* Image `index` of `d` as sample number `i` of a call; either output may be NULL. */
static nami_status read_one(nami_job *job, nami_images *d, int64_t index,
                            const nami_chance *chance, int64_t i, float *out,
                            int32_t *target)
{
    const nami_model_options *m = &job->model->options;
    const uint8_t *pixel;
    if (target)
        target[i] = nami_images_label(d, index);
    if (!out)
        return NAMI_OK;
    NAMI_TRY(nami_images_pixels(d, index, &pixel));
    nami_view_see(&job->view, chance, pixel,
                  out + i * m->image_height * m->image_width * m->image_channels);
    return NAMI_OK;
}

nami_status nami_job_read_images(void *context, int64_t step, int64_t first,
                                 int64_t count, int32_t *token, int32_t *target)
{
    nami_job *job = context;
    const nami_data_options *o = &job->settings->data;
    int64_t samples = nami_job_epoch(job), from = nami_job_counter(job, step) + first;
    uint64_t key = nami_mix(job->key, nami_hash_name("view"));
    NAMI_CHECK(samples > 0);
    for (int64_t i = 0; i < count; i++) {
        nami_view view = job->view;
        int64_t epoch = (from + i) / samples;
        view.erase = fmin(1, o->cutout_probability + o->cutout_growth * (double)epoch);
        nami_chance chance = nami_view_chance(&view, key, from + i);
        NAMI_TRY(read_one(job, job->train_images,
                          nami_image_index(samples, job->key, from + i), &chance, i,
                          (float *)token, target));
    }
    return NAMI_OK;
}

nami_status nami_job_read_valid_images(void *context, int64_t index, int64_t first,
                                       int64_t count, int32_t *token, int32_t *target)
{
    const nami_job_batch *b = context;
    nami_job *job = b->job;
    int64_t samples = nami_job_validation(job);
    (void)index;
    NAMI_CHECK(samples > 0);
    for (int64_t i = 0; i < count; i++) /* behind the end: the first ones again */
        NAMI_TRY(read_one(job, job->valid_images, (b->first + first + i) % samples,
                          NULL, i, (float *)token, target));
    return NAMI_OK;
}
