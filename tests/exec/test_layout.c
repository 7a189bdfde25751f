/* SPDX-License-Identifier: MIT */
/* test_layout.c - refusals with their arithmetic, cuts, partial sums, budgets. */
#include "tiny.h"

#include "exec/share.h"

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .batch = 24,
                                   .micros = 4,
                                   .partials = 2,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW};

static nami_layout_request request(const char *schedule, int positions)
{
    nami_layout_request r = {
        .recipe = {.positions = positions, .waves = 1, .chunks = 2, .slices = 1},
        .batch = 24,
        .microbatches = 4,
        .replicas = 1};
    assert_ok(nami_recipe_preset(&r.recipe, schedule));
    return r;
}

static void refuse(const nami_model *m, nami_layout_request r, nami_status status,
                   const char *part)
{
    nami_layout l;
    assert_fails(nami_layout_make(&r, m, &l), status, part);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_model *m = tiny_model(&basis);
    nami_layout_request r = request("dapple", 2);
    r.batch = 26;
    refuse(m, r, NAMI_EPLAN,
           "batch = 26 is not a multiple of pipeline.microbatches = 4");
    r = request("dapple", 2);
    r.replicas = 3;
    refuse(m, r, NAMI_EPLAN,
           "microbatches = 4 is not a multiple of pipeline.replicas = 3");
    r = request("dapple", 2);
    r.replicas = 2;
    r.ranks = 5;
    refuse(m, r, NAMI_EPLAN, "2 positions x 2 replicas need 4 ranks, but there are 5");
    r.ranks = 4;
    r.partials = 3;
    refuse(m, r, NAMI_EPLAN, "partials = 3 is not a multiple of pipeline.replicas = 2");
    r.partials = 8;
    refuse(m, r, NAMI_EPLAN,
           "microbatches = 4 is not a multiple of train.partials = 8");
    r = request("gpipe", 19);
    refuse(m, r, NAMI_EPLAN, "19 stages, but the model has only 18 blocks: take fewer");
    r = request("dapple", 2);
    const int wrong[2][2] = {{0, 18}, {1, 4}};
    r.cuts = 2;
    r.cut = wrong[0];
    refuse(m, r, NAMI_EINPUT, "stage 1 cannot begin with block 18");
    r.cut = wrong[1];
    refuse(m, r, NAMI_EINPUT, "stage 0 cannot begin with block 1");
    r.cuts = 1;
    refuse(m, r, NAMI_EINPUT, "names 1 stage, but the schedule has 2");
    nami_model_free(m);
}

/* Backwards in descending order: fine with one partial sum, refused with two. */
static void test_descending(void **state)
{
    (void)state;
    char path[512], name[600];
    nami_model *m = tiny_model(&basis);
    FILE *f = fopen(nami_test_path(path, "descending.txt"), "w");
    fputs("0F0 0F1 0B1 0B0\n", f);
    fclose(f);
    snprintf(name, sizeof name, "file:%s", path);
    nami_layout l;
    nami_layout_request r = {.recipe = {.slices = 1, .waves = 1, .chunks = 1},
                             .batch = 24,
                             .microbatches = 2,
                             .replicas = 1,
                             .partials = 1};
    assert_ok(nami_recipe_preset(&r.recipe, name));
    assert_ok(nami_layout_make(&r, m, &l));
    nami_layout_free(&l);
    r.partials = 2;
    refuse(m, r, NAMI_EPLAN, "need ascending order (use train.partials = 1)");
    nami_model_free(m);
}

static double load_of(const nami_model *m, const nami_layout *l, int position)
{
    double work = 0;
    for (int s = 0; s < l->train.place.stages; s++) {
        for (int b = l->cut[s]; b < l->cut[s + 1]; b++)
            work += nami_place_of(&l->train.place, 0, s) == position
                        ? nami_model_block_flops(m, b, l->time)
                        : 0;
    }
    return work;
}

/* The heaviest position when cut by stages alone. */
static double heaviest(const nami_model *m, const nami_layout *l)
{
    double most = 0;
    for (int p = 0; p < l->train.place.positions; p++)
        most = load_of(m, l, p) > most ? load_of(m, l, p) : most;
    return most;
}

static void test_cuts(void **state)
{
    (void)state;
    nami_model *m = NULL;
    nami_model_options o = {.layers = 12,
                            .width = 768,
                            .heads = 12,
                            .context = 256,
                            .vocabulary = 50304,
                            .tied = true,
                            .bias = true};
    assert_ok(nami_model_new(&o, 0, &m));
    static const char *const schedule[] = {"dapple", "interleaved", "hanayo"};
    for (int i = 0; i < 3; i++) {
        for (int positions = 1; positions <= 4; positions++) {
            nami_layout l;
            nami_layout_request r = request(schedule[i], positions);
            assert_ok(nami_layout_make(&r, m, &l));
            double ours = heaviest(m, &l);
            int stages = nami_layout_stages(&l);
            assert_int_equal(l.cut[0], 0);
            assert_int_equal(l.cut[stages], m->blocks);
            for (int s = 0; s < stages; s++)
                assert_true(l.cut[s] < l.cut[s + 1]);
            assert_ok(nami_model_cuts(m, l.time, stages, l.cut));
            assert_true(ours <= heaviest(m, &l) * (1 + 1e-9));
            double mean = 0;
            for (int p = 0; p < positions; p++)
                mean += load_of(m, &l, p) / positions;
            printf("%s, %d positions: the heaviest carries %.3f of an equal share\n",
                   schedule[i], positions, ours / mean);
            assert_true(ours < 1.3 * mean); /* the head alone is 1.2 of a fourth */
            nami_layout_free(&l);
        }
    }
    nami_model_free(m);
}

static void test_given_cuts(void **state)
{
    (void)state;
    nami_model *m = tiny_model(&basis);
    nami_layout l;
    nami_layout_request r = request("dapple", 2);
    const int cut[2] = {0, 5};
    r.cuts = 2;
    r.cut = cut;
    assert_ok(nami_layout_make(&r, m, &l));
    assert_int_equal(l.cut[1], 5);
    assert_int_equal(l.cut[2], m->blocks);
    nami_layout_free(&l);
    nami_model_free(m);
}

/* Sums alive at once, against a direct run of the binary counter. */
static void test_levels(void **state)
{
    (void)state;
    assert_int_equal(nami_share_levels(1), 1);
    assert_int_equal(nami_share_levels(2), 2);
    assert_int_equal(nami_share_levels(3), 2);
    assert_int_equal(nami_share_levels(4), 3);
    for (int leaves = 1; leaves <= 64; leaves++) {
        int weight[16], depth = 0, most = 0;
        for (int i = 0; i < leaves; i++) {
            weight[depth++] = 1;
            most = depth > most ? depth : most;
            for (; depth > 1 && weight[depth - 1] == weight[depth - 2]; depth--)
                weight[depth - 2] *= 2;
        }
        assert_int_equal(nami_share_levels(leaves), most);
    }
}

static void test_exact(void **state)
{
    (void)state;
    static const struct {
        int partials, replicas;
        bool exact;
    } known[] = {{1, 1, true},  {4, 2, true}, {4, 4, true}, {6, 3, true},
                 {6, 2, false}, {3, 3, true}, {8, 2, true}, {12, 4, false}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[256];
        nami_layout l = {.partials = known[i].partials, .replicas = known[i].replicas};
        assert_int_equal(nami_layout_exact(&l, text), known[i].exact);
        assert_non_null(strstr(text, known[i].exact ? "bit-equal" : "to rounding"));
    }
}

/* What is merged of a step or a window is counted in an int. */
static void test_numbers(void **state)
{
    (void)state;
    nami_model *m = tiny_model(&basis);
    nami_optim_options optim = tiny_optim(&basis);
    nami_backend *b = NULL;
    nami_layout l;
    nami_budget budget[2];
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    tiny_way way = {
        .schedule = "dapple", .positions = 2, .waves = 1, .chunks = 1, .replicas = 1};
    assert_ok(tiny_layout(&basis, &way, m, &l));
    int64_t batch = l.batch;
    l.batch = INT32_MAX / 3;
    assert_fails(nami_layout_budget(&l, m, &optim, b, budget), NAMI_EPLAN,
                 "of 1 steps of train.batch = 715827882 samples");
    l.batch = batch;
    l.window = INT32_MAX / 100;
    assert_fails(nami_layout_budget(&l, m, &optim, b, budget), NAMI_EPLAN,
                 "use a smaller pipeline.window");
    l.window = 1;
    assert_ok(nami_layout_budget(&l, m, &optim, b, budget));
    nami_layout_free(&l);
    nami_backend_close(b);
    nami_model_free(m);
}

/* The budget of every position; exec/new.c asserts that what is allocated equals it. */
static void test_budget(void **state)
{
    (void)state;
    nami_model *m = tiny_model(&basis);
    nami_optim_options optim = tiny_optim(&basis);
    nami_backend *b = NULL;
    nami_layout l;
    nami_budget budget[2], again[2];
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    tiny_way way = {
        .schedule = "dapple", .positions = 2, .waves = 1, .chunks = 1, .replicas = 1};
    assert_ok(tiny_layout(&basis, &way, m, &l));
    assert_ok(nami_layout_budget(&l, m, &optim, b, budget));
    assert_ok(nami_layout_budget(&l, m, &optim, b, again));
    assert_memory_equal(budget, again, sizeof budget);
    int64_t tied = TINY_VOCABULARY * m->options.width;
    assert_int_equal(budget[0].parameters + budget[1].parameters,
                     nami_model_count(m) + tied); /* both hold the tied embedding */
    for (int p = 0; p < 2; p++) {
        const nami_budget *g = &budget[p];
        size_t own = (size_t)g->parameters * 4, padding = 64 * (size_t)m->params;
        assert_true(g->bytes[NAMI_MEM_PARAMETER] >= own);
        assert_true(g->bytes[NAMI_MEM_PARAMETER] <= own + padding);
        assert_int_equal(g->bytes[NAMI_MEM_OPTIMIZER],
                         2 * g->bytes[NAMI_MEM_PARAMETER]);
        assert_int_equal(g->slots, 2 - p); /* 1F1B: P - d in flight */
        assert_true(g->flops > 0);
    }
    assert_int_equal(budget[0].first_block, 0);
    assert_int_equal(budget[1].last_block, m->blocks - 1);
    nami_layout_free(&l);
    nami_backend_close(b);
    nami_model_free(m);
}

/* With two copies a position holds a stage of each: weights lie twice, together; a parameter that both of its stages
 * use lies once. */
static void test_budget_of_copies(void **state)
{
    (void)state;
    nami_optim_options optim = tiny_optim(&basis);
    nami_backend *b = NULL;
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    for (int tied = 0; tied < 2; tied++) {
        tiny_problem p = basis;
        p.tied = tied;
        p.partials = 1;
        nami_model *m = tiny_model(&p);
        nami_layout l;
        nami_budget budget[4];
        tiny_way way = {.schedule = "chimera",
                        .positions = 4,
                        .waves = 1,
                        .chunks = 1,
                        .replicas = 1};
        assert_ok(tiny_layout(&p, &way, m, &l));
        assert_ok(nami_layout_budget(&l, m, &optim, b, budget));
        int64_t parameters = 0;
        for (int i = 0; i < 4; i++)
            parameters += budget[i].parameters;
        assert_int_equal(parameters, 2 * nami_model_count(m));
        assert_int_equal(budget[0].parameters, budget[3].parameters);
        assert_int_equal(budget[0].bytes[NAMI_MEM_DATA],
                         budget[3].bytes[NAMI_MEM_DATA]); /* both ends read all */
        assert_int_equal(budget[1].bytes[NAMI_MEM_DATA], 0);
        assert_int_equal(budget[0].first_block, 0);
        assert_int_equal(budget[0].last_block, m->blocks - 1);
        nami_layout_free(&l);
        nami_model_free(m);
    }
    nami_backend_close(b);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_descending),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_given_cuts),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_budget_of_copies),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
