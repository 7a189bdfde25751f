/* SPDX-License-Identifier: MIT */
/* options.h - what a deck says: the options of all modules in one struct, and the tables train/ owns. */
#ifndef NAMI_TRAIN_OPTIONS_H
#define NAMI_TRAIN_OPTIONS_H

#include "backend/emu/options.h"
#include "base/option.h"
#include "ckpt/ckpt.h"
#include "data/data.h"
#include "exec/layout.h"
#include "plan/options.h"
#include "sched/options.h"
#include "train/switch.h"

/* [train] of the deck, without what optim/ owns. */
typedef struct nami_train_options {
    int64_t steps, batch;
    double dropout;
    double label_smoothing;
    int64_t seed;
    int precision; /* index: f32, bf16 */
    int backend;   /* index: cpu, ref, emu */
    int64_t threads, partials;
    char *init;
    int64_t eval_every, eval_epochs, eval_batches, log_every;
} nami_train_options;

/* [run] of the deck. */
typedef struct nami_run_options {
    char *directory;
    double max_time, stall_seconds; /* seconds */
    bool restart;
    double memory; /* GiB of one rank; 0 = the node's memory / its ranks */
} nami_run_options;

extern const nami_option_table nami_train_option_table;
extern const nami_option_table nami_run_option_table;

/* All that a deck sets. */
typedef struct nami_settings {
    nami_model_options model;
    nami_pipeline_options pipeline;
    nami_data_options data;
    nami_train_options train;
    nami_optim_options optim;
    nami_ckpt_options ckpt;
    nami_run_options run;
    nami_emu_options emu;
    nami_plan_options plan;
    nami_switch_options change[NAMI_SWITCHES];
} nami_settings;

enum { NAMI_SETTINGS_PARTS = 9 + NAMI_SWITCHES };

/* The tables in the order of the echoed deck. */
extern const nami_option_table *const nami_settings_tables[NAMI_SETTINGS_PARTS];

/* The part of `s` that each table fills. Local. */
void nami_settings_objects(nami_settings *s, void *object[NAMI_SETTINGS_PARTS]);

/* Complete what the tables alone cannot say: the optimiser's betas, a vocabulary of 0 from the training set.
 * Collective on c; NULL: this process alone. Status: NAMI_EINPUT. */
nami_status nami_settings_resolve(nami_comm *c, nami_settings *s);

/* Refuse keys that are set but do nothing beside the others. Local. Status: NAMI_EINPUT naming the key. */
nami_status nami_settings_check_keys(const nami_settings *s);

/* Free texts and lists. Local. */
void nami_settings_release(nami_settings *s);

/* The arithmetic type and backend that the settings name. Local. */
nami_dtype nami_settings_dtype(const nami_settings *s);
const char *nami_settings_backend(const nami_settings *s);

/* The same for work without a device: what emu would compute with. Local. */
const char *nami_settings_host_backend(const nami_settings *s);

#endif
