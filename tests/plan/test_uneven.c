/* SPDX-License-Identifier: MIT */
/* test_uneven.c - our planner against all plans of small problems, each stage judged by the words of uneven.h. */
#include "../nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "plan/uneven.h"

#define assert_near(a, b, most) assert_true(fabs((a) - (b)) <= (most))

enum { BLOCKS = 6, RANKS = 7 };

/* --- one stage, in plain words --- */

/* A stage: blocks a..b-1 on r ranks from rank `rank` on, with `behind` stages behind it; first and last rank of the stages
 * beside it. */
typedef struct stage {
    int a, b, r, rank, behind;
    bool again;
    int low, high;
} stage;

static double share_of(const nami_uneven_request *q, int r)
{
    int64_t batch = q->chain->samples;
    return batch > 0 ? (double)((batch + r - 1) / r) / (double)batch : 1.0 / r;
}

/* Whether two ranks are on one node. */
static bool together(const nami_uneven_request *q, int x, int y)
{
    return q->ranks_per_node == 0 || x / q->ranks_per_node == y / q->ranks_per_node;
}

static double seconds_of(const nami_uneven_request *q, const stage *s)
{
    const nami_chain_block *k = q->chain->block;
    double share = share_of(q, s->r), forward = 0, link[2] = {0};
    bool one = together(q, s->rank, s->rank + s->r - 1);
    const nami_chain_link *sum = one ? &q->inside : &q->across;
    double per_byte = s->r > 1 ? 2.0 * (s->r - 1) / s->r / sum->reduce : 0;
    for (int i = s->a; i < s->b; i++) {
        forward += share * k[i].forward * (s->again ? 2 : 1);
        link[!one] += per_byte * k[i].parameter;
    }
    double sums = link[!one];
    if (s->a > 0 && k[s->a - 1].output > 0) {
        bool in = together(q, s->low, s->rank + s->r - 1);
        const nami_chain_link *l = in ? &q->inside : &q->across;
        link[!in] += l->latency + share * k[s->a - 1].output / l->rate;
    }
    if (s->b < q->chain->blocks && k[s->b - 1].output > 0) {
        bool in = together(q, s->rank, s->high);
        const nami_chain_link *l = in ? &q->inside : &q->across;
        link[!in] += l->latency + share * k[s->b - 1].output / l->rate;
    }
    /* the last sum ends after the backward of each block and all sums from there on */
    double end = 0;
    for (int i = s->a; i < s->b; i++) {
        double path = 0;
        for (int j = i; j < s->b; j++)
            path += share * (k[j].input + k[j].weight);
        for (int j = s->a; j <= i; j++)
            path += per_byte * k[j].parameter;
        end = fmax(end, path);
    }
    end += forward + (sums > 0 ? 2 * sum->latency : 0);
    return fmax(end, fmax(link[0], link[1]));
}

static double bytes_of(const nami_uneven_request *q, const stage *s)
{
    const nami_chain_block *k = q->chain->block;
    double parameter = 0, packed = 0, kept = 0, transient = 0, between = 0;
    double in = s->a > 0 ? k[s->a - 1].output : 0;
    double out = s->b < q->chain->blocks ? k[s->b - 1].output : 0;
    int n = s->behind + 1;
    for (int i = s->a; i < s->b; i++) {
        double inner = i + 1 < s->b ? k[i].output : 0;
        parameter += k[i].parameter;
        packed += k[i].packed;
        kept += k[i].kept + inner;
        transient = fmax(transient, k[i].transient);
        between = fmax(between, inner);
    }
    int versions = q->policy == NAMI_WEIGHTS_STASH ? n
                   : q->policy == NAMI_WEIGHTS_2BW ? (s->a == 0 && n == 1 ? 1 : 2)
                                                   : 1;
    return versions * (parameter + packed) + (1 + q->states) * parameter +
           share_of(q, s->r) * ((s->again ? 1 : n) * kept + (n + 2) * in + 2 * out +
                                transient + between);
}

/* --- all plans --- */

/* Its slowest stage; stage i + 1 lies before stage i. Infinite when it does not fit. */
static double judge(const nami_uneven_request *q, stage *s, int n)
{
    double slowest = 0;
    int rank = 0;
    for (int i = n - 1; i >= 0; rank += s[i--].r)
        s[i].rank = rank;
    for (int i = 0; i < n; i++) {
        s[i].low = i + 1 < n ? s[i + 1].rank : s[i].rank;
        s[i].high = i > 0 ? s[i - 1].rank + s[i - 1].r - 1 : s[i].rank + s[i].r - 1;
        s[i].again = false;
        if (bytes_of(q, &s[i]) > q->memory)
            s[i].again = true;
        if (bytes_of(q, &s[i]) > q->memory)
            return INFINITY;
        slowest = fmax(slowest, seconds_of(q, &s[i]));
    }
    return slowest;
}

/* The best of all plans that end with the n stages s[n-1] .. s[0], before which are blocks [0, b) and some ranks. */
static double best_before(const nami_uneven_request *q, int b, int ranks, stage *s,
                          int n)
{
    double best = INFINITY;
    if (b == 0)
        return judge(q, s, n);
    for (int a = 0; a < b && n < q->stages; a++)
        for (int r = 1; r <= ranks; r++) {
            s[n] = (stage){.a = a, .b = b, .r = r, .behind = n};
            best = fmin(best, best_before(q, a, ranks - r, s, n + 1));
        }
    return best;
}

static double best_plan(const nami_uneven_request *q)
{
    stage s[BLOCKS];
    return best_before(q, q->chain->blocks, q->ranks, s, 0);
}

/* The plan is one, fits, and takes what it says. */
static void check_plan(const nami_uneven_request *q, const nami_partition *p)
{
    double slowest = 0;
    int next = 0, rank = 0;
    for (int i = 0; i < p->parts; i++) {
        const nami_part *x = &p->part[i];
        stage s = {.a = x->first,
                   .b = x->last,
                   .r = x->replicas,
                   .rank = rank,
                   .behind = p->parts - 1 - i,
                   .again = x->recompute,
                   .low = i > 0 ? rank - p->part[i - 1].replicas : rank,
                   .high = rank + x->replicas - 1};
        if (i + 1 < p->parts)
            s.high += p->part[i + 1].replicas;
        assert_int_equal(x->first, next);
        assert_true(x->last > next && x->replicas > 0);
        assert_near(x->seconds, seconds_of(q, &s), 1e-9 * x->seconds);
        assert_near(x->bytes, bytes_of(q, &s), 1e-9 * x->bytes);
        assert_true(x->bytes <= q->memory);
        next = x->last;
        rank += x->replicas;
        slowest = fmax(slowest, x->seconds);
    }
    assert_int_equal(next, q->chain->blocks);
    assert_int_equal(p->ranks, rank);
    assert_true(rank <= q->ranks && p->parts <= q->stages);
    assert_near(slowest, p->seconds, 1e-9 * slowest);
}

/* Random problems; `nodes`: ranks are on several nodes, so that the class of a link depends on the plan. */
typedef struct dice {
    uint64_t key, index;
} dice;

static double roll(dice *d, double low, double high)
{
    return low + (high - low) * nami_uniform(d->key, d->index++);
}

static void make_problem(dice *d, bool nodes, nami_chain *c, nami_chain_block *block,
                         nami_uneven_request *q)
{
    static const nami_weights policy[] = {NAMI_WEIGHTS_STASH, NAMI_WEIGHTS_2BW,
                                          NAMI_WEIGHTS_NEWEST};
    *c = (nami_chain){.blocks = 1 + (int)roll(d, 0, BLOCKS), .block = block};
    c->samples = roll(d, 0, 1) < 0.5 ? 0 : 1 + (int64_t)roll(d, 0, 20);
    double heavy = roll(d, 0, 1) < 0.5 ? 10 : 1; /* uneven or even times */
    for (int i = 0; i < c->blocks; i++)
        block[i] =
            (nami_chain_block){.forward = roll(d, 0, 1),
                               .input = roll(d, 0, roll(d, 0, heavy)),
                               .weight = roll(d, 0, 1),
                               .output = roll(d, 0, 1) < 0.1 ? 0 : roll(d, 0, 20),
                               .kept = roll(d, 0, 30),
                               .transient = roll(d, 0, 10),
                               .parameter = roll(d, 0, 40),
                               .packed = roll(d, 0, 3)};
    double fast = pow(10, roll(d, 0.5, 4));
    *q = (nami_uneven_request){.chain = c,
                               .ranks = 1 + (int)roll(d, 0, RANKS),
                               .ranks_per_node = nodes ? 1 + (int)roll(d, 0, 4) : 0,
                               .inside = {roll(d, 0, 0.05), fast, fast / roll(d, 1, 3)},
                               .across = {roll(d, 0, 0.2), fast / 5, fast / 10},
                               .memory =
                                   roll(d, 0, 1) < 0.3 ? INFINITY : roll(d, 40, 900),
                               .policy = policy[(int)roll(d, 0, 3)],
                               .states = (int)roll(d, 0, 3),
                               .stages = 1 + (int)roll(d, 0, BLOCKS)};
}

/* Solve `trials` problems; returns how many plans were the best of all. */
static int solve(uint64_t seed, bool nodes, int trials, int *found, double *worst)
{
    int best = 0, refused = 0, recomputing = 0, stages = 0;
    *found = 0;
    *worst = 1;
    for (int trial = 0; trial < trials; trial++) {
        dice d = {nami_mix(seed, (uint64_t)trial), 0};
        nami_chain c;
        nami_chain_block block[BLOCKS];
        nami_uneven_request q;
        nami_partition p;
        make_problem(&d, nodes, &c, block, &q);
        double want = best_plan(&q);
        nami_status status = nami_uneven(&q, &p);
        if (status != (isinf(want) ? NAMI_EPLAN : NAMI_OK))
            fail_msg("trial %d: status %d, best %g", trial, (int)status, want);
        nami_fail_clear();
        refused += status != NAMI_OK;
        if (status == NAMI_OK) {
            check_plan(&q, &p);
            ++*found;
            stages += p.parts;
            for (int i = 0; i < p.parts; i++)
                recomputing += p.part[i].recompute;
            if (p.seconds < want * (1 - 1e-9) || p.bound > want * (1 + 1e-9))
                fail_msg("trial %d: %g, bound %g, best %g", trial, p.seconds, p.bound,
                         want);
            best += p.seconds <= want * (1 + 1e-9);
            *worst = fmax(*worst, p.seconds / want);
        }
        nami_partition_free(&p);
    }
    print_message(
        "%d found, %d the best, %d refused, %d stages, %d recompute; at worst "
        "%.4f of the best\n",
        *found, best, refused, stages, recomputing, *worst);
    assert_true(refused > 0 && recomputing > 0 && 4 * stages > 5 * *found);
    return best;
}

/* With links of one class the plan is the best of all plans. */
static void test_one_class(void **state)
{
    (void)state;
    int found;
    double worst;
    int best = solve(nami_test_seed(73), false, 400, &found, &worst);
    assert_int_equal(best, found);
}

/* With two as well, as long as the problem is small. */
static void test_two_classes(void **state)
{
    (void)state;
    int found;
    double worst;
    int best = solve(nami_test_seed(74), true, 400, &found, &worst);
    assert_int_equal(best, found);
}

/* Hundreds of blocks and ranks: as good as the bound, in the time of a test. */
static void test_large(void **state)
{
    (void)state;
    enum { MANY = 100 };
    dice d = {nami_test_seed(75), 0};
    nami_chain_block block[MANY];
    nami_chain c = {.blocks = MANY, .block = block, .samples = 1024};
    for (int i = 0; i < MANY; i++)
        block[i] = (nami_chain_block){.forward = roll(&d, 1, 9),
                                      .input = roll(&d, 1, 9),
                                      .weight = roll(&d, 1, 9),
                                      .output = roll(&d, 0, 20),
                                      .kept = roll(&d, 0, 30),
                                      .parameter = roll(&d, 0, 5)};
    nami_uneven_request q = {.chain = &c,
                             .ranks = 128,
                             .inside = {1e-4, 20, 10},
                             .across = {1e-3, 10, 5},
                             .memory = INFINITY,
                             .policy = NAMI_WEIGHTS_STASH,
                             .states = 1,
                             .stages = 64};
    for (q.ranks_per_node = 0; q.ranks_per_node <= 8; q.ranks_per_node += 8) {
        nami_partition p;
        assert_ok(nami_uneven(&q, &p));
        check_plan(&q, &p);
        print_message("%d ranks a node: %g, bound %g, %d ranks, %d stages\n",
                      q.ranks_per_node, p.seconds, p.bound, p.ranks, p.parts);
        assert_true(p.seconds <= p.bound * (q.ranks_per_node ? 1.5 : 1 + 1e-6));
        nami_partition_free(&p);
    }
    c.blocks = NAMI_UNEVEN_BLOCKS + 1;
    nami_partition none;
    assert_fails(nami_uneven(&q, &none), NAMI_EPLAN, "plans at most 2048 blocks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_class),
        cmocka_unit_test(test_two_classes),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
