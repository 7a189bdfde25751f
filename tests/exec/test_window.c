/* SPDX-License-Identifier: MIT */
/* test_window.c - without a flush: windows of one stage are steps; versions that nobody may read are poisoned; replicas,
 * buckets, recomputation and devices change nothing; delays are those of the lists; a window begins from arrays alone. */
#include "tiny.h"

#include <math.h>

#include "backend/emu/options.h"
#include "sched/staleness.h"

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F64,
                                   .dropout = 0.1,
                                   .clip = 0.5,
                                   .clip_scope = NAMI_CLIP_STAGE,
                                   .batch = 12,
                                   .micros = 1,
                                   .partials = 1,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 6};

static tiny_way way(const char *schedule, int positions, int replicas, int window)
{
    return (tiny_way){.schedule = schedule,
                      .positions = positions,
                      .waves = 1,
                      .chunks = 2,
                      .replicas = replicas,
                      .window = window};
}

static void same(const char *what, const tiny_problem *p, const tiny_outcome *got,
                 const tiny_outcome *want, bool bits)
{
    bool equal = tiny_near(got->valid, want->valid, 1e-9);
    for (int i = 0; i < p->steps; i++)
        equal = equal && tiny_near(got->loss[i], want->loss[i], 1e-9) &&
                tiny_near(got->norm[i], want->norm[i], 1e-9);
    if (bits)
        equal = memcmp(got, want, sizeof *got) == 0;
    for (int i = 0; !equal && rank == 0 && i < p->steps; i++)
        printf("%s: step %d loss %a expected %a norm %a expected %a\n", what, i,
               got->loss[i], want->loss[i], got->norm[i], want->norm[i]);
    assert_true(equal);
}

/* One position holds all: nothing is late, so each policy is plain training, bit for bit. */
static void test_alone(void **state)
{
    (void)state;
    for (int weights = NAMI_WEIGHTS_STASH; weights <= NAMI_WEIGHTS_NEWEST; weights++) {
        if (weights == NAMI_WEIGHTS_2BW)
            continue; /* one update late by definition */
        tiny_problem p = basis;
        p.tied = true;
        p.clip_scope = NAMI_CLIP_ALL;
        p.partials = size;
        p.micros = 2 * size;
        p.batch = 4 * size;
        tiny_way steps = way("gpipe", 1, size, 1),
                 windows = way("pipedream", 1, size, 3);
        windows.weights = weights + 1;
        tiny_outcome want = tiny_run(world, &p, &steps);
        p.clip_scope = NAMI_CLIP_STAGE;
        tiny_outcome got = tiny_run(world, &p, &windows);
        same(nami_weights_name((nami_weights)weights), &p, &got, &want, true);
    }
}

typedef struct policy {
    nami_weights weights;
    const char *schedule;
    int micros; /* an update */
    bool sgd, correct;
} policy;

static const policy policies[] = {
    {NAMI_WEIGHTS_STASH, "pipedream", 1, false, false},
    {NAMI_WEIGHTS_STASH, "pipedream", 3, true, false},
    {NAMI_WEIGHTS_VERTICAL, "pipedream", 2, false, false},
    {NAMI_WEIGHTS_2BW, "pipedream", 6, false, false},
    {NAMI_WEIGHTS_NEWEST, "pipedream", 1, false, false},
    {NAMI_WEIGHTS_NEWEST, "pipedream", 1, true, true},
    {NAMI_WEIGHTS_PREDICT, "pipedream", 1, false, false},
    {NAMI_WEIGHTS_PREDICT, "pipedream", 2, true, false},
    {NAMI_WEIGHTS_GROUPED, "wpipe", 4, false, false},
    {NAMI_WEIGHTS_STASH, "hanayo", 2, false, false},
    {NAMI_WEIGHTS_2BW, "hanayo", 12, false, false},
    {NAMI_WEIGHTS_STASH, "interleaved", 4, true, false},
    {NAMI_WEIGHTS_NEWEST, "hanayo", 1, false, true},
};

/* Policy `i` on all ranks, one stage (or several chunks) each; false: its schedule does not admit so many. */
static bool choose(size_t i, int window, tiny_problem *p, tiny_way *w)
{
    nami_layout l;
    *p = basis;
    p->micros = policies[i].micros;
    p->optimizer = policies[i].sgd ? NAMI_OPTIMIZER_SGD : NAMI_OPTIMIZER_ADAMW;
    p->correct = policies[i].correct;
    p->anneal = policies[i].correct ? 5 : 0;
    *w = way(policies[i].schedule, size, 1, window);
    w->weights = policies[i].weights + 1;
    nami_model *m = tiny_model(p);
    bool admitted = tiny_layout(p, w, m, &l) == NAMI_OK;
    if (admitted)
        nami_layout_free(&l);
    nami_fail_clear();
    nami_model_free(m);
    return admitted;
}

static void leave(tiny_problem *p, tiny_way *w)
{
    (void)p;
    (void)w;
}

/* Run policies with one stage (or chunk pair) a rank, changed by `change`, beside the plain run. */
static void compare_policies(void (*change)(tiny_problem *, tiny_way *), size_t first,
                             size_t every)
{
    for (size_t i = first; i < sizeof policies / sizeof *policies; i += every) {
        tiny_problem p;
        tiny_way w;
        bool kept = policies[i].weights != NAMI_WEIGHTS_NEWEST &&
                    policies[i].weights != NAMI_WEIGHTS_PREDICT;
        if (!choose(i, 4, &p, &w))
            continue;
        if (!kept && change != leave) /* what runs again sees other weights */
            continue;
        tiny_poison = true;
        tiny_outcome want = tiny_run(world, &p, &w);
        assert_true(want.loss[p.steps - 1] < want.loss[0]);
        tiny_poison = false;
        change(&p, &w);
        tiny_outcome got = tiny_run(world, &p, &w);
        tiny_bucket = 0;
        same(policies[i].schedule, &p, &got, &want, true);
    }
}

/* Nothing reads a version that the lists do not need any more: NaN there changes no bit. */
static void test_poison(void **state)
{
    (void)state;
    compare_policies(leave, 0, 1);
}

static int again[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0};

static void recompute(tiny_problem *p, tiny_way *w)
{
    int stages = strcmp(w->schedule, "pipedream") == 0 ? size : 2 * size;
    (void)p;
    w->stage_recompute = (nami_ints){.count = stages, .item = again + 16 - stages};
}

static void test_recompute(void **state)
{
    (void)state;
    compare_policies(recompute, 1, 2);
}

static void blockwise(tiny_problem *p, tiny_way *w)
{
    (void)w;
    p->recompute = true;
}

static void test_blockwise(void **state)
{
    (void)state;
    compare_policies(blockwise, 0, 3);
}

static nami_emu_options options;

static nami_status open_late(const char *name, int threads, nami_dtype act,
                             nami_backend **out)
{
    if (strcmp(name, "emu") != 0)
        return nami_backend_open(name, threads, act, out);
    return nami_backend_open_with(
        name,
        &(nami_backend_config){
            .threads = threads, .act = act, .number = (uint64_t)rank, .emu = &options},
        out);
}

/* A device whose every piece of work is late by a time of its own: bits of the reference on the host. */
static void test_device(void **state)
{
    (void)state;
    assert_ok(nami_option_defaults(&nami_emu_option_table, &options));
    options.jitter = 2e-4;
    options.seed = (int64_t)nami_test_seed(7);
    tiny_open = open_late;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        tiny_problem p;
        tiny_way w;
        if (!choose(i, 4, &p, &w))
            continue;
        p.act = NAMI_F32;
        p.steps = 4;
        if (size == 4 && i % 2 == 0 && p.micros <= 4) {
            w.positions = 2;
            w.replicas = 2;
            w.split = NAMI_SPLIT_SAMPLE;
        }
        if (i % 3 == 0 && p.micros <= 4 && w.stage_recompute.count == 0 &&
            policies[i].weights == NAMI_WEIGHTS_STASH && w.positions == size)
            recompute(&p, &w);
        if (i % 4 == 1) /* nobody waits for norms */
            p.clip = 0;
        tiny_outcome want = tiny_run(world, &p, &w);
        p.backend = "emu";
        tiny_poison = true;
        tiny_outcome got = tiny_run(world, &p, &w);
        tiny_poison = false;
        same("emu", &p, &got, &want, true);
    }
    tiny_open = nami_backend_open;
    nami_option_release(&nami_emu_option_table, &options);
}

/* --- replicas --- */

/* `positions` stages on few ranks against as many ranks as there are. Known on all ranks. */
static tiny_outcome small_run(const tiny_problem *p, const tiny_way *w)
{
    tiny_outcome out = {0};
    if (rank ==
        0) { /* all stages lie on one rank: the same lists cannot be had there */
        nami_comm *alone = nami_comm_alone(world);
        out = tiny_run(alone, p, w);
        nami_comm_close(alone);
    }
    nami_comm_broadcast(world, &out, sizeof out, 0);
    return out;
}

/* One stage: any replicas by sample equal one rank. */
static void test_samples(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.batch = size > 7 ? 27 : 21; /* not a multiple of the replicas */
    p.micros = 3;
    tiny_way one = way("pipedream", 1, 1, 4), many = way("ashpipe", 1, size, 4);
    tiny_outcome want = small_run(&p, &one);
    tiny_bucket = 64;
    tiny_outcome got = tiny_run(world, &p, &many);
    tiny_bucket = 0;
    tiny_outcome plain = tiny_run(world, &p, &many);
    same("by sample", &p, &got, &want, false);
    same("buckets", &p, &got, &plain, true); /* pieces change no bit */
}

/* Two stages on 3 or 4 ranks, however they are shared out, are two stages on 2 ranks. */
static void test_uneven(void **state)
{
    (void)state;
    if (size < 3)
        return;
    static int shares[][2] = {{2, 1}, {1, 2}, {3, 1}, {2, 2}, {1, 3}, {5, 3}, {3, 5}};
    tiny_outcome first = {0};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (shares[i][0] + shares[i][1] != size)
            continue;
        tiny_problem p = basis;
        p.batch = 11;
        tiny_way w = way("ashpipe", 2, 1, 5);
        w.stage_replicas = (nami_ints){.count = 2, .item = shares[i]};
        tiny_bucket = i % 2 == 0 ? 64 : 0;
        tiny_outcome got = tiny_run(world, &p, &w);
        tiny_bucket = 0;
        if (first.valid == 0)
            first = got;
        same("uneven", &p, &got, &first, false);
    }
}

/* --- delays --- */

static const nami_layout *measured;

/* What each stage really did is what its lists say. */
static void compare_delays(nami_exec *e, const nami_model *m, int states, int64_t step)
{
    (void)m;
    (void)states;
    nami_exec_staleness s[8];
    if (step == 0)
        return;
    int n = nami_exec_stages(e, 8, s), units = measured->train.recipe.microbatches;
    int32_t *delay = calloc(2 * (size_t)units, sizeof *delay);
    for (int i = 0; i < n; i++) {
        nami_schedule_delays(&measured->train, s[i].stage, delay, delay + units);
        assert_true(s[i].versions <=
                    nami_schedule_versions(&measured->train, 0, s[i].stage));
        for (int pass = 0; pass < 2; pass++) {
            double sum =
                s[i].fill[pass].sum + s[i].steady[pass].sum + s[i].drain[pass].sum;
            int64_t count = s[i].fill[pass].units + s[i].steady[pass].units +
                            s[i].drain[pass].units;
            for (int u = 0; u < units; u++)
                sum -= delay[pass * units + u];
            assert_int_equal(count, units);
            assert_true(sum == 0);
        }
        if (strcmp(measured->recipe.name, "pipedream") == 0 &&
            measured->recipe.weights == NAMI_WEIGHTS_STASH &&
            measured->recipe.per_update == 1) { /* the table: S-1-s, S-s versions */
            int late = measured->recipe.positions - 1 - s[i].stage;
            assert_int_equal(s[i].steady[0].least, late);
            assert_int_equal(s[i].steady[0].most, late);
            assert_int_equal(s[i].steady[1].most, late);
            assert_int_equal(s[i].versions, late + 1);
        }
    }
    free(delay);
}

static void test_delays(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        tiny_problem p;
        tiny_way w;
        nami_layout l;
        if (!choose(i, 2 * size + 3, &p, &w))
            continue;
        p.steps = 2 * size + 3;
        nami_model *m = tiny_model(&p);
        assert_ok(tiny_layout(&p, &w, m, &l));
        measured = &l;
        tiny_between = compare_delays;
        (void)tiny_run(world, &p, &w);
        tiny_between = NULL;
        nami_layout_free(&l);
        nami_model_free(m);
    }
}

/* --- arrays --- */

enum { ARRAYS = 1000 };
static void *kept[ARRAYS];
static bool saving;

/* At step 4: take all arrays; or, in a run that begins there, put them in. */
static void exchange(nami_exec *e, const nami_model *m, int states, int64_t step)
{
    assert_true(m->params * (states + 1) <= ARRAYS);
    for (int i = 0; i < m->params * (states + 1); i++) {
        float *x = nami_exec_array(e, i / (states + 1), i % (states + 1)).data;
        size_t bytes = (size_t)nami_shape_count(&m->param[i / (states + 1)].shape) *
                       sizeof(double);
        if (x == NULL)
            continue;
        if (saving && step == 4)
            kept[i] = memcpy(malloc(bytes), x, bytes);
        if (!saving && step == 4)
            memcpy(x, kept[i], bytes);
    }
    if (!saving && step == 4)
        nami_exec_refresh(e);
}

/* Windows of 4 and 4 are a window of 4, and another one that begins from arrays in a new executor. */
static void test_arrays(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        tiny_problem p;
        tiny_way w;
        if (!choose(i, 4, &p, &w))
            continue;
        p.steps = 8;
        tiny_between = exchange;
        saving = true;
        tiny_outcome whole = tiny_run(world, &p, &w);
        saving = false;
        tiny_first = 4;
        tiny_outcome rest = tiny_run(world, &p, &w);
        tiny_between = NULL;
        tiny_first = 0;
        assert_memory_equal(rest.loss + 4, whole.loss + 4, 4 * sizeof(double));
        assert_int_equal(rest.parameters, whole.parameters);
        for (int k = 0; k < ARRAYS; k++) {
            free(kept[k]);
            kept[k] = NULL;
        }
    }
}

/* --- numbers that are none --- */

static void spoil(nami_exec *e, const nami_model *m, int states, int64_t step)
{
    double *x = (double *)(void *)nami_exec_array(e, m->params - 1, 0).data;
    (void)states;
    if (step == 4 && x != NULL)
        x[0] = NAN;
    nami_exec_refresh(e);
}

/* A weight that is no number: the window ends with that word on all ranks, and what was before it stands. */
static void test_spoiled(void **state)
{
    (void)state;
    tiny_problem p;
    tiny_way w;
    for (size_t i = 0; i < 3; i++) {
        if (!choose(i, 4, &p, &w))
            continue;
        p.steps = 8;
        tiny_between = spoil;
        tiny_fails = NAMI_ENUMERIC;
        (void)tiny_run(world, &p, &w);
        tiny_fails = NAMI_OK;
        tiny_between = NULL;
    }
}

static void refuse(const tiny_problem *p, const tiny_way *w, const char *part)
{
    nami_layout l;
    nami_model *m = tiny_model(p);
    nami_optim_options optim = tiny_optim(p);
    nami_backend *b;
    nami_budget budget[8];
    assert_ok(nami_backend_open("ref", 1, p->act, &b));
    nami_status status = tiny_layout(p, w, m, &l);
    if (status == NAMI_OK)
        status = nami_layout_budget(&l, m, &optim, b, budget);
    assert_fails(status, NAMI_EPLAN, part);
    nami_layout_free(&l);
    nami_backend_close(b);
    nami_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_way w = way("pipedream", 3, 1, 4);
    p.clip_scope = NAMI_CLIP_ALL;
    refuse(&p, &w, "train.clip = 0.5 needs the norm of all stages before any update");
    p = basis;
    p.tied = true;
    refuse(&p, &w, "stages 0 and 2 share transformer.wte.weight");
    p = basis;
    p.micros = 4;
    p.partials = 2;
    refuse(&p, &w, "train.partials = 2 does not go with weights = stash");
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),     cmocka_unit_test(test_poison),
        cmocka_unit_test(test_recompute), cmocka_unit_test(test_blockwise),
        cmocka_unit_test(test_device),    cmocka_unit_test(test_samples),
        cmocka_unit_test(test_uneven),    cmocka_unit_test(test_delays),
        cmocka_unit_test(test_arrays),    cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_refusals),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
