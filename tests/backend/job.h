/* SPDX-License-Identifier: MIT */
/* job.h - a run of kernels in the making: random inputs, outputs, launches. */
#ifndef NAMI_TESTS_BACKEND_JOB_H
#define NAMI_TESTS_BACKEND_JOB_H

#include "problem.h"

static inline nami_dtype job_wide(nami_dtype act)
{
    return act == NAMI_F64 ? NAMI_F64 : NAMI_F32;
}

static inline void job_put(nami_dtype d, void *data, int64_t i, double x)
{
    if (d == NAMI_F32)
        ((float *)data)[i] = (float)x;
    else if (d == NAMI_BF16)
        ((uint16_t *)data)[i] = nami_f32_to_bf16((float)x);
    else
        ((double *)data)[i] = x;
}

/* A run in the making: its arrays, inputs and outputs. */
typedef struct job {
    nami_backend *b;
    const nami_problem *p;
    nami_outcome all, out;
} job;

/* A new array of uniform numbers in [-scale, scale]. */
static inline void *job_fresh(job *j, const char *name, nami_dtype d, int64_t count,
                              double scale)
{
    const size_t size = nami_dtype_size(d);
    nami_array part = {.name = name, .dtype = d, .count = count};
    part.block = nami_backend_alloc(j->b, NAMI_MEM_OTHER,
                                    (size_t)(count + j->p->offset) * size + 1);
    part.data = (char *)part.block + (size_t)j->p->offset * size;
    const uint64_t key = nami_mix(j->p->seed, nami_hash_name(name));
    for (int64_t i = 0; i < count; i++)
        job_put(d, part.data, i, scale * (2 * nami_uniform(key, (uint64_t)i) - 1));
    NAMI_CHECK(j->all.parts < NAMI_ARRAYS);
    j->all.part[j->all.parts++] = part;
    return part.data;
}

/* The same, and the array is an output. */
static inline void *job_result(job *j, const char *name, nami_dtype d, int64_t count,
                               double scale)
{
    void *data = job_fresh(j, name, d, count, scale);
    j->out.part[j->out.parts++] = j->all.part[j->all.parts - 1];
    return data;
}

/* Prepare and launch; scratch is filled with NaN first. */
static inline void job_go(job *j, nami_kernel k, const void *args, void **scratch)
{
    const nami_prepared *p;
    if (nami_backend_prepare(j->b, k, args, &p) != NAMI_OK)
        nami_die(NAMI_EBUG);
    void *block = nami_backend_alloc(j->b, NAMI_MEM_TRANSIENT, p->scratch + 1);
    memset(block, 0xff, p->scratch);
    if (scratch)
        *scratch = block;
    nami_backend_wait(j->b, nami_backend_launch(j->b, 0, p, args));
    nami_backend_free(j->b, block);
}

/* Give back what is not an output. */
static inline nami_outcome job_done(job *j)
{
    for (int i = 0; i < j->all.parts; i++) {
        bool kept = false;
        for (int k = 0; k < j->out.parts; k++)
            kept = kept || j->out.part[k].block == j->all.part[i].block;
        if (!kept)
            nami_backend_free(j->b, j->all.part[i].block);
    }
    return j->out;
}

#endif
