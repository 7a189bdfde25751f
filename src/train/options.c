/* SPDX-License-Identifier: MIT */
/* options.c - sections [train] and [run] of the deck, and the tables of all sections. */
#include "train/options.h"

#include <string.h>

#include "data/bert.h"
#include "data/images.h"

static const char *const precisions[] = {"f32", "bf16", NULL};
static const char *const backends[] = {"cpu", "ref", "emu", NULL};

static const nami_option train_rows[] = {
    {.section = "train",
     .key = "steps",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, steps),
     .fallback = "1000",
     .minimum = 1,
     .maximum = 1e+12,
     .unit = "steps",
     .help = "Optimiser steps of the whole run."},
    {.section = "train",
     .key = "batch",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, batch),
     .fallback = "12",
     .minimum = 1,
     .maximum = 1e+09,
     .unit = "samples",
     .help = "Samples of a step, over all replicas; pipeline.microbatches "
             "divides it."},
    {.section = "train",
     .key = "dropout",
     .kind = NAMI_OPTION_REAL,
     .offset = offsetof(nami_train_options, dropout),
     .fallback = "0",
     .minimum = 0,
     .maximum = 0.99,
     .help = "Probability of dropping an activation."},
    {.section = "train",
     .key = "label_smoothing",
     .kind = NAMI_OPTION_REAL,
     .offset = offsetof(nami_train_options, label_smoothing),
     .fallback = "0",
     .minimum = 0,
     .maximum = 0.99,
     .help = "Part E of the target that the training loss spreads evenly over all "
             "classes, as PyTorch's CrossEntropyLoss; evaluations report the loss "
             "without it. Of bert: of masked tokens alone."},
    {.section = "train",
     .key = "seed",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, seed),
     .fallback = "1",
     .minimum = 0,
     .maximum = 9e+15,
     .help = "Key of initial weights, dropout masks and the order of samples."},
    {.section = "train",
     .key = "precision",
     .kind = NAMI_OPTION_CHOICE,
     .offset = offsetof(nami_train_options, precision),
     .fallback = "f32",
     .choices = precisions,
     .help = "Type of activations and matrix products; bf16 keeps f32 master "
             "weights."},
    {.section = "train",
     .key = "backend",
     .kind = NAMI_OPTION_CHOICE,
     .offset = offsetof(nami_train_options, backend),
     .fallback = "cpu",
     .choices = backends,
     .help = "cpu: oneDNN and fused loops; ref: naive loops, the oracle; emu: a "
             "device imitated on the host, as section [emu] says."},
    {.section = "train",
     .key = "threads",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, threads),
     .fallback = "1",
     .minimum = 0,
     .maximum = 4096,
     .unit = "threads",
     .help = "Threads of one rank; 0: its share of the cores of its node. "
             "Equal numbers give equal bits."},
    {.section = "train",
     .key = "partials",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, partials),
     .fallback = "0",
     .minimum = 0,
     .maximum = 65535,
     .unit = "sums",
     .help = "Partial gradient sums of a step: any number of replicas that "
             "divides it gives equal bits; it divides microbatches. 0: those "
             "of the checkpoint, else replicas."},
    {.section = "train",
     .key = "init",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(nami_train_options, init),
     .fallback = "",
     .help = "Checkpoint whose parameters replace the initial ones; its "
             "optimiser state and step are not used. Or a file of weights: "
             "safetensors, NAME.index.json of several, or what torch.save "
             "made of a state_dict."},
    {.section = "train",
     .key = "eval_every",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, eval_every),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e+12,
     .unit = "steps",
     .help = "Steps between evaluations on data.valid; 0: only at the end."},
    {.section = "train",
     .key = "eval_epochs",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, eval_epochs),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e+12,
     .unit = "epochs",
     .help =
         "Epochs (passes over data.train) between evaluations on data.valid, beside "
         "those of eval_every; 0: none."},
    {.section = "train",
     .key = "eval_batches",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, eval_batches),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e+12,
     .unit = "batches",
     .help = "Batches of an evaluation, spread evenly over data.valid; 0: all. "
             "The evaluation at the end uses all."},
    {.section = "train",
     .key = "log_every",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_train_options, log_every),
     .fallback = "100",
     .minimum = 1,
     .maximum = 1e+12,
     .unit = "steps",
     .help = "Steps between plain lines in run.log; log.jsonl has every step."},
};

const nami_option_table nami_train_option_table = {
    .row = train_rows, .rows = sizeof train_rows / sizeof *train_rows};

static const nami_option run_rows[] = {
    {.section = "run",
     .key = "directory",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(nami_run_options, directory),
     .fallback = "run",
     .help = "Where logs, reports and checkpoints go; nami run again with the "
             "same directory resumes."},
    {.section = "run",
     .key = "restart",
     .kind = NAMI_OPTION_BOOL,
     .offset = offsetof(nami_run_options, restart),
     .fallback = "yes",
     .help = "Resume from the newest valid checkpoint; no: refuse a directory "
             "that is not empty."},
    {.section = "run",
     .key = "max_time",
     .kind = NAMI_OPTION_DURATION,
     .offset = offsetof(nami_run_options, max_time),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e+09,
     .help = "Stop with a checkpoint before this time has passed since the "
             "start; 0: no limit."},
    {.section = "run",
     .key = "stall_seconds",
     .kind = NAMI_OPTION_DURATION,
     .offset = offsetof(nami_run_options, stall_seconds),
     .fallback = "300",
     .minimum = 0.1,
     .maximum = 1e+09,
     .help = "After so long without any progress a rank says what it waits for "
             "and ends the run with exit code 7."},
    {.section = "run",
     .key = "memory",
     .kind = NAMI_OPTION_REAL,
     .offset = offsetof(nami_run_options, memory),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e+09,
     .unit = "GiB",
     .help = "Memory of one rank that the plan must fit; 0: the memory of the "
             "node / its ranks."},
};

const nami_option_table nami_run_option_table = {
    .row = run_rows, .rows = sizeof run_rows / sizeof *run_rows};

const nami_option_table *const nami_settings_tables[NAMI_SETTINGS_PARTS] = {
    &nami_model_option_table, &nami_pipeline_table,     &nami_data_option_table,
    &nami_train_option_table, &nami_optim_option_table, &nami_ckpt_option_table,
    &nami_run_option_table,   &nami_emu_option_table,   &nami_plan_option_table,
    &nami_switch_tables[0],   &nami_switch_tables[1],
};

void nami_settings_objects(nami_settings *s, void *object[NAMI_SETTINGS_PARTS])
{
    object[0] = &s->model;
    object[1] = &s->pipeline;
    object[2] = &s->data;
    object[3] = &s->train;
    object[4] = &s->optim;
    object[5] = &s->ckpt;
    object[6] = &s->run;
    object[7] = &s->emu;
    object[8] = &s->plan;
    for (int i = 0; i < NAMI_SWITCHES; i++)
        object[9 + i] = &s->change[i];
}

/* The vocabulary of the training set. */
static nami_status ask_vocabulary(nami_comm *c, nami_settings *s)
{
    nami_data *data = NULL;
    if (!s->data.train[0])
        return nami_fail(NAMI_EINPUT, "model.vocabulary = 0 takes it from data.train, "
                                      "which is not set");
    NAMI_TRY(nami_data_open(c, s->data.train, s->model.context, 0, &data));
    s->model.vocabulary = nami_data_vocabulary(data);
    nami_data_close(data);
    return NAMI_OK;
}

/* Sizes and classes that the deck leaves to the training set. */
static nami_status ask_images(nami_comm *c, nami_settings *s)
{
    nami_model_options *m = &s->model;
    nami_images *data = NULL;
    if (m->image_height && m->image_width && m->image_channels && m->classes)
        return NAMI_OK;
    if (!s->data.train[0])
        return nami_fail(
            NAMI_EINPUT,
            "model.image_height, image_width, image_channels or classes is 0, "
            "which takes it from data.train, which is not set");
    NAMI_TRY(nami_images_open(c, s->data.train, &data));
    const nami_image_facts *f = nami_images_facts(data);
    if (m->image_height == 0)
        m->image_height = f->height + 2 * s->data.pad;
    if (m->image_width == 0)
        m->image_width = f->width + 2 * s->data.pad;
    if (m->image_channels == 0)
        m->image_channels = f->channels;
    if (m->classes == 0)
        m->classes = f->classes;
    nami_images_close(data);
    return NAMI_OK;
}

/* Vocabulary and number of masked tokens that the deck leaves to the training set. */
static nami_status ask_sentences(nami_comm *c, nami_settings *s)
{
    nami_model_options *m = &s->model;
    nami_bert *data = NULL;
    if (m->vocabulary && m->predictions)
        return NAMI_OK;
    if (!s->data.train[0])
        return m->vocabulary
                   ? NAMI_OK
                   : nami_fail(NAMI_EINPUT, "model.vocabulary = 0 takes it from "
                                            "data.train, which is not set");
    const nami_bert_want want = {.time = m->context, .masked = m->context};
    NAMI_TRY(nami_bert_open(c, s->data.train, &want, &data));
    if (m->vocabulary == 0)
        m->vocabulary = nami_bert_vocabulary(data);
    if (m->predictions == 0)
        m->predictions = nami_bert_used(data);
    nami_bert_close(data);
    return NAMI_OK;
}

nami_status nami_settings_resolve(nami_comm *c, nami_settings *s)
{
    s->model.label_smoothing = s->train.label_smoothing;
    NAMI_TRY(nami_model_check_keys(&s->model));
    NAMI_TRY(nami_optim_resolve(&s->optim));
    NAMI_TRY(nami_settings_check_keys(s));
    if (nami_model_made_up(&s->model)) {
        if (s->model.vocabulary == 0)
            s->model.vocabulary = s->model.width;
        return NAMI_OK;
    }
    if (nami_model_takes_images(&s->model))
        return ask_images(c, s);
    if (nami_model_takes_sentences(&s->model))
        return ask_sentences(c, s);
    return s->model.vocabulary == 0 ? ask_vocabulary(c, s) : NAMI_OK;
}

void nami_settings_release(nami_settings *s)
{
    void *object[NAMI_SETTINGS_PARTS];
    nami_settings_objects(s, object);
    for (int i = 0; i < NAMI_SETTINGS_PARTS; i++)
        nami_option_release(nami_settings_tables[i], object[i]);
}

nami_dtype nami_settings_dtype(const nami_settings *s)
{
    return s->train.precision == 1 ? NAMI_BF16 : NAMI_F32;
}

const char *nami_settings_backend(const nami_settings *s)
{
    return backends[s->train.backend];
}

const char *nami_settings_host_backend(const nami_settings *s)
{
    const char *name = nami_settings_backend(s);
    return strcmp(name, "emu") ? name : nami_emu_delegates[s->emu.delegate];
}
