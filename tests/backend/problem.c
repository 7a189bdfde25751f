/* SPDX-License-Identifier: MIT */
/* problem.c - random problems for every kernel, run on any backend. */
#include "job.h"

#include <math.h>

double nami_array_get(const nami_array *p, int64_t i)
{
    if (p->dtype == NAMI_F32)
        return ((const float *)p->data)[i];
    if (p->dtype == NAMI_BF16)
        return nami_bf16_to_f32(((const uint16_t *)p->data)[i]);
    return ((const double *)p->data)[i];
}

void nami_outcome_free(nami_backend *b, nami_outcome *o)
{
    for (int i = 0; i < o->parts; i++)
        nami_backend_free(b, o->part[i].block);
    o->parts = 0;
}

/* n, in, out */
static nami_outcome run_linear(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const nami_dtype act = p->act, w = job_wide(act);
    const int64_t n = p->dim[0], in = p->dim[1], out = p->dim[2];
    nami_arg_linear a = {.act = act, .n = n, .in = in, .out = out};
    const double scale = sqrt(3.0 / (double)(in < out ? out : in));
    a.x = job_fresh(&j, "x", act, n * in, 1);
    a.w = job_fresh(&j, "w", w, out * in, scale);
    a.b = p->bare ? NULL : job_fresh(&j, "b", w, out, 1);
    a.dy = job_fresh(&j, "dy", act, n * out, 1);
    a.add = p->bare ? NULL : job_fresh(&j, "add", act, n * in, 1);
    a.y = job_result(&j, "y", act, n * out, 0);
    a.dx = job_result(&j, "dx", act, n * in, 1);
    a.dw = job_result(&j, "dw", w, out * in, 1);
    a.db = p->bare ? NULL : job_result(&j, "db", w, out, 1);
    const nami_prepared *pack;
    if (nami_backend_prepare(b, NAMI_LINEAR_PACK, &a, &pack) != NAMI_OK)
        nami_die(NAMI_EBUG);
    a.packed_f = nami_backend_alloc(b, NAMI_MEM_PACKED, pack->packed_f + 1);
    a.packed_b = nami_backend_alloc(b, NAMI_MEM_PACKED, pack->packed_b + 1);
    job_go(&j, NAMI_LINEAR_PACK, &a, &a.scratch);
    job_go(&j, NAMI_LINEAR_F, &a, &a.scratch);
    job_go(&j, NAMI_LINEAR_BI, &a, &a.scratch);
    job_go(&j, NAMI_LINEAR_BW, &a, &a.scratch);
    nami_backend_free(b, a.packed_f);
    nami_backend_free(b, a.packed_b);
    return job_done(&j);
}

/* n, width; of RMS norm where the third is set */
static nami_outcome run_norm(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const nami_dtype act = p->act, w = job_wide(act);
    const int64_t n = p->dim[0], width = p->dim[1];
    nami_arg_norm a = {
        .act = act, .n = n, .width = width, .eps = 1e-5, .rms = p->dim[2] > 0};
    void *x = job_fresh(&j, "x", act, n * width, 2);
    if (p->poison != 0)
        job_put(act, x, 0, p->poison);
    a.x = x;
    a.w = job_fresh(&j, "w", w, width, 1);
    a.b = p->bare ? NULL : job_fresh(&j, "b", w, width, 1);
    a.dy = job_fresh(&j, "dy", act, n * width, 1);
    a.add = p->bare ? NULL : job_fresh(&j, "add", act, n * width, 1);
    a.y = job_result(&j, "y", act, n * width, 0);
    a.mean = a.rms ? NULL : job_fresh(&j, "mean", w, n, 0);
    a.rstd = job_fresh(&j, "rstd", w, n, 0);
    a.dx = job_result(&j, "dx", act, n * width, 1);
    a.dw = job_result(&j, "dw", w, width, 1);
    job_go(&j, NAMI_NORM_F, &a, NULL);
    job_go(&j, NAMI_NORM_BI, &a, NULL);
    if (p->bare) {
        job_go(&j, NAMI_NORM_BW, &a, NULL);
        return job_done(&j);
    }
    void *db =
        nami_backend_alloc(b, NAMI_MEM_OTHER, (size_t)width * nami_dtype_size(w));
    for (int64_t c = 0; c < width; c++)
        job_put(w, db, c, 0.25);
    a.db = db;
    job_go(&j, NAMI_NORM_BW, &a, NULL);
    j.out.part[j.out.parts++] =
        (nami_array){.name = "db", .dtype = w, .count = width, .data = db, .block = db};
    return job_done(&j);
}

/* count */
static nami_outcome run_gelu(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t n = p->dim[0];
    nami_arg_gelu a = {.act = p->act, .count = n};
    void *x = job_fresh(&j, "x", p->act, n, 12);
    if (p->poison != 0)
        job_put(p->act, x, n / 2, p->poison);
    a.x = x;
    a.dy = job_fresh(&j, "dy", p->act, n, 1);
    a.y = job_result(&j, "y", p->act, n, 0);
    a.dx = job_result(&j, "dx", p->act, n, 1);
    job_go(&j, NAMI_GELU_F, &a, NULL);
    job_go(&j, NAMI_GELU_BI, &a, NULL);
    return job_done(&j);
}

/* Bytes of row (s, t) of arrays [d0, d1, row bytes] and of their slices [slices, d0, d1 / slices, row bytes]. */
static void slice_rows(const nami_problem *p, char *whole, char *sliced, size_t row,
                       bool back)
{
    const int64_t each = p->dim[1] / p->slices;
    for (int64_t i = 0; i < p->dim[0] * p->dim[1]; i++) {
        const int64_t s = i / p->dim[1], t = i % p->dim[1];
        char *w = whole + (size_t)i * row;
        char *k = sliced + (size_t)((t / each * p->dim[0] + s) * each + t % each) * row;
        memcpy(back ? w : k, back ? k : w, row);
    }
}

/* lse: [d0, heads, d1] and [slices, d0, heads, d1 / slices]. */
static void unslice_lse(const nami_problem *p, char *whole, const char *sliced,
                        size_t size)
{
    const int64_t *d = p->dim, each = d[1] / p->slices;
    for (int64_t i = 0; i < d[0] * d[2] * d[1]; i++) {
        const int64_t u = i / d[1], t = i % d[1];
        const int64_t k = (t / each * d[0] * d[2] + u) * each + t % each;
        memcpy(whole + (size_t)i * size, sliced + (size_t)k * size, size);
    }
}

/* The passes of a sliced sample, on arrays of whole ones. */
static void go_sliced(job *j, nami_arg_attention whole)
{
    const nami_problem *p = j->p;
    const int64_t *d = p->dim, tokens = d[0] * d[1], parts = p->slices;
    const int64_t out = d[2] * d[3], in = nami_attention_row(&whole), kv = in - out;
    const size_t size = nami_dtype_size(p->act),
                 wsize = nami_dtype_size(job_wide(p->act));
    const size_t rows = (size_t)(tokens / parts); /* of a slice */
    const size_t each = rows * (size_t)out * size, own_in = rows * (size_t)in * size,
                 own_kv = rows * (size_t)kv * wsize;
    const size_t block = 2 * own_in + own_kv + 64;
    char *kept = nami_backend_alloc(j->b, NAMI_MEM_OTHER, block * (size_t)parts);
    char *qkv = job_fresh(j, "qkv of slices", p->act, tokens * in, 1);
    char *dqkv = job_fresh(j, "dqkv of slices", p->act, tokens * in, 1);
    char *dy = job_fresh(j, "dy of slices", p->act, tokens * out, 1);
    char *y = job_fresh(j, "y of slices", p->act, tokens * out, 1);
    char *lse = job_fresh(j, "lse of slices", job_wide(p->act), tokens * d[2], 1);
    memset(kept, 0xff, block * (size_t)parts);
    slice_rows(p, (char *)(uintptr_t)whole.qkv, qkv, (size_t)in * size, false);
    slice_rows(p, (char *)(uintptr_t)whole.dy, dy, (size_t)out * size, false);
    for (int64_t i = 0; i < 2 * parts; i++) {
        const int64_t k = i < parts ? i : 2 * parts - 1 - i;
        nami_arg_attention a = whole;
        char *own = kept + (size_t)k * block;
        a.time = d[1] / parts;
        a.slices = parts;
        a.slice = k;
        a.stride = block;
        a.dkv = own;
        a.qkv = own + own_kv;
        a.dqkv = own + own_kv + own_in;
        a.dy = dy + (size_t)k * each;
        a.y = y + (size_t)k * each;
        a.lse = lse + (size_t)(k * d[0] * d[2] * a.time) * wsize;
        if (i < parts)
            memcpy((char *)(uintptr_t)a.qkv, qkv + (size_t)k * own_in, own_in);
        job_go(j, i < parts ? NAMI_ATTENTION_F : NAMI_ATTENTION_BI, &a, &a.scratch);
        if (i >= parts)
            memcpy(dqkv + (size_t)k * own_in, a.dqkv, own_in);
    }
    slice_rows(p, whole.y, y, (size_t)out * size, true);
    slice_rows(p, whole.dqkv, dqkv, (size_t)in * size, true);
    unslice_lse(p, whole.lse, lse, wsize);
    nami_backend_free(j->b, kept);
}

/* B, time, heads, head width, heads of k and v (0: the same), 0 causal, 1 whole, 2 whole with lengths */
static nami_outcome run_attention(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t *d = p->dim, n = d[0] * d[1] * d[2] * d[3];
    nami_arg_attention a = {.act = p->act,
                            .batch = d[0],
                            .time = d[1],
                            .heads = d[2],
                            .head_width = d[3],
                            .kv_heads = d[4],
                            .whole = d[5] > 0,
                            .dropout = p->dropout,
                            .key = p->seed * 77,
                            .first_sample = 5};
    const int64_t rows = d[0] * d[1] * nami_attention_row(&a);
    int32_t *length = nami_backend_alloc(b, NAMI_MEM_OTHER, (size_t)d[0] * 4);
    for (int64_t s = 0; s < d[0]; s++)
        length[s] =
            s == 0 ? 1 : 1 + (int32_t)(nami_mix(p->seed, (uint64_t)s) % (uint64_t)d[1]);
    a.length = d[5] > 1 ? length : NULL;
    void *qkv = job_fresh(&j, "qkv", p->act, rows, 1.5);
    if (p->poison != 0)
        job_put(p->act, qkv, 0, p->poison);
    a.qkv = qkv;
    a.dy = job_fresh(&j, "dy", p->act, n, 1);
    a.y = job_result(&j, "y", p->act, n, 0);
    a.lse = job_result(&j, "lse", job_wide(p->act), d[0] * d[1] * d[2], 0);
    a.dqkv = job_result(&j, "dqkv", p->act, rows, 1);
    if (p->slices > 1) {
        go_sliced(&j, a);
    } else {
        job_go(&j, NAMI_ATTENTION_F, &a, &a.scratch);
        job_go(&j, NAMI_ATTENTION_BI, &a, &a.scratch);
    }
    nami_backend_free(b, length);
    return job_done(&j);
}

/* B, count; with slices, which need not divide it, B = 1 */
static nami_outcome run_dropout(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t n = p->dim[0] * p->dim[1];
    nami_arg_dropout a = {.act = p->act,
                          .batch = p->dim[0],
                          .count = p->dim[1],
                          .dropout = p->dropout,
                          .key = p->seed * 31,
                          .first_sample = (int64_t)1 << 33};
    a.x = job_fresh(&j, "x", p->act, n, 1);
    a.add = p->bare ? NULL : job_fresh(&j, "add", p->act, n, 1);
    a.dy = job_fresh(&j, "dy", p->act, n, 1);
    a.y = job_result(&j, "y", p->act, n, 0);
    a.dx = job_result(&j, "dx", p->act, n, 1);
    const int64_t parts = p->dim[0] == 1 && p->slices > 1 ? p->slices : 1;
    const int64_t each = n / parts;
    for (int64_t k = 0; k < parts; k++) { /* of a single sample: any part of it */
        nami_arg_dropout part = a;
        const size_t skip = (size_t)(k * each) * nami_dtype_size(p->act);
        part.first = k * each;
        part.count = k + 1 < parts ? p->dim[1] / parts : p->dim[1] - k * each;
        part.x = (const char *)a.x + skip;
        part.add = a.add ? (const char *)a.add + skip : NULL;
        part.dy = (const char *)a.dy + skip;
        part.y = (char *)a.y + skip;
        part.dx = (char *)a.dx + skip;
        job_go(&j, NAMI_DROPOUT_F, &part, NULL);
        job_go(&j, NAMI_DROPOUT_BI, &part, NULL);
    }
    return job_done(&j);
}

/* Tokens below `bound`, every seventh -1 when `holes`. */
static int32_t *tokens(nami_backend *b, uint64_t seed, int64_t n, int64_t bound,
                       bool holes)
{
    int32_t *t = nami_backend_alloc(b, NAMI_MEM_OTHER, (size_t)n * sizeof *t);
    for (int64_t i = 0; i < n; i++)
        t[i] = holes && i % 7 == 3
                   ? -1
                   : (int32_t)(nami_mix(seed, (uint64_t)i) % (uint64_t)bound);
    return t;
}

/* B, T, width, vocabulary; bare: without positions */
static nami_outcome run_embed(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t *d = p->dim, n = d[0] * d[1] * d[2];
    const nami_dtype w = job_wide(p->act);
    nami_arg_embed a = {
        .act = p->act, .batch = d[0], .time = d[1], .width = d[2], .vocabulary = d[3]};
    int32_t *token = tokens(b, p->seed, d[0] * d[1], d[3], false);
    a.token = token;
    a.wte = job_fresh(&j, "wte", w, d[3] * d[2], 1);
    a.wpe = p->bare ? NULL : job_fresh(&j, "wpe", w, d[1] * d[2], 1);
    a.dy = job_fresh(&j, "dy", p->act, n, 1);
    a.y = job_result(&j, "y", p->act, n, 0);
    a.dwte = job_result(&j, "dwte", w, d[3] * d[2], 1);
    a.dwpe = p->bare ? NULL : job_result(&j, "dwpe", w, d[1] * d[2], 1);
    job_go(&j, NAMI_EMBED_F, &a, NULL);
    job_go(&j, NAMI_EMBED_BW, &a, NULL);
    nami_backend_free(b, token);
    return job_done(&j);
}

/* B, T, vocabulary; bare: without gradient; dropout: smoothing of the labels */
static nami_outcome run_xent(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t *d = p->dim, n = d[0] * d[1] * d[2];
    nami_arg_xent a = {.act = p->act,
                       .batch = d[0],
                       .time = d[1],
                       .vocabulary = d[2],
                       .scale = 1.0 / (double)(d[0] * d[1]),
                       .smoothing = p->dropout,
                       .gradient = !p->bare};
    int32_t *target = tokens(b, p->seed, d[0] * d[1], d[2], true);
    a.target = target;
    a.logits = job_result(&j, "logits", p->act, n, 6);
    if (p->poison != 0)
        job_put(p->act, a.logits, n - 1, p->poison);
    double *loss = job_result(&j, "loss", NAMI_F64, d[0], 0);
    a.loss = loss;
    if (p->seed % 2) { /* both ways */
        a.best = job_result(&j, "best", NAMI_F64, d[0], 0);
        a.five = job_result(&j, "five", NAMI_F64, d[0], 0);
    }
    job_go(&j, NAMI_XENT_F, &a, &a.scratch);
    nami_backend_free(b, target);
    return job_done(&j);
}

/* count */
static nami_outcome run_vector(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t n = p->dim[0];
    const nami_dtype w = job_wide(p->act);
    nami_arg_vector a = {.wide = w, .count = n, .s = 0.7};
    a.a = job_result(&j, "a", w, n, 1);
    a.b = job_fresh(&j, "b", w, n, 1);
    a.sum = job_result(&j, "sum", NAMI_F64, 1, 0);
    job_go(&j, NAMI_ADD, &a, NULL);
    job_go(&j, NAMI_SCALE, &a, NULL);
    job_go(&j, NAMI_SQUARES, &a, NULL);
    return job_done(&j);
}

/* count */
static nami_outcome run_update(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t n = p->dim[0];
    const nami_dtype w = job_wide(p->act);
    nami_arg_update a = {.wide = w,
                         .count = n,
                         .lr = 0.01,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .eps = 1e-8,
                         .decay = 0.1,
                         .grad_scale = 0.5,
                         .step = 1};
    a.g = job_fresh(&j, "g", w, n, 1);
    a.w = job_result(&j, "w", w, n, 1);
    a.m = job_result(&j, "m", w, n, 0);
    a.v = job_result(&j, "v", w, n, 0);
    for (; a.step <= 3; a.step++)
        job_go(&j, NAMI_ADAMW, &a, NULL);
    a.w = job_result(&j, "w adam", w, n, 1);
    a.step = 4;
    job_go(&j, NAMI_ADAM, &a, NULL);
    nami_arg_update s = a;
    s.w = job_result(&j, "w sgd", w, n, 1);
    s.m = job_result(&j, "m sgd", w, n, 1);
    s.v = NULL;
    job_go(&j, NAMI_SGD, &s, NULL);
    s.w = job_result(&j, "w nesterov", w, n, 1);
    s.nesterov = true;
    job_go(&j, NAMI_SGD, &s, NULL);
    return job_done(&j);
}

/* count; with momentum unless bare, centred with a dropout */
static nami_outcome run_rmsprop(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t n = p->dim[0];
    const nami_dtype w = job_wide(p->act);
    nami_arg_update a = {.wide = w,
                         .count = n,
                         .lr = 0.01,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .eps = 1e-3,
                         .decay = 0.1,
                         .grad_scale = 0.5,
                         .step = 1};
    a.g = job_fresh(&j, "g", w, n, 1);
    a.w = job_result(&j, "w", w, n, 1);
    a.v = job_result(&j, "v", w, n, 0);
    a.m = p->bare ? NULL : job_result(&j, "m", w, n, 1);
    a.centre = p->dropout > 0 ? job_result(&j, "centre", w, n, 0) : NULL;
    for (; a.step <= 3; a.step++)
        job_go(&j, NAMI_RMSPROP, &a, NULL);
    return job_done(&j);
}

/* count; Adam's direction unless bare */
static nami_outcome run_predict(nami_backend *b, const nami_problem *p)
{
    job j = {.b = b, .p = p};
    const int64_t n = p->dim[0];
    const nami_dtype w = job_wide(p->act);
    nami_arg_drift d = {.wide = w, .count = n, .gamma = 0.7};
    nami_arg_predict a = {.wide = w,
                          .count = n,
                          .distance = 0.3,
                          .beta1 = 0.9,
                          .beta2 = 0.95,
                          .eps = 1e-3,
                          .step = 2};
    d.before = job_fresh(&j, "before", w, n, 1);
    a.w = d.after = job_fresh(&j, "w", w, n, 1);
    a.m = job_fresh(&j, "m", w, n, 1);
    void *v = job_fresh(&j, "v", w, n, 1);
    for (int64_t i = 0; i < n; i++) /* not negative */
        job_put(w, v, i, nami_uniform(p->seed, (uint64_t)i));
    a.v = p->bare ? NULL : v;
    a.out = job_result(&j, "out", w, n, 0);
    d.mean = job_result(&j, "mean", w, n, 1);
    job_go(&j, NAMI_PREDICT, &a, NULL);
    job_go(&j, NAMI_DRIFT, &d, NULL);
    return job_done(&j);
}

const nami_suite nami_suites[] = {
    {"linear", run_linear, false},     {"norm", run_norm, true},
    {"gelu", run_gelu, true},          {"attention", run_attention, true},
    {"rotary", nami_run_rotary, true}, {"swiglu", nami_run_swiglu, true},
    {"dropout", run_dropout, true},    {"embed", run_embed, true},
    {"xent", run_xent, true},          {"vector", run_vector, true},
    {"update", run_update, true},      {"rmsprop", run_rmsprop, true},
    {"conv", nami_run_conv, false},    {"batch_norm", nami_run_batch_norm, true},
    {"pool", nami_run_pool, true},     {"image", nami_run_image, true},
    {"predict", run_predict, true},    {"prepend", nami_run_prepend, true},
    {"masked", nami_run_masked, true},
};
const int nami_suites_count = sizeof nami_suites / sizeof nami_suites[0];
