/* SPDX-License-Identifier: MIT */
/* test_predict.c - prediction and correction of weights against plain loops in double, and against what they are for. */
#include <math.h>

#include "base/rng.h"
#include "nami_test.h"
#include "optim/predict.h"

static const char *const backends[] = {"ref", "cpu", NULL};

enum { COUNT = 1003 };

/* A buffer of a stage. */
static struct {
    float w[COUNT], g[COUNT], state[NAMI_OPTIM_STATES][COUNT], out[COUNT],
        before[COUNT];
} s;

static nami_optim_item item_of(const nami_optim_options *o)
{
    nami_optim_item item = {.count = COUNT, .w = s.w, .g = s.g};
    nami_optim_place(o, s.state, sizeof *s.state, &item);
    return item;
}

static void fill(float *x, uint64_t key, bool positive)
{
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)nami_normal(key, (uint64_t)i);
        if (positive)
            x[i] = fabsf(x[i]);
    }
}

static nami_backend *open(const char *name)
{
    nami_backend *b;
    assert_ok(nami_backend_open(name, 1, NAMI_F32, &b));
    return b;
}

static void assert_near(const float *got, int i, double want)
{
    if (!(fabs((double)got[i] - want) <= 1e-6 * (1 + fabs(want))))
        fail_msg("element %d is %.9g, expected %.9g", i, (double)got[i], want);
}

static const nami_optim_options momentum = {.optimizer = NAMI_OPTIMIZER_SGD,
                                            .momentum = 0.9};
static const nami_optim_options adam = {.optimizer = NAMI_OPTIMIZER_ADAMW,
                                        .beta1 = 0.9,
                                        .beta2 = 0.99,
                                        .eps = 1e-3,
                                        .decay = 0.5};
static const nami_optim_options rmsprop = {.optimizer = NAMI_OPTIMIZER_RMSPROP,
                                           .momentum = 0.5,
                                           .alpha = 0.9,
                                           .eps = 1e-3,
                                           .centered = true};

/* The formula, three updates ahead after `done` steps. */
static void check_formula(nami_backend *b, const nami_optim_options *o, uint64_t key,
                          int64_t done)
{
    nami_predict_kernels k;
    nami_optim_item item = item_of(o);
    const bool moments = o == &adam;
    fill(s.w, key, false);
    fill(item.m, key + 1, false);
    fill(item.v ? item.v : s.g, key + 2, true);
    assert_ok(nami_predict_prepare(o, b, NAMI_F32, COUNT, true, &k));
    nami_backend_wait(
        b, nami_predict_weights(o, b, 0, &k, NAMI_F32, &item, 0.02, 3, done, s.out));
    for (int i = 0; i < COUNT; i++) {
        double direction = (double)((float *)item.m)[i];
        if (moments && done > 0)
            direction = direction / (1 - pow(o->beta1, (double)done)) /
                        (sqrt((double)((float *)item.v)[i] /
                              (1 - pow(o->beta2, (double)done))) +
                         o->eps);
        assert_near(s.out, i, (double)s.w[i] - (done > 0 ? 3 * 0.02 * direction : 0));
    }
}

static void test_formula(void **state)
{
    (void)state;
    const uint64_t key = nami_test_seed(3);
    for (int i = 0; backends[i]; i++) {
        nami_backend *b = open(backends[i]);
        for (int64_t done = 0; done < 40; done += 13) {
            check_formula(b, &momentum, key, done);
            check_formula(b, &adam, key, done);
            check_formula(b, &rmsprop, key, done);
        }
        nami_backend_close(b);
    }
}

/* Where the gradient keeps the momentum as it is, a prediction is what the optimiser then does. */
static void test_prediction_comes_true(void **state)
{
    (void)state;
    const uint64_t key = nami_test_seed(4);
    for (int i = 0; backends[i]; i++) {
        nami_backend *b = open(backends[i]);
        nami_predict_kernels k;
        nami_optim_kernels update;
        nami_optim_item item = item_of(&momentum);
        fill(s.w, key, false);
        fill(item.m, key + 1, false);
        assert_ok(nami_predict_prepare(&momentum, b, NAMI_F32, COUNT, true, &k));
        assert_ok(nami_optim_prepare(&momentum, b, NAMI_F32, COUNT, &update));
        nami_backend_wait(b, nami_predict_weights(&momentum, b, 0, &k, NAMI_F32, &item,
                                                  0.01, 5, 1, s.out));
        for (int e = 0; e < COUNT; e++)
            s.g[e] = 0.1F * ((float *)item.m)[e];
        for (int step = 0; step < 5; step++)
            nami_optim_update(&momentum, b, 0, &update, NAMI_F32, &item, 0.01, 1,
                              step + 1);
        for (int e = 0; e < COUNT; e++)
            assert_near(s.w, e, (double)s.out[e]);
        nami_backend_close(b);
    }
}

/* Updates at random: drift and corrected weights as double loops have them. */
static void test_correction(void **state)
{
    (void)state;
    const uint64_t key = nami_test_seed(5);
    static double drift[COUNT];
    nami_optim_options o = momentum;
    o.correct = true;
    o.correct_decay = 0.135;
    for (int i = 0; backends[i]; i++) {
        nami_backend *b = open(backends[i]);
        nami_predict_kernels k;
        nami_optim_item item = item_of(&o);
        const double gap = 3, gamma = nami_predict_gamma(o.correct_decay, gap);
        memset(s.state, 0, sizeof s.state);
        memset(drift, 0, sizeof drift);
        fill(s.w, key, false);
        assert_ok(nami_predict_prepare(&o, b, NAMI_F32, COUNT, false, &k));
        assert_null(k.predict);
        for (int step = 0; step < 10; step++) {
            memcpy(s.before, s.w, sizeof s.w);
            for (int e = 0; e < COUNT; e++) {
                s.w[e] += (float)nami_normal(key + (uint64_t)step + 1, (uint64_t)e);
                drift[e] = gamma * drift[e] +
                           (1 - gamma) * ((double)s.w[e] - (double)s.before[e]);
            }
            nami_backend_wait(
                b, nami_predict_drift(b, 0, &k, NAMI_F32, &item, s.before, s.w, gamma));
            nami_backend_wait(
                b, nami_predict_correct(b, 0, &k, NAMI_F32, &item, gap, s.out));
            for (int e = 0; e < COUNT; e++) {
                assert_near(item.drift, e, drift[e]);
                assert_near(s.out, e, (double)s.w[e] - gap * drift[e]);
            }
        }
        nami_backend_close(b);
    }
}

/* Weights that move evenly are corrected to where they were, but for the part D of the beginning. */
static void test_even_motion(void **state)
{
    (void)state;
    nami_optim_options o = momentum;
    o.correct = true;
    nami_backend *b = open("ref");
    nami_predict_kernels k;
    nami_optim_item item = item_of(&o);
    const double decay = 0.135, gap = 4, gamma = nami_predict_gamma(decay, gap);
    memset(s.state, 0, sizeof s.state);
    memset(s.w, 0, sizeof s.w);
    assert_ok(nami_predict_prepare(&o, b, NAMI_F32, COUNT, false, &k));
    for (int step = 0; step < 4; step++) {
        memcpy(s.before, s.w, sizeof s.w);
        for (int e = 0; e < COUNT; e++)
            s.w[e] += (float)(e % 7);
        nami_backend_wait(
            b, nami_predict_drift(b, 0, &k, NAMI_F32, &item, s.before, s.w, gamma));
    }
    nami_backend_wait(b, nami_predict_correct(b, 0, &k, NAMI_F32, &item, gap, s.out));
    for (int e = 0; e < COUNT; e++)
        assert_near(s.out, e, 4 * (e % 7) - gap * (1 - decay) * (e % 7));
    nami_backend_close(b);
}

static void test_rate(void **state)
{
    (void)state;
    assert_true(nami_predict_rate(0.5, 4, 0, 0) == 0.5);
    assert_true(nami_predict_rate(0.5, 4, 0, 100) == 0.125);
    assert_true(fabs(nami_predict_rate(0.5, 4, 50, 100) - 0.25) < 1e-15);
    assert_true(nami_predict_rate(0.5, 4, 100, 100) == 0.5);
    assert_true(nami_predict_rate(0.5, 4, 1000, 100) == 0.5);
    assert_true(nami_predict_rate(0.5, 0, 0, 100) == 0.5);
    assert_true(nami_predict_rate(0.5, 1, 0, 100) == 0.5);
    assert_true(fabs(nami_predict_gamma(0.25, 2) - 0.5) < 1e-15);
    assert_true(nami_predict_gamma(0.25, 0) == 0);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_optim_options o = {.optimizer = NAMI_OPTIMIZER_SGD};
    nami_predict_kernels k;
    nami_backend *b = open("ref");
    assert_ok(nami_predict_check(&o, false, false));
    assert_fails(nami_predict_check(&o, false, true), NAMI_EINPUT, "train.momentum");
    assert_fails(nami_predict_prepare(&o, b, NAMI_F32, 1, true, &k), NAMI_EINPUT,
                 "train.momentum");
    o.optimizer = NAMI_OPTIMIZER_RMSPROP;
    assert_fails(nami_predict_check(&o, false, true), NAMI_EINPUT, "train.momentum");
    assert_ok(nami_predict_check(&momentum, false, true));
    assert_ok(nami_predict_check(&adam, false, true));
    o.anneal = 5;
    assert_ok(nami_predict_check(&o, true, false));
    assert_fails(nami_predict_check(&o, false, false), NAMI_EINPUT, "train.anneal");
    o.anneal = 0;
    o.correct = true;
    assert_ok(nami_predict_check(&o, true, false));
    assert_fails(nami_predict_check(&o, false, false), NAMI_EINPUT, "train.correct");
    assert_int_equal(nami_optim_states(&o), 2);
    assert_string_equal(nami_optim_state_group(&o, 1), "optimizer/drift");
    nami_backend_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),    cmocka_unit_test(test_prediction_comes_true),
        cmocka_unit_test(test_correction), cmocka_unit_test(test_even_motion),
        cmocka_unit_test(test_rate),       cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
