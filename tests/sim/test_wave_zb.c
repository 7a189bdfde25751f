/* SPDX-License-Identifier: MIT */
/* test_wave_zb.c - hanayo-zb: makespan, memory and idle times as docs/design/0005 proves them, and when it wins.
 *
 * Times are whole numbers of one stage's forward, so equality is exact.
 */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "sched/oracle.h"
#include "sim/sim.h"

/* Simulate with costs of one stage. */
static void predict(const char *name, int p, int m, int w, double f, double bi,
                    double bw, double latency, nami_prediction *out)
{
    nami_schedule s;
    nami_recipe r = oracle_recipe(name, p, m, w);
    double chunks = 2.0 * w;
    const nami_cost cost = {.tf = f * chunks,
                            .tbi = bi * chunks,
                            .tbw = bw * chunks,
                            .latency = latency * chunks};
    assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
    assert_ok(nami_simulate(&s, &cost, false, out));
    nami_schedule_free(&s);
}

/* From M = P on every position idles P-1 stage times in all, and holds P micro-batches at most, exactly. */
static void test_exhaustive(void **state)
{
    (void)state;
    int most = getenv("NAMI_TEST_LONG") ? 20 : 9;
    for (int p = 1; p <= most; p++) {
        for (int w = 1; w <= 4; w++) {
            for (int m = 1; m <= 4 * p; m++) {
                nami_prediction x;
                int64_t whole = 2 * w * (2 * m + p) + p - 1;
                int64_t deep = 4 * w * p + 2 * m - 1;
                predict("hanayo-zb", p, m, w, 1, 1, 1, 0, &x);
                for (int d = 0; d < p; d++) {
                    if (m >= p)
                        assert_true(x.idle[d] == p - 1);
                    assert_true(x.peak[d] == (m < p ? m : p));
                }
                if (m < p)
                    assert_true(x.makespan == (double)(whole > deep ? whole : deep));
                assert_true(x.makespan >= 6 * w * m + p - 1); /* the lower bound */
                nami_prediction_free(&x);
            }
        }
    }
}

/* Unequal times, M a multiple of P: idle (P-1)(2 max(F, BI) - min(BI, BW)) in stage times. */
static void test_unequal(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(2026), n = 0;
    for (int i = 0; i < 400; i++) {
        int p = 1 + (int)(8 * nami_uniform(key, n++)), w = 1 + i % 4;
        int m = p * (1 + (int)(3 * nami_uniform(key, n++)));
        int64_t t[3];
        for (int k = 0; k < 3; k++)
            t[k] = 1 + (int64_t)(6 * nami_uniform(key, n++));
        int64_t x = t[0] > t[1] ? t[0] : t[1], y = t[1] < t[2] ? t[1] : t[2];
        int64_t idle = (p - 1) * (2 * x - y);
        nami_prediction q;
        predict("hanayo-zb", p, m, w, (double)t[0], (double)t[1], (double)t[2], 0, &q);
        assert_true(q.makespan == (double)(2 * w * m * (t[0] + t[1] + t[2]) + idle));
        nami_prediction_free(&q);
    }
}

/* Idle time in T_F of one position at T_C = latency. */
static double idle(const char *name, int w, double latency)
{
    nami_prediction x;
    predict(name, 8, 16, w, 1, 1, 1, latency, &x);
    double result = (x.makespan - 6.0 * w * 16) / (2.0 * w);
    nami_prediction_free(&x);
    return result;
}

/* Without latency the idle time is a quarter of hanayo's and 1/W of zb-v's. Latency turns the table: at P = 8, M = 16
 * a second wave
 * pays below T_F/16, four pay below T_F/64, and two waves beat zb-v from T_F/22 down. */
static void test_when_it_wins(void **state)
{
    (void)state;
    for (int w = 1; w <= 4; w++) {
        assert_true(4 * idle("hanayo-zb", w, 0) == idle("hanayo", w, 0));
        assert_true(idle("zb-v", 1, 0) == w * idle("hanayo-zb", w, 0));
    }
    for (int k = 4; k <= 128; k++) {
        double t = 1.0 / k, one = idle("hanayo-zb", 1, t),
               two = idle("hanayo-zb", 2, t);
        double four = idle("hanayo-zb", 4, t);
        assert_true(k == 16 ? fabs(two - one) < 1e-9 : (two < one) == (k > 16));
        assert_true(k == 64 ? fabs(four - two) < 1e-9 : (four < two) == (k > 64));
        assert_true((two < idle("zb-v", 1, t)) == (k >= 22));
        assert_true(one < idle("hanayo", 1, t) && two < idle("hanayo", 2, t));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exhaustive),
        cmocka_unit_test(test_unequal),
        cmocka_unit_test(test_when_it_wins),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
