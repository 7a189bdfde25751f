/* SPDX-License-Identifier: MIT */
/* test_zero.c - optimiser states in slices over replicas: the bits of whole states on every layout, and their memory. */
#define TINY_VOCABULARY                                                                \
    11000 /* the embedding has three blocks, the last of 928 elements */
#include "tiny.h"

#include "exec/share.h"

/* --- slices --- */

/* Slices are in order, end with blocks, and fill replicas equally up to a block. */
static void check_slices(const int64_t *count, int params, int replicas)
{
    const int64_t block = NAMI_SQUARES_BLOCK;
    int64_t full[16] = {0}, total = 0;
    int64_t *bound = calloc((size_t)(params * (replicas + 1)) + 1, sizeof *bound);
    nami_slices_cut(count, params, replicas, bound);
    for (int i = 0; i < params; i++) {
        const int64_t *b = bound + i * (replicas + 1);
        assert_int_equal(b[0], 0);
        assert_int_equal(b[replicas], count[i]);
        total += count[i];
        for (int r = 0; r < replicas; r++) {
            assert_true(b[r] <= b[r + 1]);
            assert_true(b[r + 1] % block == 0 || b[r + 1] == count[i]);
            full[r] += b[r + 1] - b[r];
        }
    }
    for (int r = 0; r < replicas; r++)
        assert_true(full[r] <= total / replicas + block);
    free(bound);
}

static void test_slices(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(79);
    if (rank != 0)
        return;
    for (int trial = 0; trial < 500; trial++) {
        int64_t count[20];
        const uint64_t word = nami_mix(seed, (uint64_t)trial);
        const int params = (int)(word % 21), replicas = 1 + (int)(word / 21 % 16);
        const uint64_t most = word / 336 % 3 ? 70000 : 1000000;
        for (int i = 0; i < params; i++)
            count[i] = (int64_t)(nami_mix(word, (uint64_t)i) % most);
        check_slices(count, params, replicas);
    }
}

/* --- bits --- */

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .dropout = 0.1,
                                   .clip = 0.5,
                                   .batch = 8,
                                   .micros = 4,
                                   .partials = 4,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 2};

/* Whether the way can be run at all. */
static bool admitted(const tiny_problem *p, const tiny_way *w)
{
    nami_layout layout;
    nami_model *m = tiny_model(p);
    bool can = tiny_layout(p, w, m, &layout) == NAMI_OK;
    nami_fail_clear();
    nami_layout_free(&layout);
    nami_model_free(m);
    return can;
}

/* With slices and without: losses, norms, parameters and states are the same. */
static void compare(const tiny_problem *p, tiny_way w)
{
    if (!admitted(p, &w))
        return;
    const tiny_outcome want = tiny_run(world, p, &w);
    w.zero = true;
    const tiny_outcome got = tiny_run(world, p, &w);
    if (memcmp(&got, &want, sizeof got) != 0 && rank == 0)
        printf("%s, optimiser %d, %d positions x %d: loss %a expected %a, norm %a "
               "expected %a, parameters %d\n",
               w.schedule, p->optimizer, w.positions, w.replicas, got.loss[1],
               want.loss[1], got.norm[0], want.norm[0],
               got.parameters == want.parameters);
    assert_memory_equal(&got, &want, sizeof got);
}

static tiny_way way_of(const char *schedule, int replicas)
{
    return (tiny_way){.schedule = schedule,
                      .positions = size / replicas,
                      .replicas = replicas,
                      .waves = 1,
                      .chunks = 2};
}

static const char *const schedules[] = {"gpipe", "hanayo",  "interleaved",
                                        "zb-h1", "chimera", "dualpipe"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* Every schedule, each with another problem. */
static void test_equal(void **state)
{
    (void)state;
    for (int i = 0; i < SCHEDULES; i++) {
        for (int replicas = 2; replicas <= size; replicas++) {
            tiny_problem p = basis;
            if (size % replicas != 0)
                continue;
            p.micros = p.partials = replicas == 3 ? 6 : 4;
            if (i >= 4) { /* two copies make one sum a replica */
                p.micros = 4 * size;
                p.partials = replicas;
            }
            p.batch = 2 * p.micros;
            p.optimizer = i % 4;
            p.tied = i % 3 != 2;
            p.recompute = i % 2 == 1;
            p.clip_scope = i == 2 ? NAMI_CLIP_STAGE : NAMI_CLIP_ALL;
            tiny_bucket = i % 2 ? 256 : 0; /* many pieces */
            compare(&p, way_of(schedules[i], replicas));
        }
    }
    tiny_bucket = 0;
}

/* A Llama, whose table is used twice or once. */
static void test_llama(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.micros = p.partials = size == 3 ? 6 : 4;
    p.batch = 2 * p.micros;
    tiny_other = tiny_llama;
    for (int replicas = 2; replicas <= size; replicas++) {
        p.tied = replicas % 2 == 0;
        p.recompute = !p.tied;
        if (size % replicas == 0)
            compare(&p, way_of("hanayo", replicas));
    }
    tiny_other = NULL;
}

/* bf16 with f32 masters, on the fast backend where there is one. */
static void test_bf16(void **state)
{
    (void)state;
    tiny_problem p = basis;
    nami_backend *b = NULL;
    if (nami_backend_open("cpu", 1, NAMI_BF16, &b) == NAMI_OK) {
        p.backend = "cpu";
        nami_backend_close(b);
    }
    nami_fail_clear();
    p.act = NAMI_BF16;
    if (size == 3)
        p.micros = p.partials = 6;
    if (size > 1)
        compare(&p, way_of("dapple", size));
}

/* Positions of unequal replicas, which exchange slices of the tied embedding. */
static void test_samples(void **state)
{
    (void)state;
    static const int given[][4] = {{2}, {2, 1}, {1, 2}, {3, 1}, {1, 2, 1}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        int list[4], positions = 0, ranks = 0;
        for (; positions < 4 && given[i][positions] > 0; positions++) {
            list[positions] = given[i][positions];
            ranks += list[positions];
        }
        tiny_problem p = basis;
        p.partials = 1;
        p.batch = 12;
        tiny_way w = way_of("dapple", 1);
        w.positions = positions;
        w.split = NAMI_SPLIT_SAMPLE;
        w.stage_replicas = (nami_ints){.item = list, .count = positions};
        tiny_bucket = 1000;
        if (ranks == size)
            compare(&p, w);
    }
    tiny_bucket = 0;
}

/* --- memory --- */

static nami_budget budget_of(const nami_model *m, const nami_optim_options *o,
                             tiny_way w)
{
    nami_backend *b = NULL;
    nami_layout l;
    nami_blueprint blueprint;
    nami_share share;
    nami_budget budget[2];
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &b));
    assert_ok(tiny_layout(&basis, &w, m, &l));
    assert_ok(nami_layout_budget(&l, m, o, b, budget));
    assert_ok(nami_blueprint_make(&l, m, o, b, &blueprint));
    for (int r = 0; r < w.replicas; r++) { /* all replicas need the same */
        assert_ok(nami_share_make(&blueprint, 1, r, &share));
        assert_memory_equal(share.bytes, budget[1].bytes, sizeof share.bytes);
        nami_share_free(&share);
    }
    nami_blueprint_free(&blueprint);
    nami_layout_free(&l);
    nami_backend_close(b);
    return budget[1];
}

/* The states shrink by the replicas, up to a block each; parameters and gradients stay, and so does every position's
 * promise: exec/new.c asserts that what is allocated equals the budget, on each replica. */
static void test_budget(void **state)
{
    (void)state;
    nami_model *m = tiny_model(&basis);
    nami_optim_options o = tiny_optim(&basis);
    const size_t rounding = NAMI_SHARE_ALIGN * (size_t)m->params;
    const size_t block = NAMI_SQUARES_BLOCK * sizeof(float);
    for (int replicas = 1; replicas <= 4; replicas *= 2) {
        tiny_way w = {.schedule = "dapple",
                      .positions = 2,
                      .waves = 1,
                      .chunks = 1,
                      .replicas = replicas};
        const nami_budget whole = budget_of(m, &o, w);
        w.zero = true;
        const nami_budget slice = budget_of(m, &o, w);
        const size_t before = whole.bytes[NAMI_MEM_OPTIMIZER],
                     after = slice.bytes[NAMI_MEM_OPTIMIZER];
        if (replicas == 1)
            assert_int_equal(after, before);
        assert_true(after * (size_t)replicas >= before);
        assert_true(after <= before / (size_t)replicas + 2 * (block + rounding));
        assert_int_equal(slice.bytes[NAMI_MEM_PARAMETER],
                         whole.bytes[NAMI_MEM_PARAMETER]);
        assert_true(slice.bytes[NAMI_MEM_GRADIENT] <= whole.bytes[NAMI_MEM_GRADIENT]);
    }
    nami_model_free(m);
}

/* Without a flush there is no moment at which all slices are updated. */
static void test_refusal(void **state)
{
    (void)state;
    nami_layout l;
    nami_model *m = tiny_model(&basis);
    tiny_way w = {.schedule = "pipedream",
                  .positions = 2,
                  .waves = 1,
                  .chunks = 1,
                  .replicas = 1,
                  .zero = true};
    assert_fails(tiny_layout(&basis, &w, m, &l), NAMI_EPLAN,
                 "zero = 1 divides the update behind a flush");
    nami_model_free(m);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),  cmocka_unit_test(test_equal),
        cmocka_unit_test(test_llama),   cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_samples), cmocka_unit_test(test_budget),
        cmocka_unit_test(test_refusal),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
