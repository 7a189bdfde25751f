/* SPDX-License-Identifier: MIT */
/* test_emu.c - on a device with lanes, costs and delays of its own, every schedule gives the bits of one rank of the
 * reference: no host memory is touched by the device or the other way round, nothing is read too early, nothing hangs.
 * NAMI_TEST_LONG=1 tries hundreds of seeds. */
#define TINY_TIME 8 /* two slices */
#include "tiny.h"
#include "tiny_emu.h"

#include <math.h>

#include "exec/route.h"

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .dropout = 0.1,
                                   .clip = 0.5,
                                   .batch = 8,
                                   .micros = 8,
                                   .partials = 1,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 2};

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

static bool sliced; /* optimiser states lie in slices */

static tiny_way way_of(const char *schedule, int replicas)
{
    return (tiny_way){.schedule = schedule,
                      .positions = size / replicas,
                      .replicas = replicas,
                      .zero = sliced,
                      .waves = 1,
                      .chunks = 2,
                      .slices = strcmp(schedule, "terapipe") == 0 ? 2 : 0};
}

/* Whether the way can be run at all, and whether it promises the same bits. */
static bool runs(const tiny_problem *p, const tiny_way *w, bool *exact)
{
    char text[256];
    nami_layout layout;
    nami_model *m = tiny_model(p);
    bool can = tiny_layout(p, w, m, &layout) == NAMI_OK;
    if (can) { /* the executor may refuse what can be planned */
        nami_route *route = calloc((size_t)w->positions, sizeof *route);
        can = nami_routes_make(&layout.train, route) == NAMI_OK;
        nami_routes_free(route, w->positions);
        free(route);
        *exact = nami_layout_exact(&layout, text);
    }
    nami_fail_clear();
    nami_layout_free(&layout);
    nami_model_free(m);
    return can;
}

/* Whether the way can be run; then its outcome is the one wanted. */
static bool same(const tiny_problem *p, const tiny_way *w, const tiny_outcome *want)
{
    bool exact;
    if (!runs(p, w, &exact))
        return false;
    const tiny_outcome got = tiny_run(world, p, w);
    bool good = exact ? memcmp(&got, want, sizeof got) == 0 : true;
    for (int i = 0; i < p->steps; i++)
        good = good && close_to(got.loss[i], want->loss[i]);
    if (!good)
        print_error("rank %d: %s P %d D %d seed %lld: loss %a, expected %a\n", rank,
                    w->schedule, w->positions, w->replicas, (long long)tiny_emu.seed,
                    got.loss[p->steps - 1], want->loss[p->steps - 1]);
    assert_true(good);
    return true;
}

/* Every schedule at every number of replicas; how many runs there were. */
static int all_ways(const tiny_problem *p, const tiny_outcome *want)
{
    int count = 0;
    for (int d = 1; d <= size; d++)
        for (int i = 0; i < nami_presets_with_flush() && size % d == 0; i++) {
            const tiny_way w = way_of(nami_preset_at(i)->name, d);
            count += same(p, &w, want);
        }
    return count;
}

static tiny_outcome reference(const tiny_problem *p)
{
    tiny_open = nami_backend_open;
    const tiny_outcome want = tiny_reference(p);
    tiny_open = tiny_emu_open;
    assert_ok(nami_option_defaults(&nami_emu_option_table, &tiny_emu));
    return want;
}

static void test_equal(void **state)
{
    (void)state;
    tiny_problem p = basis;
    tiny_outcome want = reference(&p);
    assert_in_range(all_ways(&p, &want), 9, 1000);
    tiny_emu.copy_latency = 50e-6; /* messages take their time on the device, too */
    tiny_emu.copy_bandwidth = 1e8;
    p.recompute = true;
    p.tied = false;
    p.partials = 4;
    p.act = NAMI_BF16;
    sliced = true;
    want = reference(&p);
    assert_in_range(all_ways(&p, &want), 4, 1000);
    sliced = false;
}

/* The fast kernels behind the same wall. */
static void test_cpu(void **state)
{
    (void)state;
    tiny_problem p = basis;
    p.backend = "cpu";
    tiny_outcome want = reference(&p);
    tiny_emu.delegate = 1;
    assert_in_range(all_ways(&p, &want), 9, 1000);
}

static void test_seeds(void **state)
{
    (void)state;
    const char *wish = getenv("NAMI_TEST_LONG");
    const int seeds = size == 1 ? 1 : wish && atoi(wish) > 0 ? 300 : 3;
    const int64_t first = (int64_t)nami_test_seed(1);
    tiny_problem p = basis;
    p.partials = 2; /* for two replicas */
    const tiny_outcome want = reference(&p);
    int runs_of[3] = {0}; /* one copy, two copies, token slices */
    for (int s = 0; s < seeds; s++) {
        tiny_emu.seed = first + s;
        sliced = s % 2 == 1;
        tiny_emu.jitter = s % 3 == 0 ? 10e-6 : s % 3 == 1 ? 40e-6 : 150e-6;
        for (int i = 0; i < nami_presets_with_flush(); i++) {
            const int d = (s + i) % 2 == 0 && size % 2 == 0 ? 2 : 1;
            const tiny_way w = way_of(nami_preset_at(i)->name, d);
            const bool copies =
                nami_preset_at(i)->placement == NAMI_PLACE_BIDIRECTIONAL;
            runs_of[w.slices > 1 ? 2 : copies] += same(&p, &w, &want);
        }
        if (rank == 0 && (s + 1) % 10 == 0)
            print_message("%d seeds: %d runs, %d of two copies, %d of token slices\n",
                          s + 1, runs_of[0], runs_of[1], runs_of[2]);
    }
    assert_true(runs_of[0] > 0 && runs_of[2] > 0);
    assert_true(size == 1 || runs_of[1] > 0);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal),
                                       cmocka_unit_test(test_cpu),
                                       cmocka_unit_test(test_seeds)};
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
