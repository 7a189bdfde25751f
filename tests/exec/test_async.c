/* SPDX-License-Identifier: MIT */
/* test_async.c - every weight policy, any number of stages and of replicas: parameters equal an emulation's. */
#include <math.h>

#include "emulate.h"
#include "sched/options.h"
#include "tiny_image.h"

enum { UPDATES = 12, WINDOW = 5 };

enum { POSITIONS = 4 }; /* the most of a way */

/* A layout and a policy; the rest of the problem is fixed. */
typedef struct async_way {
    const char *schedule;
    nami_weights weights;
    bool by_sample;
    int stages, units;
    int replicas[POSITIONS]; /* of each position; 0 behind the last */
    const int *depth;        /* NULL: the order's own */
    const int *rerun;        /* stage_recompute, or NULL */
    int optimizer;
    double clip;
    double correction; /* PipeMare's T2; 0: off */
    int annealing;     /* and T1 */
} async_way;

enum { MICRO = 7 }; /* samples of a unit: no number of replicas divides it */

static const char *policy_name[] = {"flush",  "stash",   "vertical", "2bw",
                                    "newest", "predict", "grouped"};

static void print_way(const async_way *w)
{
    if (rank != 0)
        return;
    printf("%s weights %s split %s units %d %s clip %g%s%s: replicas", w->schedule,
           policy_name[w->weights], w->by_sample ? "sample" : "microbatch", w->units,
           w->optimizer == NAMI_OPTIMIZER_SGD ? "sgd" : "adamw", w->clip,
           w->depth ? " depth" : "", w->rerun ? " recompute" : "");
    for (int p = 0; p < POSITIONS && w->replicas[p] > 0; p++)
        printf(" %d", w->replicas[p]);
    printf("\n");
    fflush(stdout);
}

static const tiny_problem problem = {
    .backend = "ref", .act = NAMI_F64, .dropout = 0.1, .micros = 1};

static nami_optim_options optim_of(const async_way *w)
{
    tiny_problem p = problem;
    p.optimizer = w->optimizer;
    p.clip = w->clip;
    nami_optim_options o = tiny_optim(&p);
    o.clip_scope = NAMI_CLIP_STAGE;
    o.correct = w->correction > 0;
    o.correct_decay = w->correction;
    o.anneal = w->annealing;
    return o;
}

static nami_status layout_of(const async_way *w, const nami_model *m, nami_layout *out)
{
    int stages = w->stages;
    nami_pipeline_options o = {
        .schedule = (char *)(uintptr_t)w->schedule,
        .positions =
            w->schedule[0] == 'p' || w->schedule[0] == 'a' ? stages : stages / 2,
        .waves = 1,
        .chunks = 2,
        .slices = 1,
        .microbatches = w->units,
        .replicas = w->by_sample ? 1 : w->replicas[0],
        .order = (char *)(uintptr_t) "",
        .weights = (int)w->weights + 1,
        .split = w->by_sample ? 2 : 1,
        .window = WINDOW};
    if (w->by_sample)
        o.stage_replicas = (nami_ints){.count = (int)o.positions,
                                       .item = (int *)(uintptr_t)w->replicas};
    if (w->depth != NULL)
        o.depth = (nami_ints){.count = stages, .item = (int *)(uintptr_t)w->depth};
    if (w->rerun != NULL)
        o.stage_recompute =
            (nami_ints){.count = stages, .item = (int *)(uintptr_t)w->rerun};
    nami_layout_request r = {.batch = w->units * MICRO,
                             .microbatches = w->units,
                             .replicas = (int)o.replicas,
                             .ranks = size,
                             .window = WINDOW,
                             .act = NAMI_F64};
    NAMI_TRY(nami_recipe_from_options(&o, size, &r.recipe));
    return nami_layout_make(&r, m, out);
}

/* --- the two sides --- */

/* Values and losses, on every rank. */
typedef struct outcome {
    double **param; /* [params]; NULL where a rank has none */
    double loss[UPDATES];
} outcome;

/* Updates of a stage that stand before each forward in the order of its position: all units of an update had their
 * backward there. [stages][units] */
static int *count_before(const nami_layout *l)
{
    const nami_schedule *s = &l->train;
    int units = s->recipe.microbatches, m = s->recipe.per_update;
    int *before = calloc((size_t)(s->place.stages * units), sizeof *before);
    int *done = calloc((size_t)s->place.stages, sizeof *done);
    for (int p = 0; p < s->place.positions; p++) {
        for (int64_t i = 0; i < s->list[p].count; i++) {
            nami_action a = s->list[p].item[i];
            if (a.kind == NAMI_F)
                before[a.stage * units + a.unit] = done[a.stage] / m;
            done[a.stage] += a.kind == NAMI_B;
        }
    }
    free(done);
    return before;
}

static void emulate_here(const async_way *w, const nami_model *m, const nami_layout *l,
                         outcome *out)
{
    int depth[EMULATE_STAGES];
    int *before = w->schedule[0] == 'h' ? count_before(l) : NULL;
    nami_optim_options optim = optim_of(w);
    emulation e;
    for (int s = 0; s < w->stages; s++)
        depth[s] = w->depth != NULL ? w->depth[s] : w->stages - 1 - s;
    emulate_way way = {.weights = w->weights,
                       .stages = w->stages,
                       .cut = l->cut,
                       .depth = depth,
                       .before = before,
                       .rerun = w->rerun,
                       .batch = w->units * MICRO,
                       .units = w->units,
                       .replicas = w->by_sample ? 1 : w->replicas[0],
                       .window = WINDOW,
                       .optimizer = w->optimizer == NAMI_OPTIMIZER_SGD ? 0 : 1,
                       .rate = 1e-2,
                       .momentum = optim.momentum,
                       .beta1 = optim.beta1,
                       .beta2 = optim.beta2,
                       .eps = optim.eps,
                       .decay = optim.decay,
                       .clip = w->clip,
                       .correction = w->correction,
                       .annealing = w->annealing,
                       .seed = 5,
                       .time = m->options.context};
    if (rank == 0)
        emulate(m, &way, UPDATES, tiny_source, &e);
    for (int p = 0; p < m->params; p++) {
        size_t bytes = (size_t)nami_shape_count(&m->param[p].shape) * sizeof(double);
        out->param[p] = malloc(bytes);
        if (rank == 0)
            memcpy(out->param[p], e.param[p], bytes);
        nami_comm_broadcast(world, out->param[p], bytes, 0);
    }
    if (rank == 0) {
        memcpy(out->loss, e.loss, sizeof out->loss);
        emulate_free(&e);
    }
    nami_comm_broadcast(world, out->loss, sizeof out->loss, 0);
    free(before);
}

static void execute(const async_way *w, const nami_model *m, const nami_layout *l,
                    outcome *out)
{
    nami_optim_options optim = optim_of(w);
    nami_exec_source source = {.read = tiny_source};
    nami_backend *b = NULL;
    nami_exec *e = NULL;
    nami_prof prof;
    double rate[WINDOW];
    for (int i = 0; i < WINDOW; i++)
        rate[i] = 1e-2;
    assert_ok(nami_backend_open("ref", 1, NAMI_F64, &b));
    nami_prof_open(&prof, 0);
    nami_exec_config config = {.comm = world,
                               .backend = b,
                               .model = m,
                               .optim = &optim,
                               .layout = l,
                               .seed = 5,
                               .stall_seconds = 500,
                               .prof = &prof};
    assert_ok(nami_exec_new(&config, &e));
    for (int at = 0; at < UPDATES; at += WINDOW) {
        nami_exec_result r[WINDOW];
        int count = UPDATES - at < WINDOW ? UPDATES - at : WINDOW;
        assert_ok(nami_exec_window(e, at, count, rate, &source, r));
        for (int i = 0; i < count; i++)
            out->loss[at + i] = r[i].loss;
    }
    for (int p = 0; p < m->params; p++) {
        size_t bytes = (size_t)nami_shape_count(&m->param[p].shape) * sizeof(double);
        const void *x = nami_exec_array(e, p, 0).data;
        out->param[p] = x != NULL ? malloc(bytes) : NULL;
        if (x != NULL)
            memcpy(out->param[p], x, bytes);
    }
    nami_exec_free(e);
    nami_prof_close(&prof);
    nami_backend_close(b);
}

static void release(const nami_model *m, outcome *o)
{
    for (int p = 0; p < m->params; p++)
        free(o->param[p]);
    free(o->param);
}

/* The gradient of key biases is rounding alone, of 1e-17, which adamw divides by 1e-8. */
static bool close(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (0.1 + fabs(b));
}

/* Every value a rank holds, replicas and all. */
static void compare(const nami_model *m, const outcome *got, const outcome *want)
{
    for (int i = 0; i < UPDATES; i++) {
        if (!close(got->loss[i], want->loss[i]))
            fail_msg("update %d: loss %.15g, emulated %.15g", i, got->loss[i],
                     want->loss[i]);
    }
    for (int p = 0; p < m->params; p++) {
        for (int64_t e = 0; got->param[p] && e < nami_shape_count(&m->param[p].shape);
             e++) {
            if (!close(got->param[p][e], want->param[p][e]))
                fail_msg("rank %d: %s[%lld] = %.15g, emulated %.15g", rank,
                         m->param[p].name, (long long)e, got->param[p][e],
                         want->param[p][e]);
        }
    }
}

static void check(const async_way *w)
{
    nami_model *m = tiny_model(&problem);
    nami_layout l;
    print_way(w);
    outcome got = {.param = calloc((size_t)m->params, sizeof(double *))};
    outcome want = {.param = calloc((size_t)m->params, sizeof(double *))};
    assert_ok(layout_of(w, m, &l));
    emulate_here(w, m, &l, &want);
    execute(w, m, &l, &got);
    compare(m, &got, &want);
    const double fall = want.loss[0] - want.loss[UPDATES - 1]; /* no empty run */
    assert_true(tiny_source == tiny_read ? fall > 0 : fabs(fall) > 1e-4);
    release(m, &got);
    release(m, &want);
    nami_layout_free(&l);
    nami_model_free(m);
}

/* --- all of them --- */

/* Call visit with every way to write `ranks` as a sum of 1 to POSITIONS numbers of 1 to 3. */
static void compositions(int ranks, int *part, int parts,
                         void (*visit)(int parts, const int *part))
{
    if (ranks == 0 && parts > 0)
        visit(parts, part);
    for (int r = 1; parts < POSITIONS && r <= 3 && r <= ranks; r++) {
        part[parts] = r;
        compositions(ranks - r, part, parts + 1, visit);
    }
}

static const nami_weights linear[] = {
    NAMI_WEIGHTS_STASH,
    NAMI_WEIGHTS_VERTICAL,
    NAMI_WEIGHTS_2BW,
    NAMI_WEIGHTS_NEWEST,
};

/* One unit an update, or four; 2bw needs as many as there are stages. On many ranks, where there are many ways to share
 * them out, each way has one policy by turns. */
static void check_policies(async_way w, int turn)
{
    const size_t policies = sizeof linear / sizeof *linear;
    const bool all = size <= 3 || getenv("NAMI_TEST_LONG") != NULL;
    for (size_t i = 0; i < policies; i++) {
        if (!all && i != (size_t)turn % policies)
            continue;
        w.weights = linear[i];
        w.units = w.weights == NAMI_WEIGHTS_2BW || (turn + (int)i) % 3 == 0 ? 4 : 1;
        w.optimizer = (turn + (int)i) % 2 ? NAMI_OPTIMIZER_ADAMW : NAMI_OPTIMIZER_SGD;
        w.clip = (turn + (int)i) % 4 == 0 ? 0.5 : 0;
        if (!w.by_sample)
            w.units *= w.replicas[0];
        check(&w);
    }
}

static void by_sample(int parts, const int *part)
{
    static int turn;
    async_way w = {.schedule = "pipedream", .by_sample = true, .stages = parts};
    memcpy(w.replicas, part, (size_t)parts * sizeof *part);
    check_policies(w, turn++);
}

static void test_samples(void **state)
{
    (void)state;
    int part[POSITIONS];
    compositions(size, part, 0, by_sample);
}

/* Replicas with micro-batches of their own. */
static void test_microbatches(void **state)
{
    (void)state;
    for (int stages = 1; stages <= POSITIONS; stages++) {
        async_way w = {.schedule = "pipedream", .stages = stages};
        if (size % stages != 0)
            continue;
        for (int s = 0; s < stages; s++)
            w.replicas[s] = size / stages;
        check_policies(w, stages);
    }
}

/* Stages that run less far ahead than they could. */
static void test_depth(void **state)
{
    (void)state;
    static const int none[] = {0, 0, 0, 0}, one[] = {1, 1, 1, 0}, two[] = {2, 1, 0, 0};
    const int *depths[] = {none, one, two};
    for (int i = 0; i < 3 && size <= 4; i++) {
        async_way w = {.schedule = "pipedream",
                       .weights = NAMI_WEIGHTS_STASH,
                       .by_sample = true,
                       .stages = size,
                       .units = 1,
                       .replicas = {1, 1, 1, 1},
                       .depth = depths[i] + (4 - size)};
        check(&w);
    }
}

/* Stages that run their forward again: with the newest weights that gives other activations. */
static void test_recompute(void **state)
{
    (void)state;
    static const int rerun[] = {1, 1, 1, 0}, first[] = {1, 0, 0, 0};
    static const nami_weights some[] = {NAMI_WEIGHTS_STASH, NAMI_WEIGHTS_NEWEST,
                                        NAMI_WEIGHTS_NEWEST, NAMI_WEIGHTS_PREDICT};
    for (int i = 0; i < 8 && size > 1 && size <= 4; i++) {
        async_way w = {.schedule = "ashpipe",
                       .weights = some[i % 4],
                       .by_sample = true,
                       .stages = size,
                       .units = 1,
                       .replicas = {1, 1, 1, 1},
                       .correction = i % 4 == 2 ? 0.135 : 0,
                       .rerun = i < 4 ? rerun + (4 - size) : first};
        check(&w);
    }
}

/* PipeMare's learning rates by delay (T1) and corrected weights in the backward (T2), together and apart. */
static void test_pipemare(void **state)
{
    (void)state;
    for (int i = 0; i < 4 && size <= 4; i++) {
        async_way w = {.schedule = "pipemare",
                       .weights = NAMI_WEIGHTS_NEWEST,
                       .by_sample = true,
                       .stages = size,
                       .units = i % 2 ? 1 : 3,
                       .replicas = {1, 1, 1, 1},
                       .optimizer = i % 2 ? NAMI_OPTIMIZER_ADAMW : NAMI_OPTIMIZER_SGD,
                       .correction = i < 3 ? 0.135 : 0,
                       .annealing = i > 0 ? 8 : 0};
        check(&w);
    }
}

/* Two groups of stages: 2P stages on P positions. */
static void test_grouped(void **state)
{
    (void)state;
    for (int replicas = 1; replicas <= 2; replicas++) {
        int positions = size / replicas;
        if (size % replicas != 0 || positions > 2)
            continue;
        async_way w = {.schedule = "wpipe",
                       .weights = NAMI_WEIGHTS_GROUPED,
                       .stages = 2 * positions,
                       .units = 4 * replicas,
                       .replicas = {replicas}};
        check(&w);
        w.optimizer = NAMI_OPTIMIZER_ADAMW;
        check(&w);
    }
}

/* The wave without a flush: chunks along the snake, each with a delay of its own. */
static void test_wave(void **state)
{
    (void)state;
    for (int i = 0; i < 4 && size <= 4; i++) {
        async_way w = {.schedule = "hanayo",
                       .weights = i % 2 ? NAMI_WEIGHTS_2BW : NAMI_WEIGHTS_STASH,
                       .stages = 2 * size,
                       .units = i % 2 ? 2 * size : 2,
                       .replicas = {1, 1, 1, 1},
                       .by_sample = i > 1,
                       .optimizer = i % 2 ? NAMI_OPTIMIZER_ADAMW : NAMI_OPTIMIZER_SGD};
        check(&w);
    }
}

/* Every policy but for predictions with another family, samples split or not: every second way, from `first` on. */
static void check_family(int first)
{
    static const int rerun[] = {1, 1, 1, 0};
    const async_way ways[] = {
        {.schedule = "pipedream", .weights = NAMI_WEIGHTS_STASH, .units = 1},
        {.schedule = "pipedream", .weights = NAMI_WEIGHTS_2BW, .units = 4},
        {.schedule = "pipedream", .weights = NAMI_WEIGHTS_VERTICAL, .units = 1},
        {.schedule = "ashpipe",
         .weights = NAMI_WEIGHTS_STASH,
         .units = 1,
         .rerun = rerun + (4 - size)},
        {.schedule = "pipemare",
         .weights = NAMI_WEIGHTS_NEWEST,
         .units = 3,
         .correction = 0.135},
        {.schedule = "wpipe", .weights = NAMI_WEIGHTS_GROUPED, .units = 4},
        {.schedule = "hanayo", .weights = NAMI_WEIGHTS_STASH, .units = 2},
        {.schedule = "hanayo", .weights = NAMI_WEIGHTS_2BW, .units = 2 * size},
    };
    for (size_t i = (size_t)first % 2; i < sizeof ways / sizeof *ways; i += 2) {
        async_way w = ways[i];
        bool two = w.schedule[0] == 'h' || w.schedule[0] == 'w'; /* chunks */
        if (w.schedule[0] == 'w' && size > 2)
            continue;
        w.stages = two ? 2 * size : size;
        w.by_sample = i % 4 < 2 && !two;
        w.optimizer = i % 4 > 1 ? NAMI_OPTIMIZER_ADAMW : NAMI_OPTIMIZER_SGD;
        w.clip = i % 3 == 0 ? 0.5 : 0;
        for (int s = 0; s < 4; s++)
            w.replicas[s] = 1;
        check(&w);
    }
}

static void test_llama(void **state)
{
    (void)state;
    tiny_other = tiny_llama;
    if (size <= 4)
        check_family(size);
    tiny_other = NULL;
}

static void test_vit(void **state)
{
    (void)state;
    tiny_other = tiny_vit;
    tiny_source = tiny_image_read;
    if (size <= 4)
        check_family(size + 1);
    tiny_other = NULL;
    tiny_source = tiny_read;
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),  cmocka_unit_test(test_microbatches),
        cmocka_unit_test(test_depth),    cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_pipemare), cmocka_unit_test(test_grouped),
        cmocka_unit_test(test_wave),     cmocka_unit_test(test_llama),
        cmocka_unit_test(test_vit),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
