/* SPDX-License-Identifier: MIT */
/* problem_image.c - random problems for the kernels of image models. */
#include "job.h"

#include <math.h>

/* What a window makes of an extent. */
static int64_t covered(int64_t extent, int64_t kernel, int64_t stride, int64_t padding,
                       int64_t dilation)
{
    return (extent + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

static nami_stencil stencil(int64_t height, int64_t width, int64_t kernel,
                            int64_t stride, int64_t padding, int64_t dilation)
{
    return (nami_stencil){
        .height = height,
        .width = width,
        .out_height = covered(height, kernel, stride, padding, dilation),
        .out_width = covered(width, kernel, stride, padding, dilation),
        .kernel_h = kernel,
        .kernel_w = kernel,
        .stride = stride,
        .pad_h = padding,
        .pad_w = padding,
        .dilation = dilation};
}

/* B, H, W, I, O, kernel, stride, groups; bare: no padding, no bias; with dropout: dilated. */
nami_outcome nami_run_conv(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const nami_dtype act = p->act, w = job_wide(act);
    const int64_t *d = p->dim, dilation = p->dropout > 0 ? 2 : 1;
    const nami_stencil s =
        stencil(d[1], d[2], d[5], d[6], p->bare ? 0 : d[5] / 2 * dilation, dilation);
    const int64_t x = d[0] * d[1] * d[2] * d[3],
                  y = d[0] * s.out_height * s.out_width * d[4];
    const int64_t weights = d[4] * d[3] / d[7] * d[5] * d[5];
    nami_arg_conv a = {.act = act,
                       .batch = d[0],
                       .in = d[3],
                       .out = d[4],
                       .groups = d[7],
                       .window = s};
    a.x = job_fresh(&j, "x", act, x, 1);
    a.w =
        job_fresh(&j, "w", w, weights, sqrt(3.0 / (double)(d[5] * d[5] * d[3] / d[7])));
    a.b = p->bare ? NULL : job_fresh(&j, "b", w, d[4], 1);
    a.dy = job_fresh(&j, "dy", act, y, 1);
    a.y = job_result(&j, "y", act, y, 1);
    a.dx = job_result(&j, "dx", act, x, 1);
    a.dw = job_result(&j, "dw", w, weights, 1);
    a.db = p->bare ? NULL : job_result(&j, "db", w, d[4], 1);
    const nami_prepared *pack;
    if (nami_backend_prepare(b, NAMI_CONV_PACK, &a, &pack) != NAMI_OK)
        nami_die(NAMI_EBUG);
    a.packed_f = nami_backend_alloc(b, NAMI_MEM_PACKED, pack->packed_f + 1);
    a.packed_b = nami_backend_alloc(b, NAMI_MEM_PACKED, pack->packed_b + 1);
    job_go(&j, NAMI_CONV_PACK, &a, &a.scratch);
    job_go(&j, NAMI_CONV_F, &a, &a.scratch);
    job_go(&j, NAMI_CONV_BI, &a, &a.scratch);
    job_go(&j, NAMI_CONV_BW, &a, &a.scratch);
    nami_backend_free(b, a.packed_f);
    nami_backend_free(b, a.packed_b);
    return job_done(&j);
}

/* The same rows beside 7 of zeros elsewhere, which add nothing to any sum of x; of dy neither. */
static void run_shared(job *j, nami_arg_batch_norm *a)
{
    const nami_dtype w = job_wide(a->act);
    const int64_t c = a->width;
    a->all = a->n + 7;
    a->sums = job_result(j, "sums of x", NAMI_F64, 2 * c, 1);
    a->y = job_result(j, "y of all", a->act, a->n * c, 0);
    a->mean = job_result(j, "mean of all", w, c, 0);
    a->var = job_result(j, "var of all", w, c, 0);
    job_go(j, NAMI_BATCH_NORM_F_OWN, a, &a->scratch);
    job_go(j, NAMI_BATCH_NORM_F, a, &a->scratch);
    a->sums = job_result(j, "sums of dy", NAMI_F64, 2 * c, 1);
    a->dx = job_result(j, "dx of all", a->act, a->n * c, 1);
    a->dw = job_result(j, "dw of all", w, c, 1);
    a->dvar = job_result(j, "dvar of all", w, c, 1);
    job_go(j, NAMI_BATCH_NORM_BI_OWN, a, &a->scratch);
    job_go(j, NAMI_BATCH_NORM_BI, a, &a->scratch);
    a->sums = NULL;
    job_go(j, NAMI_BATCH_NORM_BW, a, &a->scratch);
}

/* n, C; bare: without ReLU */
nami_outcome nami_run_batch_norm(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const nami_dtype act = p->act, w = job_wide(act);
    const int64_t n = p->dim[0], c = p->dim[1];
    nami_arg_batch_norm a = {
        .act = act, .n = n, .width = c, .eps = 0.5, .relu = !p->bare};
    a.x = job_fresh(&j, "x", act, n * c, 2);
    a.w = job_fresh(&j, "w", w, c, 1);
    a.b = job_fresh(&j, "b", w, c, 1);
    a.dy = job_fresh(&j, "dy", act, n * c, 1);
    a.y = job_result(&j, "y", act, n * c, 0);
    a.mean = job_result(&j, "mean", w, c, 0);
    a.var = job_result(&j, "var", w, c, 0);
    a.dx = job_result(&j, "dx", act, n * c, 1);
    a.dw = job_result(&j, "dw", w, c, 1);
    a.db = job_result(&j, "db", w, c, 1);
    a.dmean = job_result(&j, "dmean", w, c, 1);
    a.dvar = job_result(&j, "dvar", w, c, 1);
    job_go(&j, NAMI_BATCH_NORM_F, &a, &a.scratch);
    job_go(&j, NAMI_BATCH_NORM_BI, &a, &a.scratch);
    job_go(&j, NAMI_BATCH_NORM_BW, &a, &a.scratch);
    a.running = true;
    a.running_mean = job_fresh(&j, "running mean", w, c, 1);
    a.running_var = a.var;
    a.y = job_result(&j, "y running", act, n * c, 0);
    job_go(&j, NAMI_BATCH_NORM_F, &a, &a.scratch);
    a.running = false;
    run_shared(&j, &a);
    return job_done(&j);
}

/* B, H, W, C, kernel, stride, padding; bare: the mean counts padding */
nami_outcome nami_run_pool(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t *d = p->dim;
    const nami_stencil s = stencil(d[1], d[2], d[4], d[5], d[6], 1);
    const int64_t x = d[0] * d[1] * d[2] * d[3],
                  y = d[0] * s.out_height * s.out_width * d[3];
    nami_arg_pool a = {
        .act = p->act, .batch = d[0], .channels = d[3], .window = s, .max = true};
    a.x = job_fresh(&j, "x", p->act, x, 1);
    a.dy = job_fresh(&j, "dy", p->act, y, 1);
    a.y = job_result(&j, "largest", p->act, y, 0);
    a.dx = job_result(&j, "dx largest", p->act, x, 1);
    job_go(&j, NAMI_POOL_F, &a, NULL);
    job_go(&j, NAMI_POOL_BI, &a, NULL);
    a.max = false;
    a.count_padding = p->bare;
    a.y = job_result(&j, "mean", p->act, y, 0);
    a.dx = job_result(&j, "dx mean", p->act, x, 1);
    job_go(&j, NAMI_POOL_F, &a, NULL);
    job_go(&j, NAMI_POOL_BI, &a, NULL);
    return job_done(&j);
}

static void run_unary(job *j, int64_t count)
{
    static const char *const names[NAMI_UNARIES][2] = {{"relu", "d relu"},
                                                       {"relu6", "d relu6"},
                                                       {"sigmoid", "d sigmoid"},
                                                       {"silu", "d silu"},
                                                       {"gelu by erf", "d gelu by erf"},
                                                       {"tanh", "d tanh"}};
    const nami_dtype act = j->p->act;
    const void *x = job_fresh(j, "x", act, count, 9),
               *dy = job_fresh(j, "dy", act, count, 1);
    for (int f = 0; f < NAMI_UNARIES; f++) {
        nami_arg_unary a = {
            .act = act, .function = (nami_unary)f, .count = count, .x = x, .dy = dy};
        a.y = job_result(j, names[f][0], act, count, 0);
        a.dx = job_result(j, names[f][1], act, count, 0);
        job_go(j, NAMI_UNARY_F, &a, NULL);
        job_go(j, NAMI_UNARY_BI, &a, NULL);
    }
}

/* B, positions, C: all the small ones */
nami_outcome nami_run_image(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const nami_dtype act = p->act;
    const int64_t *d = p->dim, n = d[0] * d[1], count = n * d[2];
    run_unary(&j, count);
    nami_arg_concat c = {.act = act, .n = n, .width_a = d[2], .width_b = 3};
    c.a = job_fresh(&j, "a", act, count, 1);
    c.b = job_fresh(&j, "b", act, 3 * n, 1);
    c.dy = job_fresh(&j, "d joined", act, count + 3 * n, 1);
    c.y = job_result(&j, "joined", act, count + 3 * n, 0);
    c.da = p->bare ? NULL : job_result(&j, "da", act, count, 0);
    c.db = job_result(&j, "db", act, 3 * n, 0);
    job_go(&j, NAMI_CONCAT_F, &c, NULL);
    job_go(&j, NAMI_CONCAT_BI, &c, NULL);
    nami_arg_excite e = {
        .act = act, .batch = d[0], .positions = d[1], .channels = d[2], .x = c.a};
    e.s = job_fresh(&j, "s", act, d[0] * d[2], 1);
    e.dy = job_fresh(&j, "d excited", act, count, 1);
    e.y = job_result(&j, "excited", act, count, 0);
    e.dx = job_result(&j, "dx", act, count, 0);
    e.ds = p->bare ? NULL : job_result(&j, "ds", act, d[0] * d[2], 0);
    job_go(&j, NAMI_EXCITE_F, &e, NULL);
    job_go(&j, NAMI_EXCITE_BI, &e, NULL);
    nami_arg_turn t = {
        .act = act, .batch = d[0], .rows = d[1], .columns = d[2], .x = c.a};
    t.y = job_result(&j, "turned", act, count, 0);
    job_go(&j, NAMI_TURN, &t, NULL);
    t.x = job_fresh(&j, "data", NAMI_F32, count, 1);
    t.y = job_result(&j, "cast", act, count, 0);
    job_go(&j, NAMI_CAST, &t, NULL);
    return job_done(&j);
}

/* B, T, C */
nami_outcome nami_run_prepend(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const nami_dtype act = p->act, w = job_wide(act);
    const int64_t *d = p->dim, each = (d[1] + 1) * d[2];
    nami_arg_prepend a = {.act = act, .batch = d[0], .time = d[1], .width = d[2]};
    a.x = job_fresh(&j, "x", act, d[0] * d[1] * d[2], 1);
    a.token = job_fresh(&j, "token", w, d[2], 1);
    a.position = job_fresh(&j, "position", w, each, 1);
    a.dy = job_fresh(&j, "dy", act, d[0] * each, 1);
    a.y = job_result(&j, "y", act, d[0] * each, 0);
    a.dx = job_result(&j, "dx", act, d[0] * d[1] * d[2], 1);
    a.dtoken = job_result(&j, "dtoken", w, d[2], 1);
    a.dposition = job_result(&j, "dposition", w, each, 1);
    job_go(&j, NAMI_PREPEND_F, &a, NULL);
    job_go(&j, NAMI_PREPEND_BI, &a, NULL);
    job_go(&j, NAMI_PREPEND_BW, &a, NULL);
    return job_done(&j);
}
