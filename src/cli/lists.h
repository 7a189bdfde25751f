/* SPDX-License-Identifier: MIT */
/* lists.h - flags that simulate and verify share: which schedule, and what a message and an action cost. */
#ifndef NAMI_CLI_LISTS_H
#define NAMI_CLI_LISTS_H

#include "base/option.h"
#include "sched/options.h"
#include "sched/schedule.h"

/* Which schedule. */
typedef struct nami_lists_flags {
    char *schedule;                  /* a preset, or "file:PATH" */
    int64_t positions, microbatches; /* 0: as the file says */
    int64_t waves, chunks, slices;
    int weights, split; /* 0: the schedule's, else nami_weights, nami_split + 1 */
    int64_t per_update; /* without a flush */
    nami_ints stage_replicas, depth, stage_recompute;
} nami_lists_flags;

/* Rows of an option table for a struct of `type` with the field `name` of the above. */
#define NAMI_LISTS_ROWS(type, name)                                                    \
    {.key = "schedule",                                                                \
     .kind = NAMI_OPTION_TEXT,                                                         \
     .offset = offsetof(type, name.schedule),                                          \
     .fallback = "hanayo",                                                             \
     .help = "a named schedule, or file:PATH for lists in text or CSV form"},          \
        {.key = "positions",                                                           \
         .kind = NAMI_OPTION_INT,                                                      \
         .offset = offsetof(type, name.positions),                                     \
         .fallback = "0",                                                              \
         .minimum = 0,                                                                 \
         .maximum = NAMI_STAGES_MOST,                                                  \
         .help = "positions of the pipeline (P); 0: as the file says"},                \
        {.key = "microbatches",                                                        \
         .kind = NAMI_OPTION_INT,                                                      \
         .offset = offsetof(type, name.microbatches),                                  \
         .fallback = "0",                                                              \
         .minimum = 0,                                                                 \
         .maximum = INT32_MAX / 4,                                                     \
         .help = "micro-batches of the pipeline and step (M), without a flush of the " \
                 "whole window; 0: as the file says"},                                 \
        {.key = "weights",                                                             \
         .kind = NAMI_OPTION_CHOICE,                                                   \
         .offset = offsetof(type, name.weights),                                       \
         .fallback = "preset",                                                         \
         .choices = nami_weights_choices,                                              \
         .help = "which version of the weights an action reads; all but flush update " \
                 "without waiting"},                                                   \
        {.key = "per-update",                                                          \
         .kind = NAMI_OPTION_INT,                                                      \
         .offset = offsetof(type, name.per_update),                                    \
         .fallback = "1",                                                              \
         .minimum = 1,                                                                 \
         .maximum = INT32_MAX / 4,                                                     \
         .help = "micro-batches of an update, without a flush"},                       \
        {.key = "split",                                                               \
         .kind = NAMI_OPTION_CHOICE,                                                   \
         .offset = offsetof(type, name.split),                                         \
         .fallback = "preset",                                                         \
         .choices = nami_split_choices,                                                \
         .help = "how work is divided over the ranks of a position"},                  \
        {.key = "stage-replicas",                                                      \
         .kind = NAMI_OPTION_INTS,                                                     \
         .offset = offsetof(type, name.stage_replicas),                                \
         .fallback = "",                                                               \
         .help = "ranks of each position, as 4-3-1"},                                  \
        {.key = "depth",                                                               \
         .kind = NAMI_OPTION_INTS,                                                     \
         .offset = offsetof(type, name.depth),                                         \
         .fallback = "",                                                               \
         .help = "micro-batches that each stage runs ahead, in the order 1f1b"},       \
        {.key = "stage-recompute",                                                     \
         .kind = NAMI_OPTION_INTS,                                                     \
         .offset = offsetof(type, name.stage_recompute),                               \
         .fallback = "",                                                               \
         .help = "stages that run their forward again, as 1-1-0"},                     \
        {.key = "waves",                                                               \
         .kind = NAMI_OPTION_INT,                                                      \
         .offset = offsetof(type, name.waves),                                         \
         .fallback = "1",                                                              \
         .minimum = 1,                                                                 \
         .maximum = NAMI_STAGES_MOST,                                                  \
         .help = "waves (W) of a wave placement; others refuse it"},                   \
        {.key = "slices",                                                              \
         .kind = NAMI_OPTION_INT,                                                      \
         .offset = offsetof(type, name.slices),                                        \
         .fallback = "1",                                                              \
         .minimum = 1,                                                                 \
         .maximum = UINT16_MAX,                                                        \
         .help = "token slices of a sequence (K), with an order that slices"},         \
    {                                                                                  \
        .key = "chunks", .kind = NAMI_OPTION_INT,                                      \
        .offset = offsetof(type, name.chunks), .fallback = "2", .minimum = 1,          \
        .maximum = NAMI_STAGES_MOST,                                                   \
        .help = "stages a position (V) of a looping placement; others refuse it"       \
    }

/* The recipe that flags ask for; it borrows names from `f`.
 * Local. Status: NAMI_EINPUT when a count is missing or the schedule is unknown. */
nami_status nami_lists_recipe(const nami_lists_flags *f, nami_recipe *out);

/* Refuse flags that do nothing with the recipe they ask for; `table` has their rows, for the struct `flags`.
 * Local. Status: NAMI_EINPUT naming the flag. */
nami_status nami_lists_check(const nami_recipe *r, const nami_option_table *table,
                             const void *flags);

/* All named schedules with their summaries, a line each, appended to `out`. Local. */
void nami_lists_presets(nami_text *out);

/* Write `text` to the file at `path`. Local. Status: NAMI_EENV with the system's reason. */
nami_status nami_lists_write(const char *path, const nami_text *text);

#endif
