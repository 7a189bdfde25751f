/* SPDX-License-Identifier: MIT */
/* net_speed.c - samples per second of one rank training any model, and where the time goes, operator by operator.
 *
 * usage: net_speed [-s steps] [-l tokens] [-r rows] [deck] [section.key=value ...]
 *
 * A step is one micro-batch of train.batch samples: forward, backward, global norm, optimiser and packing of the weights.
 * Data are made up, so the deck says vocabulary, or image size and classes; -l sets the tokens of a sample (model.context
 * where it is absent), -r how many operators are listed (all). The matrix peak is measured before and after in the same
 * process; the better one counts.
 */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "deck/deck.h"
#include "model/family.h"
#include "train/options.h"

/* Time and work of one operator's pass. */
typedef struct row {
    const char *name;
    int pass;
    double seconds, flops;
} row;

enum { ROWS = 64 };

typedef struct job {
    nami_settings set;
    int steps, list;
    int64_t tokens; /* of a sample; 1 for images */
    nami_model_sample sample;
    int64_t counted; /* targets of a sample that count in its first loss */
    nami_dtype act;
    nami_backend *backend;
    nami_model *model;
    nami_graph *graph;
    nami_graph_call call;
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

static int64_t count_of(const job *j, int p)
{
    return nami_shape_count(&j->model->param[p].shape);
}

static void open_param(job *j, int p)
{
    const nami_param *param = &j->model->param[p];
    const int64_t count = count_of(j, p);
    const size_t bytes = (size_t)count * sizeof(float);
    j->w[p] = room(j, NAMI_MEM_PARAMETER, bytes);
    nami_model_init(j->model, p, 1, 0, count, j->w[p]);
    for (int u = 0; u < param->uses; u++)
        j->grad[p][u] = room(j, NAMI_MEM_GRADIENT, bytes);
    if (param->statistic)
        return;
    j->m[p] = room(j, NAMI_MEM_OPTIMIZER, bytes);
    j->v[p] = room(j, NAMI_MEM_OPTIMIZER, bytes);
    die(nami_optim_prepare(&j->set.optim, j->backend, NAMI_F32, count, &j->kernels[p]));
    if (param->uses > 1) {
        nami_arg_vector a = {.wide = NAMI_F32, .count = count};
        die(nami_backend_prepare(j->backend, NAMI_ADD, &a, &j->add));
    }
}

static void open_params(job *j)
{
    const size_t n = (size_t)j->model->params;
    j->kernels = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->kernels);
    j->w = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->w);
    j->m = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->m);
    j->v = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->v);
    j->grad = nami_calloc(NAMI_MEM_OTHER, n, sizeof *j->grad);
    for (int p = 0; p < j->model->params; p++)
        open_param(j, p);
}

/* One word of a made-up sample: a pixel with the spread of normalised ones, a token, or what else a masked sentence
 * has: types, half and half, and its length. */
static int32_t input_word(const nami_model_sample *s, int64_t at, uint64_t noise)
{
    const float pixel = (float)(noise % 4096) / 1024 - 2;
    int32_t word = (int32_t)(noise % (uint64_t)s->classes);
    if (s->kind == NAMI_SAMPLE_IMAGE)
        memcpy(&word, &pixel, sizeof pixel);
    if (s->kind == NAMI_SAMPLE_MASKED && at >= s->time)
        word = at == 2 * s->time ? (int32_t)s->time : at >= s->time + s->time / 2;
    return word;
}

/* A class, a token, or of a masked sentence positions, tokens and whether the second one follows. */
static int32_t target_word(const nami_model_sample *s, int64_t at, uint64_t noise)
{
    if (s->kind == NAMI_SAMPLE_MASKED && at < s->masked)
        return (int32_t)(at * s->time / s->masked);
    if (s->kind == NAMI_SAMPLE_MASKED && at == 2 * s->masked)
        return (int32_t)(noise % 2);
    return (int32_t)(noise % (uint64_t)s->classes);
}

/* Samples of `words` words each. */
static int32_t *make(const job *j, int64_t words, uint64_t seed,
                     int32_t (*word)(const nami_model_sample *s, int64_t at,
                                     uint64_t noise))
{
    const int64_t count = words * j->set.train.batch;
    int32_t *made = nami_alloc(NAMI_MEM_DATA, (size_t)count * sizeof *made);
    for (int64_t i = 0; i < count; i++)
        made[i] = word(&j->sample, i % words, nami_mix(seed, (uint64_t)i));
    return made;
}

/* The words of each sample that every stage reads. */
static int32_t *side_of(const job *j, const int32_t *input)
{
    const nami_model_sample *s = &j->sample;
    const int64_t count = s->side * j->set.train.batch;
    if (s->side == 0)
        return NULL;
    int32_t *side = nami_alloc(NAMI_MEM_DATA, (size_t)count * sizeof *side);
    for (int64_t i = 0; i < count; i++)
        side[i] = input[i / s->side * s->words + s->words - s->side + i % s->side];
    return side;
}

/* Losses of made-up samples: means over all targets, or over masked tokens and over questions. */
static void open_loss(job *j)
{
    const int64_t batch = j->set.train.batch;
    const bool masked = j->sample.kind == NAMI_SAMPLE_MASKED;
    const size_t bytes = (size_t)batch * sizeof(double);
    j->counted = masked ? j->sample.masked : j->sample.targets;
    j->call.loss = room(j, NAMI_MEM_MESSAGE, bytes);
    j->call.scale = 1.0 / (double)(batch * j->counted);
    if (masked)
        j->call.second = (nami_graph_second){.loss = room(j, NAMI_MEM_MESSAGE, bytes),
                                             .scale = 1.0 / (double)batch};
}

static void open_graph(job *j)
{
    const int64_t batch = j->set.train.batch;
    die(nami_model_graph(j->model, 0, j->model->blocks, j->backend, j->act, batch,
                         j->tokens, &j->graph));
    die(nami_graph_plan(j->graph, true, false, false));
    const nami_graph_sizes *z = nami_graph_bytes(j->graph);
    const int uses = nami_graph_uses(j->graph);
    int *used = nami_calloc(NAMI_MEM_OTHER, (size_t)j->model->params, sizeof *used);
    void **param = nami_calloc(NAMI_MEM_OTHER, (size_t)uses, sizeof *param);
    void **dparam = nami_calloc(NAMI_MEM_OTHER, (size_t)uses, sizeof *dparam);
    for (int u = 0; u < uses; u++) {
        const int p = nami_graph_use_param(j->graph, u);
        param[u] = j->w[p];
        dparam[u] = j->grad[p][used[p]++];
    }
    nami_free(used);
    int32_t *input = make(j, j->sample.words, 1, input_word);
    j->call = (nami_graph_call){.input = input,
                                .side = side_of(j, input),
                                .targets = make(j, j->sample.targets, 2, target_word),
                                .kept = room(j, NAMI_MEM_ACTIVATION, z->kept),
                                .transient = room(j, NAMI_MEM_TRANSIENT, z->transient),
                                .packed = room(j, NAMI_MEM_PACKED, z->packed),
                                .param = param,
                                .dparam = dparam};
    open_loss(j);
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
        const double start = nami_now();
        more = nami_walk_next(&w);
        account(j, n ? n->op->name : "sum", (int)pass, nami_now() - start,
                n && n->prepared[pass] ? n->prepared[pass]->flops : 0);
    }
}

/* The norm of all gradients; those of two uses become one before. */
static double norm(job *j)
{
    double squares = 0, part;
    for (int p = 0; p < j->model->params; p++) {
        const int64_t count = count_of(j, p);
        if (j->model->param[p].statistic)
            continue;
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
                              (size_t)count_of(j, p) * sizeof(float));
}

static void update(job *j, double clip)
{
    for (int p = 0; p < j->model->params; p++) {
        const nami_optim_item item = {.count = count_of(j, p),
                                      .decay = j->model->param[p].decay,
                                      .w = j->w[p],
                                      .m = j->m[p],
                                      .v = j->v[p],
                                      .g = j->grad[p][0]};
        if (!j->model->param[p].statistic)
            nami_optim_update(&j->set.optim, j->backend, 0, &j->kernels[p], NAMI_F32,
                              &item, 1e-4, clip, j->call.step);
    }
}

/* Seconds of one training step. */
static double step(job *j)
{
    const double start = nami_now();
    zero(j);
    account(j, "zero gradients", -1, nami_now() - start, 0);
    walk(j, NAMI_WALK_F);
    walk(j, NAMI_WALK_B);
    double at = nami_now();
    const double clip = nami_optim_clip(&j->set.optim, norm(j));
    account(j, "norm of gradients", -1, nami_now() - at, 0);
    at = nami_now();
    update(j, clip);
    account(j, "optimiser", -1, nami_now() - at, 0);
    walk(j, NAMI_WALK_PACK);
    j->call.step++;
    return nami_now() - start;
}

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const row *)a)->seconds, y = ((const row *)b)->seconds;
    return (x < y) - (x > y);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_table(job *j, double peak)
{
    static const char *const pass[] = {"", "F", "BI", "BW", "pack"};
    double total = 0;
    qsort(j->row, (size_t)j->rows, sizeof(row), by_seconds);
    for (int i = 0; i < j->rows; i++)
        total += j->row[i].seconds;
    nami_print("%-20s %-5s %9s %7s %9s %6s\n", "operator", "pass", "ms/step", "share",
               "GFLOP/s", "peak");
    for (int i = 0; i < j->rows && i < j->list; i++) {
        const row *r = &j->row[i];
        nami_print("%-20s %-5s %9.2f %6.1f%% %9.1f %5.0f%%\n", r->name,
                   pass[r->pass + 1], 1e3 * r->seconds / j->steps,
                   100 * r->seconds / total, 1e-9 * r->flops / r->seconds,
                   100 * r->flops / r->seconds / peak);
    }
}

static void print_result(const job *j, double median, double peak)
{
    const double samples = (double)j->set.train.batch;
    double flops = 0;
    for (int b = 0; b < j->model->blocks; b++)
        flops += 3 * samples * nami_model_block_flops(j->model, b, j->tokens);
    nami_print("{\"program\":\"nami\",\"family\":\"%s\",\"type\":\"%s\",\"threads\":%d,"
               "\"loss\":%.4f,\"step_seconds\":%.4f,\"samples_per_second\":%.1f,"
               "\"tokens_per_second\":%.1f,\"step_gflop\":%.1f,"
               "\"matrix_peak_gflops\":%.1f,\"matrix_peak_share\":%.3f,"
               "\"resident_bytes\":%zu}\n",
               j->model->family->name, nami_dtype_name(j->act), j->backend->threads,
               j->call.loss[0] / (double)j->counted, median, samples / median,
               samples * (double)j->tokens / median, 1e-9 * flops, 1e-9 * peak,
               flops / median / peak, nami_memory_resident_peak());
}

static void measure(job *j)
{
    double *seconds = nami_calloc(NAMI_MEM_OTHER, (size_t)j->steps, sizeof *seconds);
    double peak = nami_backend_peak(j->backend, j->act, 0.5);
    walk(j, NAMI_WALK_PACK);
    for (int i = 0; i < 2; i++)
        step(j);
    j->rows = 0;
    for (int i = 0; i < j->steps; i++)
        seconds[i] = step(j);
    peak = fmax(peak, nami_backend_peak(j->backend, j->act, 0.5));
    print_table(j, peak);
    qsort(seconds, (size_t)j->steps, sizeof *seconds, by_value);
    print_result(j, seconds[j->steps / 2], peak);
    nami_free(seconds);
}

/* The deck, if any, and the assignments behind it. */
static nami_status read_settings(job *j, int argc, char **argv)
{
    void *object[NAMI_SETTINGS_PARTS];
    nami_deck *deck;
    if (argc > 0 && !strchr(argv[0], '=')) {
        NAMI_TRY(nami_deck_read(argv[0], &deck));
        argc--, argv++;
    } else {
        NAMI_TRY(nami_deck_parse("", 0, "no deck", &deck));
    }
    for (int i = 0; i < argc; i++)
        NAMI_TRY(nami_deck_override(deck, argv[i]));
    nami_settings_objects(&j->set, object);
    NAMI_TRY(nami_deck_bind(deck, nami_settings_tables, object, NAMI_SETTINGS_PARTS));
    nami_deck_free(deck);
    return nami_settings_resolve(NULL, &j->set);
}

int main(int argc, char **argv)
{
    job j = {.steps = 5, .list = ROWS};
    int option;
    while ((option = getopt(argc, argv, "s:l:r:")) != -1) {
        if (option == 's')
            j.steps = atoi(optarg);
        else if (option == 'l')
            j.tokens = atoi(optarg);
        else if (option == 'r')
            j.list = atoi(optarg);
        else
            return NAMI_EINPUT;
    }
    j.steps = j.steps > 0 ? j.steps : 1;
    die(read_settings(&j, argc - optind, argv + optind));
    j.act = nami_settings_dtype(&j.set);
    if (nami_model_takes_images(&j.set.model))
        j.tokens = 1;
    else if (j.tokens == 0)
        j.tokens = j.set.model.context;
    die(nami_backend_open(nami_settings_backend(&j.set),
                          j.set.train.threads > 0 ? (int)j.set.train.threads : 1, j.act,
                          &j.backend));
    die(nami_model_new(&j.set.model, j.set.train.dropout, &j.model));
    j.sample = nami_model_sample_of(j.model, j.tokens);
    open_params(&j);
    open_graph(&j);
    measure(&j);
    return 0; /* the process ends; memory goes with it */
}
