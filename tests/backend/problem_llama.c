/* SPDX-License-Identifier: MIT */
/* problem_llama.c - random problems for the kernels of Llama: rotary positions and its gated MLP. */
#include "job.h"

/* B, time, heads, head width, elements that do not turn; first position */
nami_outcome nami_run_rotary(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t *d = p->dim, n = d[0] * d[1] * (d[2] * d[3] + d[4]);
    nami_arg_rotary a = {.act = p->act,
                         .batch = d[0],
                         .time = d[1],
                         .heads = d[2],
                         .width = d[3],
                         .rest = d[4],
                         .first = d[5],
                         .theta = p->bare ? 500000 : 10000};
    a.x = job_fresh(&j, "x", p->act, n, 1);
    a.dy = job_fresh(&j, "dy", p->act, n, 1);
    a.y = job_result(&j, "y", p->act, n, 0);
    a.dx = job_result(&j, "dx", p->act, n, 1);
    job_go(&j, NAMI_ROTARY_F, &a, NULL);
    job_go(&j, NAMI_ROTARY_BI, &a, NULL);
    return job_done(&j);
}

/* n, width */
nami_outcome nami_run_swiglu(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t n = p->dim[0] * p->dim[1];
    nami_arg_swiglu a = {.act = p->act, .n = p->dim[0], .width = p->dim[1]};
    void *x = job_fresh(&j, "x", p->act, 2 * n, 6);
    if (p->poison != 0)
        job_put(p->act, x, n / 2, p->poison);
    a.x = x;
    a.dy = job_fresh(&j, "dy", p->act, n, 1);
    a.y = job_result(&j, "y", p->act, n, 0);
    a.dx = job_result(&j, "dx", p->act, 2 * n, 1);
    job_go(&j, NAMI_SWIGLU_F, &a, NULL);
    job_go(&j, NAMI_SWIGLU_BI, &a, NULL);
    return job_done(&j);
}
