/* SPDX-License-Identifier: MIT */
/* gpt_speed.c - tokens per second of one rank training a GPT, and where the time goes, operator by operator.
 *
 * usage: gpt_speed [gpt2|bytes] [f32|bf16] [threads] [steps] [backend]
 *
 * The shapes of torch_gpt.py beside it: gpt2 is 124M at B=4, T=256; bytes 6 x 384 at B=8, T=256. A step is forward,
 * backward, global norm, AdamW and packing of the weights. The matrix peak is measured before and after in the same
 * process; the better one counts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "model/model.h"
#include "optim/optim.h"

typedef struct shape {
    const char *name;
    nami_model_options model;
    int64_t batch, time;
} shape;

static const shape shapes[] = {
    {.name = "gpt2",
     .model = {.layers = 12,
               .width = 768,
               .heads = 12,
               .context = 1024,
               .vocabulary = 50257,
               .tied = true,
               .bias = true},
     .batch = 4,
     .time = 256},
    {.name = "bytes",
     .model = {.layers = 6,
               .width = 384,
               .heads = 6,
               .context = 256,
               .vocabulary = 256,
               .tied = true,
               .bias = true},
     .batch = 8,
     .time = 256},
};

/* Time and work of one operator's pass. */
typedef struct row {
    const char *name;
    int pass;
    double seconds, flops;
} row;

enum { ROWS = 64 };

typedef struct job {
    const shape *shape;
    nami_dtype act;
    nami_backend *backend;
    nami_model *model;
    nami_graph *graph;
    nami_graph_call call;
    nami_optim_options optim;
    nami_optim_kernels *kernels; /* [params] */
    void **w, **m, **v;          /* [params] */
    void *(*grad)[2];            /* [params] sums of each use */
    const nami_prepared *add;    /* of the tied gradient */
    row row[ROWS];
    int rows;
} job;

static void die(nami_status status)
{
    if (status != NAMI_OK)
        nami_die(status);
}

static void *room(job *j, nami_tag tag, size_t bytes)
{
    void *p = nami_backend_alloc(j->backend, tag, bytes);
    nami_backend_zero(j->backend, 0, p, bytes);
    return p;
}

static void open_params(job *j)
{
    size_t n = (size_t)j->model->params;
    j->kernels = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->kernels);
    j->w = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->w);
    j->m = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->m);
    j->v = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->v);
    j->grad = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->grad);
    for (int p = 0; p < j->model->params; p++) {
        int64_t count = nami_shape_count(&j->model->param[p].shape);
        size_t bytes = (size_t)count * sizeof(float);
        j->w[p] = room(j, NAMI_MEM_PARAMETER, bytes);
        nami_model_init(j->model, p, 1, 0, count, j->w[p]);
        j->m[p] = room(j, NAMI_MEM_OPTIMIZER, bytes);
        j->v[p] = room(j, NAMI_MEM_OPTIMIZER, bytes);
        for (int u = 0; u < j->model->param[p].uses; u++)
            j->grad[p][u] = room(j, NAMI_MEM_GRADIENT, bytes);
        die(nami_optim_prepare(&j->optim, j->backend, NAMI_F32, count, &j->kernels[p]));
        if (j->model->param[p].uses > 1) {
            nami_arg_vector a = {.wide = NAMI_F32, .count = count};
            die(nami_backend_prepare(j->backend, NAMI_ADD, &a, &j->add));
        }
    }
}

static void open_graph(job *j)
{
    const shape *s = j->shape;
    die(nami_model_graph(j->model, 0, j->model->blocks, j->backend, j->act, s->batch,
                         s->time, &j->graph));
    die(nami_graph_plan(j->graph, true, false, false));
    const nami_graph_sizes *z = nami_graph_bytes(j->graph);
    int uses = nami_graph_uses(j->graph),
        *used = nami_calloc(NAMI_MEM_OTHER, (size_t)j->model->params, sizeof *used);
    void **param = nami_calloc(NAMI_MEM_OTHER, (size_t)uses, sizeof *param);
    void **dparam = nami_calloc(NAMI_MEM_OTHER, (size_t)uses, sizeof *dparam);
    for (int u = 0; u < uses; u++) {
        int p = nami_graph_use_param(j->graph, u);
        param[u] = j->w[p];
        dparam[u] = j->grad[p][used[p]++];
    }
    nami_free(used);
    int32_t *token =
        nami_alloc(NAMI_MEM_DATA, (size_t)(s->batch * s->time) * sizeof *token);
    int32_t *target =
        nami_alloc(NAMI_MEM_DATA, (size_t)(s->batch * s->time) * sizeof *target);
    for (int64_t i = 0; i < s->batch * s->time; i++) {
        token[i] = (int32_t)(nami_mix(1, (uint64_t)i) % (uint64_t)s->model.vocabulary);
        target[i] = (int32_t)(nami_mix(2, (uint64_t)i) % (uint64_t)s->model.vocabulary);
    }
    j->call = (nami_graph_call){
        .input = token,
        .targets = target,
        .kept = room(j, NAMI_MEM_ACTIVATION, z->kept),
        .transient = room(j, NAMI_MEM_TRANSIENT, z->transient),
        .packed = room(j, NAMI_MEM_PACKED, z->packed),
        .param = param,
        .dparam = dparam,
        .loss = room(j, NAMI_MEM_MESSAGE, (size_t)s->batch * sizeof(double)),
        .scale = 1.0 / (double)(s->batch * s->time)};
}

static void account(job *j, const char *name, int pass, double seconds, double flops)
{
    int i = 0;
    while (i < j->rows && (j->row[i].pass != pass || strcmp(j->row[i].name, name) != 0))
        i++;
    NAMI_CHECK(i < ROWS);
    if (i == j->rows)
        j->row[j->rows++] = (row){.name = name, .pass = pass};
    j->row[i].seconds += seconds;
    j->row[i].flops += flops;
}

static void walk(job *j, nami_walk_kind kind)
{
    nami_walk w;
    nami_walk_begin(&w, j->graph, kind, &j->call);
    bool more = true;
    while (more) {
        nami_pass pass = NAMI_FORWARD;
        const nami_node *n = nami_walk_peek(&w, &pass);
        double start = nami_now();
        more = nami_walk_next(&w);
        account(j, n ? n->op->name : "sum", (int)pass, nami_now() - start,
                n && n->prepared[pass] ? n->prepared[pass]->flops : 0);
    }
}

/* Gradients to zero at the begin, or squared and summed at the end. */
static double norm(job *j)
{
    double squares = 0, part;
    for (int p = 0; p < j->model->params; p++) {
        int64_t count = nami_shape_count(&j->model->param[p].shape);
        if (j->model->param[p].uses > 1) {
            nami_arg_vector a = {.wide = NAMI_F32,
                                 .count = count,
                                 .a = j->grad[p][0],
                                 .b = j->grad[p][1]};
            nami_backend_wait(j->backend,
                              nami_backend_launch(j->backend, 0, j->add, &a));
        }
        nami_backend_wait(j->backend,
                          nami_optim_squares(j->backend, 0, &j->kernels[p], NAMI_F32,
                                             count, j->grad[p][0], &part));
        squares += part;
    }
    return sqrt(squares);
}

static void zero(job *j)
{
    for (int p = 0; p < j->model->params; p++)
        for (int u = 0; u < j->model->param[p].uses; u++)
            nami_backend_zero(j->backend, 0, j->grad[p][u],
                              (size_t)nami_shape_count(&j->model->param[p].shape) *
                                  sizeof(float));
}

static void update(job *j, double clip)
{
    for (int p = 0; p < j->model->params; p++) {
        nami_optim_item item = {.count = nami_shape_count(&j->model->param[p].shape),
                                .decay = j->model->param[p].decay,
                                .w = j->w[p],
                                .m = j->m[p],
                                .v = j->v[p],
                                .g = j->grad[p][0]};
        nami_optim_update(&j->optim, j->backend, 0, &j->kernels[p], NAMI_F32, &item,
                          1e-4, clip, j->call.step);
    }
}

/* Seconds of one training step. */
static double step(job *j)
{
    double start = nami_now();
    zero(j);
    account(j, "zero gradients", -1, nami_now() - start, 0);
    walk(j, NAMI_WALK_F);
    walk(j, NAMI_WALK_B);
    double at = nami_now();
    double clip = nami_optim_clip(&j->optim, norm(j));
    account(j, "norm of gradients", -1, nami_now() - at, 0);
    at = nami_now();
    update(j, clip);
    account(j, "adamw", -1, nami_now() - at, 0);
    walk(j, NAMI_WALK_PACK);
    j->call.step++;
    return nami_now() - start;
}

static int by_seconds(const void *a, const void *b)
{
    double x = ((const row *)a)->seconds, y = ((const row *)b)->seconds;
    return (x < y) - (x > y);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_table(job *j, int steps, double peak)
{
    static const char *const pass[] = {"", "F", "BI", "BW", "pack"};
    double total = 0;
    qsort(j->row, (size_t)j->rows, sizeof(row), by_seconds);
    for (int i = 0; i < j->rows; i++)
        total += j->row[i].seconds;
    nami_print("%-20s %-5s %9s %7s %9s %6s\n", "operator", "pass", "ms/step", "share",
               "GFLOP/s", "peak");
    for (int i = 0; i < j->rows; i++) {
        const row *r = &j->row[i];
        nami_print("%-20s %-5s %9.2f %6.1f%% %9.1f %5.0f%%\n", r->name,
                   pass[r->pass + 1], 1e3 * r->seconds / steps,
                   100 * r->seconds / total, 1e-9 * r->flops / r->seconds,
                   100 * r->flops / r->seconds / peak);
    }
}

static void measure(job *j, int steps)
{
    double *seconds = nami_calloc(NAMI_MEM_OTHER, (size_t)steps, sizeof *seconds),
           flops = 0;
    double peak = nami_backend_peak(j->backend, j->act, 1);
    walk(j, NAMI_WALK_PACK);
    for (int i = 0; i < 2; i++)
        step(j);
    j->rows = 0;
    for (int i = 0; i < steps; i++)
        seconds[i] = step(j);
    peak = fmax(peak, nami_backend_peak(j->backend, j->act, 1));
    print_table(j, steps, peak);
    qsort(seconds, (size_t)steps, sizeof *seconds, by_value);
    double median = seconds[steps / 2];
    double tokens = (double)(j->shape->batch * j->shape->time);
    for (int b = 0; b < j->model->blocks; b++)
        flops += 3 * (double)j->shape->batch *
                 nami_model_block_flops(j->model, b, j->shape->time);
    nami_print("{\"program\":\"nami\",\"shape\":\"%s\",\"type\":\"%s\",\"threads\":%d,"
               "\"loss\":%.4f,"
               "\"step_seconds\":%.4f,\"tokens_per_second\":%.1f,\"step_gflop\":%.1f,"
               "\"matrix_peak_gflops\":%.1f,\"matrix_peak_share\":%.3f,\"resident_"
               "bytes\":%zu}\n",
               j->shape->name, nami_dtype_name(j->act), j->backend->threads,
               j->call.loss[0] / (double)j->shape->time, median, tokens / median,
               1e-9 * flops, 1e-9 * peak, flops / median / peak,
               nami_memory_resident_peak());
    nami_free(seconds);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "gpt2",
               *backend = argc > 5 ? argv[5] : "cpu";
    job j = {.shape = strcmp(name, "bytes") == 0 ? &shapes[1] : &shapes[0],
             .act = argc > 2 && strcmp(argv[2], "bf16") == 0 ? NAMI_BF16 : NAMI_F32,
             .optim = {.optimizer = NAMI_OPTIMIZER_ADAMW,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .eps = 1e-8,
                       .decay = 0.1,
                       .clip = 1}};
    int threads = argc > 3 ? atoi(argv[3]) : 1, steps = argc > 4 ? atoi(argv[4]) : 5;
    die(nami_backend_open(backend, threads > 0 ? threads : 1, j.act, &j.backend));
    die(nami_model_new(&j.shape->model, 0, &j.model));
    open_params(&j);
    open_graph(&j);
    measure(&j, steps > 0 ? steps : 1);
    return 0; /* the process ends; memory goes with it */
}
