/* SPDX-License-Identifier: MIT */
/* test_update.c - optimiser steps against closed forms and torch's order of operations in double. */
#include <math.h>

#include "base/rng.h"
#include "nami_test.h"
#include "optim/optim.h"

static const char *const backends[] = {"ref", "cpu", NULL};

enum { MOST = 1000 };

/* One parameter with its state, f32. */
typedef struct param {
    float w[MOST], g[MOST], m[MOST], v[MOST];
} param;

static void step(nami_backend *b, const nami_optim_options *o, param *p, int64_t n,
                 bool decay, double rate, double scale, int64_t at)
{
    nami_optim_kernels k;
    nami_optim_item item = {
        .count = n, .decay = decay, .w = p->w, .m = p->m, .v = p->v, .g = p->g};
    assert_ok(nami_optim_prepare(o, b, NAMI_F32, n, &k));
    nami_optim_update(o, b, 0, &k, NAMI_F32, &item, rate, scale, at);
}

static nami_backend *open(const char *name)
{
    nami_backend *b;
    assert_ok(nami_backend_open(name, 1, NAMI_F32, &b));
    return b;
}

/* w_k = (1 - lr (1 + decay))^k w_0 for SGD on w^2/2 without momentum. */
static void test_sgd_closed(void **state)
{
    (void)state;
    nami_optim_options o = {.optimizer = NAMI_OPTIMIZER_SGD, .decay = 0.5};
    for (int i = 0; backends[i]; i++) {
        nami_backend *b = open(backends[i]);
        static param p;
        p = (param){.w = {4}};
        for (int k = 0; k < 10; k++) {
            p.g[0] = p.w[0];
            step(b, &o, &p, 1, true, 0.1, 1, k);
        }
        assert_true(fabs(p.w[0] - 4 * pow(0.85, 10)) < 1e-6);
        nami_backend_close(b);
    }
}

/* A constant gradient: momentum sums to g (1 - mu^k) / (1 - mu). */
static void test_momentum_closed(void **state)
{
    (void)state;
    nami_optim_options o = {
        .optimizer = NAMI_OPTIMIZER_SGD, .momentum = 0.9, .decay = 7};
    for (int i = 0; backends[i]; i++) {
        nami_backend *b = open(backends[i]);
        static param p;
        p = (param){.w = {1}, .g = {2}};
        double w = 1;
        for (int k = 0; k < 20; k++) {
            step(b, &o, &p, 1, false, 0.01, 0.5, k);
            w -= 0.01 * (1 - pow(0.9, k + 1)) / (1 - 0.9);
        }
        assert_true(fabs(p.m[0] - (1 - pow(0.9, 20)) / 0.1) < 1e-5);
        assert_true(fabs(p.w[0] - w) < 1e-5);
        nami_backend_close(b);
    }
}

/* The first step of AdamW moves by lr whatever the gradient; a constant gradient keeps moving so. */
static void test_adam_closed(void **state)
{
    (void)state;
    nami_optim_options o = {
        .optimizer = NAMI_OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    for (int i = 0; backends[i]; i++) {
        nami_backend *b = open(backends[i]);
        static param p;
        p = (param){.w = {1, 1, 1}, .g = {1e-3F, -50, 2}};
        for (int k = 0; k < 5; k++)
            step(b, &o, &p, 3, true, 0.01, 1, k);
        assert_true(fabs(p.w[0] - 0.95) < 2e-5);
        assert_true(fabs(p.w[1] - 1.05) < 1e-6);
        assert_true(fabs(p.w[2] - 0.95) < 1e-6);
        nami_backend_close(b);
    }
}

/* torch.optim.AdamW's order, in double. */
static void torch_adamw(const nami_optim_options *o, double *w, double *m, double *v,
                        double g, double rate, int t)
{
    *w *= 1 - rate * o->decay;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    double denominator = sqrt(*v) / sqrt(1 - pow(o->beta2, t)) + o->eps;
    *w -= rate / (1 - pow(o->beta1, t)) * *m / denominator;
}

static void test_adam_random(void **state)
{
    (void)state;
    uint64_t key = nami_test_seed(5);
    nami_optim_options o = {.optimizer = NAMI_OPTIMIZER_ADAMW,
                            .beta1 = 0.8,
                            .beta2 = 0.99,
                            .eps = 1e-3,
                            .decay = 0.3};
    static const int64_t sizes[] = {1, 15, 16, 17, 1000};
    static param p;
    static double w[MOST], m[MOST], v[MOST];
    for (int i = 0; backends[i]; i++)
        for (int s = 0; s < 5; s++) {
            nami_backend *b = open(backends[i]);
            memset(&p, 0, sizeof p);
            memset(m, 0, sizeof m);
            memset(v, 0, sizeof v);
            for (int64_t e = 0; e < sizes[s]; e++)
                w[e] = p.w[e] = (float)nami_normal(key, (uint64_t)e);
            for (int t = 1; t <= 10; t++) {
                for (int64_t e = 0; e < sizes[s]; e++) {
                    p.g[e] = (float)nami_normal(key + (uint64_t)t, (uint64_t)e);
                    torch_adamw(&o, &w[e], &m[e], &v[e], 0.7 * (double)p.g[e], 0.02, t);
                }
                step(b, &o, &p, sizes[s], true, 0.02, 0.7, t - 1);
            }
            for (int64_t e = 0; e < sizes[s]; e++)
                assert_true(fabs(p.w[e] - w[e]) < 3e-6 * (1 + fabs(w[e])));
            nami_backend_close(b);
        }
}

/* Squares in double over blocks of 64 Ki, blocks added in order: the exact bits are part of the contract. */
static void test_squares(void **state)
{
    (void)state;
    enum { N = 3 * NAMI_SQUARES_BLOCK + 77 };
    float *g = nami_alloc(NAMI_MEM_OTHER, N * sizeof *g);
    double exact = 0;
    for (int64_t e = 0; e < N; e++) {
        g[e] = (float)nami_normal(3, (uint64_t)e);
        exact += (double)g[e] * (double)g[e];
    }
    nami_optim_options o = {.optimizer = NAMI_OPTIMIZER_SGD};
    for (int i = 0; backends[i]; i++) {
        nami_backend *b = open(backends[i]);
        nami_optim_kernels k;
        double sum = -1, parts = 0, part;
        assert_ok(nami_optim_prepare(&o, b, NAMI_F32, N, &k));
        nami_backend_wait(b, nami_optim_squares(b, 0, &k, NAMI_F32, N, g, &sum));
        assert_true(fabs(sum / exact - 1) < 1e-12);
        for (int64_t from = 0; from < N; from += NAMI_SQUARES_BLOCK) {
            int64_t n = N - from < NAMI_SQUARES_BLOCK ? N - from : NAMI_SQUARES_BLOCK;
            assert_ok(nami_optim_prepare(&o, b, NAMI_F32, n, &k));
            nami_backend_wait(
                b, nami_optim_squares(b, 0, &k, NAMI_F32, n, g + from, &part));
            parts += part;
        }
        assert_true(sum == parts);
        nami_backend_close(b);
    }
    nami_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd_closed),  cmocka_unit_test(test_momentum_closed),
        cmocka_unit_test(test_adam_closed), cmocka_unit_test(test_adam_random),
        cmocka_unit_test(test_squares),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
