/* SPDX-License-Identifier: MIT */
/* problem.h - random problems for every kernel, run on any backend. */
#ifndef NAMI_TESTS_BACKEND_PROBLEM_H
#define NAMI_TESTS_BACKEND_PROBLEM_H

#include "backend/backend.h"

enum { NAMI_ARRAYS = 32 };

/* One array of a problem. Data starts `offset` elements behind an aligned address. */
typedef struct nami_array {
    const char *name; /* "dw"; NULL: unused */
    nami_dtype dtype;
    int64_t count;
    void *data, *block;
} nami_array;

/* The outputs of a run, by name; and the backend's memory behind them. */
typedef struct nami_outcome {
    nami_array part[NAMI_ARRAYS];
    int parts;
} nami_outcome;

typedef struct nami_problem {
    nami_dtype act;
    int64_t dim[8]; /* as the family says */
    int64_t slices; /* attention, dropout: of dim[1] elements; 0: whole */
    double dropout;
    uint64_t seed;
    int offset;    /* of all arrays, elements */
    bool bare;     /* without the optional operands */
    double poison; /* put in place of one input element; 0: none */
} nami_problem;

/* A family runs all its kernels on `b` and returns the outputs. */
typedef nami_outcome nami_suite_run(nami_backend *b, const nami_problem *p);

/* Of image models: problem_image.c. */
nami_suite_run nami_run_conv, nami_run_batch_norm, nami_run_pool, nami_run_image;
nami_suite_run nami_run_prepend;

/* Of masked sentences: problem_masked.c. */
nami_suite_run nami_run_masked;

/* Of Llama: problem_llama.c. */
nami_suite_run nami_run_rotary, nami_run_swiglu;

typedef struct nami_suite {
    const char *name;
    nami_suite_run *run;
    bool thread_free; /* bit-equal for every number of threads */
} nami_suite;

extern const nami_suite nami_suites[];
extern const int nami_suites_count;

void nami_outcome_free(nami_backend *b, nami_outcome *o);

/* Element i as a double. */
double nami_array_get(const nami_array *p, int64_t i);

#endif
