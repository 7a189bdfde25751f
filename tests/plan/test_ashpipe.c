/* SPDX-License-Identifier: MIT */
/* test_ashpipe.c - the authors' plan on their profile; the programme against going through all plans. */
#include "../nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "plan/ashpipe.h"

#define assert_near(a, b, most) assert_true(fabs((a) - (b)) <= (most))

enum { BLOCKS = 5 };

static void test_authors(void **state)
{
    (void)state;
    char path[512];
    nami_chain c;
    nami_partition p;
    assert_ok(nami_chain_read(
        nami_test_source(path, "validation/ashpipe/alexnet-profile.csv"), &c));
    nami_ashpipe_request r = {.chain = &c,
                              .level = {{4, 300e9, true}, {2, 25e9, false}},
                              .levels = 2,
                              .memory = 80e9};
    assert_ok(nami_ashpipe(&r, &p));
    assert_int_equal(p.parts, 3);
    assert_int_equal(p.ranks, 8);
    assert_int_equal(p.part[0].replicas, 4);
    assert_int_equal(p.part[1].replicas, 3);
    assert_int_equal(p.part[2].replicas, 1);
    nami_text text = {0};
    nami_partition_fragment(&p, NAMI_WEIGHTS_STASH, &text);
    assert_non_null(strstr(nami_text_get(&text),
                           "schedule = ashpipe\ncuts = 0 4 14\nstage_replicas = "
                           "4-3-1\ndepth = 2-1-0\n"));
    nami_text_free(&text);
    nami_partition_free(&p);
    nami_chain_free(&c);
}

/* --- all plans, without a table --- */

static double total(const nami_ashpipe_request *r, int i, int j, double *params,
                    double *act, double *forward)
{
    double time = 0;
    *params = *act = *forward = 0;
    for (int b = i; b <= j; b++) {
        const nami_chain_block *k = &r->chain->block[b];
        time += k->forward + k->input + k->weight;
        *forward += k->forward;
        *params += k->parameter;
        *act += k->output;
    }
    return time;
}

/* A plan of a span: its time, and what its last stage sends: forward time of a rank when it recomputes. */
typedef struct plan {
    double seconds, again;
} plan;

static plan best_of(const nami_ashpipe_request *r, int level, int i, int j, int m);

/* One span on `q` groups, by the words of the definition. */
static plan one(const nami_ashpipe_request *r, int level, int i, int j, int q)
{
    const nami_plan_level *l = &r->level[level];
    int n = r->chain->blocks, ranks = 1;
    double params, act, forward, p2, a2, f2;
    double c = total(r, i, j, &params, &act, &forward);
    plan out = {.again = 0};
    for (int k = 0; k < r->levels; k++)
        ranks *= r->level[k].ranks;
    if (level == 0) {
        double all = total(r, 0, n - 1, &p2, &a2, &f2);
        double after = j + 1 < n ? total(r, j + 1, n - 1, &p2, &a2, &f2) : 0;
        double v = round(after / (all / ranks)) + 1;
        bool plain = v * (act / q + params) + params <= r->memory;
        if (!plain && (v + 1) * params + act / q > r->memory)
            return (plan){INFINITY, 0};
        out.again = plain ? 0 : forward / q;
    } else {
        plan under = best_of(r, level - 1, i, j, r->level[level - 1].ranks);
        c = under.seconds;
        out.again = under.again / q;
    }
    double a = q == 1 ? 0 : 2 * params / l->bandwidth * (l->connected ? 1 : q - 1);
    double links = l->bandwidth * (l->connected ? q : 1);
    double in = i > 0 ? r->chain->block[i - 1].output / links : 0;
    double behind = j + 1 < n ? fmax(r->chain->block[j].output / links, out.again) : 0;
    out.seconds = (c + a) / q + in + behind;
    return out;
}

/* The best over where the last span begins and on how many groups it runs; equal times: the first found, as the
 * programme does, so that the same stage recomputes. */
static plan best_of(const nami_ashpipe_request *r, int level, int i, int j, int m)
{
    plan best = one(r, level, i, j, m);
    for (int k = i; k < j; k++)
        for (int q = 1; q < m; q++) {
            plan a = best_of(r, level, i, k, m - q), b = one(r, level, k + 1, j, q);
            double worst = fmax(a.seconds, b.seconds);
            if (worst < best.seconds)
                best = (plan){worst, b.again};
        }
    return best;
}

static void check_partition(const nami_ashpipe_request *r, const nami_partition *p,
                            int ranks)
{
    double slowest = 0;
    int next = 0, sum = 0;
    for (int s = 0; s < p->parts; s++) {
        assert_int_equal(p->part[s].first, next);
        assert_true(p->part[s].last > next);
        next = p->part[s].last;
        sum += p->part[s].replicas;
        slowest = fmax(slowest, p->part[s].seconds);
        assert_true(p->part[s].bytes <= r->memory);
    }
    assert_int_equal(next, r->chain->blocks);
    assert_int_equal(sum, ranks);
    assert_int_equal(p->ranks, ranks);
    assert_near(slowest, p->seconds, 1e-9 * p->seconds);
}

static void test_all(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(72), index = 0;
    int found = 0, refused = 0, recomputing = 0;
#define ROLL(low, high) ((low) + ((high) - (low)) * nami_uniform(seed, index++))
    for (int trial = 0; trial < 1000; trial++) {
        nami_chain_block block[BLOCKS] = {{.name = ""}};
        nami_chain c = {.blocks = 1 + (int)ROLL(0, BLOCKS), .block = block};
        for (int b = 0; b < c.blocks; b++) {
            block[b].forward = ROLL(0, 1);
            block[b].input = block[b].weight = ROLL(0, 1);
            block[b].output = ROLL(0, 20);
            block[b].parameter = ROLL(0, 5);
        }
        nami_ashpipe_request r = {.chain =
                                      &c}; /* numbers are drawn one by one: in order */
        for (int i = 0; i < 2; i++) {
            r.level[i].ranks = 1 + (int)ROLL(0, 3);
            r.level[i].bandwidth = ROLL(5, i == 0 ? 100 : 50);
            r.level[i].connected = ROLL(0, 1) < 0.5;
        }
        r.levels = 1 + (int)ROLL(0, 2);
        bool bounded = ROLL(0, 1) >= 0.3;
        r.memory = bounded ? ROLL(5, 50) : INFINITY;
        int top = r.levels - 1;
        int ranks = r.level[0].ranks * (top ? r.level[1].ranks : 1);
        double want = best_of(&r, top, 0, c.blocks - 1, r.level[top].ranks).seconds;
        nami_partition p;
        nami_status status = nami_ashpipe(&r, &p);
        assert_int_equal(status, isinf(want) ? NAMI_EPLAN : NAMI_OK);
        nami_fail_clear();
        if (status == NAMI_OK) {
            assert_near(p.seconds, want, 1e-9 * want);
            check_partition(&r, &p, ranks);
            for (int s = 0; s < p.parts; s++)
                recomputing += p.part[s].recompute;
        }
        *(status == NAMI_OK ? &found : &refused) += 1;
        nami_partition_free(&p);
    }
#undef ROLL
    print_message("%d found, %d refused, %d stages recompute\n", found, refused,
                  recomputing);
    assert_true(found > 50 && refused > 10 && recomputing > 10);
}

/* What takes for ever is refused, not begun. */
static void test_size(void **state)
{
    (void)state;
    nami_chain c = {.blocks = 5000};
    c.block = nami_calloc(NAMI_MEM_OTHER, 5000, sizeof *c.block);
    nami_ashpipe_request r = {.chain = &c,
                              .level = {{8, 1, true}, {2, 1, true}},
                              .levels = 2,
                              .memory = INFINITY};
    nami_partition p;
    assert_fails(nami_ashpipe(&r, &p), NAMI_EPLAN, "use method nami");
    nami_free(c.block);
}

/* The table of versions of asynchronous training: 4 stages. */
static void test_versions(void **state)
{
    (void)state;
    for (int s = 0; s < 4; s++) {
        assert_int_equal(nami_partition_versions(NAMI_WEIGHTS_FLUSH, 4, s), 1);
        assert_int_equal(nami_partition_versions(NAMI_WEIGHTS_STASH, 4, s), 4 - s);
        assert_int_equal(nami_partition_versions(NAMI_WEIGHTS_VERTICAL, 4, s), 4);
        assert_int_equal(nami_partition_versions(NAMI_WEIGHTS_2BW, 4, s), 2);
        assert_int_equal(nami_partition_versions(NAMI_WEIGHTS_NEWEST, 4, s), 1);
        assert_int_equal(nami_partition_versions(NAMI_WEIGHTS_PREDICT, 4, s),
                         s < 3 ? 2 : 1);
        assert_int_equal(nami_partition_versions(NAMI_WEIGHTS_GROUPED, 4, s),
                         s < 2 ? 2 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_authors),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
