/* SPDX-License-Identifier: MIT */
/* fold_tables.h - tables of fold.c: ranges ascending, code points of 128 and above in those of classes. */
#ifndef NAMI_DATA_FOLD_TABLES_H
#define NAMI_DATA_FOLD_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "data/unicode.h"

/* Every `stride`-th character of first..last becomes itself + add. */
typedef struct nami_fold_run {
    uint32_t first, last, stride;
    int32_t add;
} nami_fold_run;

/* A character that becomes several; 0 behind the last. */
typedef struct nami_fold_pieces {
    uint32_t from, to[4];
} nami_fold_pieces;

extern const nami_unicode_range nami_fold_spaces[], nami_fold_controls[],
    nami_fold_marks[], nami_fold_signs[];
extern const size_t nami_fold_spaces_count, nami_fold_controls_count,
    nami_fold_marks_count, nami_fold_signs_count;
extern const nami_fold_run nami_fold_runs[];
extern const size_t nami_fold_runs_count;
extern const nami_fold_pieces nami_fold_many[];
extern const size_t nami_fold_many_count;

/* What U+F900 and U+2F800 and those behind them become. */
extern const uint32_t nami_fold_ideographs[], nami_fold_more_ideographs[];
extern const size_t nami_fold_ideographs_count, nami_fold_more_ideographs_count;

#endif
