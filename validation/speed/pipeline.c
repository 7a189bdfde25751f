/* SPDX-License-Identifier: MIT */
/* pipeline.c - what a pipeline makes of its ranks: measured against the work each rank did and the simulated schedule.
 *
 * usage: mpiexec -n RANKS pipeline [gpt2|bytes|tiny|waits] [f32|bf16] [schedule] [microbatches] [threads] [steps] [replicas] [waves]
 *
 * Every rank is one position (or replica). Printed are, of the median step: seconds, the seconds each rank computed
 * (F, B), the share of ranks * step in which they did, and that share as simulated for positions of equal work and
 * free messages; and that simulated step at the ranks' own rates, their updates behind it, beside the measured one.
 * The shape "waits" computes nothing: blocks of set times on the imitated device, so that many positions run on few
 * cores.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "exec/exec.h"
#include "model/family.h"
#include "sim/sim.h"

typedef struct shape {
    const char *name;
    nami_model_options model;
    int64_t micro, time; /* samples of a micro-batch, tokens of a sample */
} shape;

static char WAIT[] = "1ms"; /* of every pass of every block */

#define GPT(l, c, h, t, v)                                                             \
    {                                                                                  \
        .layers = l, .width = c, .heads = h, .context = t, .vocabulary = v,            \
        .tied = true, .bias = true                                                     \
    }

static const shape shapes[] = {
    {"gpt2", GPT(12, 768, 12, 1024, 50257), 1, 256},
    {"bytes", GPT(6, 384, 6, 256, 256), 2, 256},
    {"tiny", GPT(4, 128, 4, 64, 256), 3, 64},
    {"waits", /* of family synthetic */
     {.layers = 48,
      .width = 64,
      .heads = 1,
      .context = 16,
      .vocabulary = 64,
      .synthetic_forward = WAIT,
      .synthetic_input = WAIT,
      .synthetic_weight = WAIT},
     1,
     16},
};

enum { STEPS_MOST = 64, RANKS_MOST = 64 };

/* One step of one rank. */
typedef struct sample {
    double seconds, compute, wait, reduce, update;
} sample;

typedef struct job {
    nami_comm *comm;
    const shape *shape;
    nami_model *model;
    nami_backend *backend;
    nami_layout layout;
    nami_optim_options optim;
    nami_prof prof;
    nami_exec *exec;
    int steps;
} job;

static void die(nami_status status)
{
    if (status != NAMI_OK)
        nami_die(status);
}

static nami_status read_noise(void *context, int64_t step, int64_t first, int64_t count,
                              int32_t *token, int32_t *target)
{
    const job *j = context;
    for (int64_t i = 0; i < count * j->shape->time; i++) {
        uint64_t noise =
            nami_mix((uint64_t)step, (uint64_t)(first * j->shape->time + i));
        int32_t t = (int32_t)(noise % (uint64_t)j->shape->model.vocabulary);
        if (token != NULL)
            token[i] = t;
        if (target != NULL)
            target[i] = t;
    }
    return NAMI_OK;
}

static const char *argument(int argc, char **argv, int i, const char *fallback)
{
    return argc > i ? argv[i] : fallback;
}

/* Families are known by name; a shape with set times is of synthetic. */
static void open_model(job *j)
{
    nami_model_options o = j->shape->model;
    const char *family = o.synthetic_forward ? "synthetic" : "gpt";
    while (strcmp(nami_family_names[o.family], family) != 0)
        o.family++;
    die(nami_model_new(&o, 0, &j->model));
}

static void open_job(job *j, int argc, char **argv)
{
    const char *name = argument(argc, argv, 1, "bytes");
    j->shape = &shapes[1];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, name))
            j->shape = &shapes[i];
    nami_dtype act =
        !strcmp(argument(argc, argv, 2, "f32"), "bf16") ? NAMI_BF16 : NAMI_F32;
    int micros = atoi(argument(argc, argv, 4, "8"));
    int threads = atoi(argument(argc, argv, 5, "1"));
    j->steps = atoi(argument(argc, argv, 6, "5"));
    j->steps = j->steps < STEPS_MOST ? j->steps : STEPS_MOST;
    int replicas = atoi(argument(argc, argv, 7, "1"));
    nami_layout_request r = {.recipe = {.positions = nami_comm_size(j->comm) / replicas,
                                        .waves = atoi(argument(argc, argv, 8, "1")),
                                        .chunks = 2,
                                        .slices = 1},
                             .batch = j->shape->micro * micros,
                             .microbatches = micros,
                             .replicas = replicas,
                             .ranks = nami_comm_size(j->comm),
                             .time = j->shape->time,
                             .act = act};
    nami_comm_threads(j->comm, threads);
    die(nami_recipe_preset(&r.recipe, argument(argc, argv, 3, "dapple")));
    open_model(j);
    die(nami_backend_open(j->shape->model.synthetic_forward ? "emu" : "cpu", threads,
                          act, &j->backend));
    die(nami_layout_make(&r, j->model, &j->layout));
    j->optim = (nami_optim_options){.optimizer = NAMI_OPTIMIZER_ADAMW,
                                    .beta1 = 0.9,
                                    .beta2 = 0.95,
                                    .eps = 1e-8,
                                    .decay = 0.1,
                                    .clip = 1};
    nami_prof_open(&j->prof, 0);
    nami_exec_config c = {.comm = j->comm,
                          .backend = j->backend,
                          .model = j->model,
                          .optim = &j->optim,
                          .layout = &j->layout,
                          .seed = 1,
                          .stall_seconds = 300,
                          .prof = &j->prof};
    die(nami_exec_new(&c, &j->exec));
}

static void close_job(job *j)
{
    nami_exec_free(j->exec);
    nami_prof_close(&j->prof);
    nami_layout_free(&j->layout);
    nami_backend_close(j->backend);
    nami_model_free(j->model);
    nami_comm_close(j->comm);
}

static sample run_step(job *j, int64_t step)
{
    nami_exec_source source = {.read = read_noise, .context = j};
    nami_exec_result result;
    nami_comm_barrier(j->comm);
    nami_prof_reset(&j->prof);
    double start = nami_now();
    die(nami_exec_step(j->exec, step, 1e-4, &source, &result));
    nami_comm_barrier(j->comm);
    const double *s = j->prof.seconds;
    return (sample){.seconds = nami_now() - start,
                    .compute = s[NAMI_PHASE_F] + s[NAMI_PHASE_B] + s[NAMI_PHASE_BI] +
                               s[NAMI_PHASE_BW],
                    .wait = s[NAMI_PHASE_WAIT],
                    .reduce = s[NAMI_PHASE_REDUCE],
                    .update = s[NAMI_PHASE_UPDATE]};
}

static int by_seconds(const void *a, const void *b)
{
    double x = ((const sample *)a)->seconds, y = ((const sample *)b)->seconds;
    return (x > y) - (x < y);
}

/* Share of computation when a forward costs one, a backward two, and messages nothing. */
static double simulated(const nami_layout *l)
{
    nami_prediction p = {0};
    nami_cost cost = {.tf = 1, .tbi = 1, .tbw = 1};
    die(nami_simulate(&l->train, &cost, false, &p));
    double share = 1 - p.bubble;
    nami_prediction_free(&p);
    return share;
}

static void report(const job *j, const sample *all, int ranks)
{
    const nami_layout *l = &j->layout;
    double busy = 0, most = 0, updates = 0;
    for (int r = 0; r < ranks; r++) {
        nami_print(
            "rank %d: computes %.3f s, waits %.3f s, reduces %.3f s, updates %.3f s\n",
            r, all[r].compute, all[r].wait, all[r].reduce, all[r].update);
        busy += all[r].compute;
        updates += all[r].update;
        most = all[r].compute > most ? all[r].compute : most;
    }
    double seconds = all[0].seconds, share = busy / (ranks * seconds);
    nami_print("step %.3f s, %.0f tokens/s\n", seconds,
               (double)(l->batch * l->time) / seconds);
    nami_print(
        "computing share %.4f, simulated %.4f: %.3f of it; balance of the cut %.3f\n",
        share, simulated(l), share / simulated(l), busy / (ranks * most));
    double least = (busy / simulated(l) + updates) / ranks;
    nami_print("least step at the ranks' own rates %.3f s: %.3f of it reached\n", least,
               least / seconds);
}

int main(int argc, char **argv)
{
    job j = {0};
    sample own[STEPS_MOST], all[RANKS_MOST];
    die(nami_comm_open(&argc, &argv, &j.comm));
    open_job(&j, argc, argv);
    (void)run_step(&j, 0);
    for (int i = 0; i < j.steps; i++)
        own[i] = run_step(&j, i + 1);
    qsort(own, (size_t)j.steps, sizeof *own, by_seconds);
    nami_comm_gather(j.comm, &own[j.steps / 2], sizeof *own, all);
    if (nami_comm_rank(j.comm) == 0)
        report(&j, all, nami_comm_size(j.comm));
    close_job(&j);
    return 0;
}
