/* SPDX-License-Identifier: MIT */
/* test_options.c - learning rate, clip factor and the optimiser's part of [train]. */
#include <math.h>

#include "nami_test.h"
#include "optim/optim.h"

static nami_optim_options defaults(void)
{
    nami_optim_options o = {0};
    assert_ok(nami_option_defaults(&nami_optim_option_table, &o));
    assert_ok(nami_optim_resolve(&o));
    return o;
}

static void release(nami_optim_options *o)
{
    nami_option_release(&nami_optim_option_table, o);
}

static void test_defaults(void **state)
{
    (void)state;
    nami_optim_options o = defaults();
    assert_int_equal(o.optimizer, NAMI_OPTIMIZER_ADAMW);
    assert_int_equal(o.rate, NAMI_RATE_COSINE);
    assert_true(o.beta1 == 0.9 && o.beta2 == 0.95 && o.eps == 1e-8 && o.clip == 1);
    assert_int_equal(nami_optim_states(&o), 2);
    nami_test_set(&nami_optim_option_table, &o, "optimizer", "sgd");
    assert_int_equal(nami_optim_states(&o), 1);
    release(&o);
}

/* States have their names and places; a place is never shared. */
static void test_states(void **state)
{
    (void)state;
    static const struct {
        nami_optim_options o;
        const char *group[NAMI_OPTIM_STATES + 1];
    } cases[] = {
        {{.optimizer = NAMI_OPTIMIZER_SGD}, {"optimizer/m"}},
        {{.optimizer = NAMI_OPTIMIZER_ADAM}, {"optimizer/m", "optimizer/v"}},
        {{.optimizer = NAMI_OPTIMIZER_ADAMW}, {"optimizer/m", "optimizer/v"}},
        {{.optimizer = NAMI_OPTIMIZER_RMSPROP}, {"optimizer/v"}},
        {{.optimizer = NAMI_OPTIMIZER_RMSPROP, .momentum = 0.5},
         {"optimizer/m", "optimizer/v"}},
        {{.optimizer = NAMI_OPTIMIZER_RMSPROP, .centered = true},
         {"optimizer/v", "optimizer/mean"}},
        {{.optimizer = NAMI_OPTIMIZER_RMSPROP, .momentum = 0.5, .centered = true},
         {"optimizer/m", "optimizer/v", "optimizer/mean"}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int states = nami_optim_states(&cases[c].o);
        char array[NAMI_OPTIM_STATES][4];
        nami_optim_item item;
        nami_optim_place(&cases[c].o, array, sizeof *array, &item);
        for (int s = 0; s < states; s++) {
            const char *group = nami_optim_state_group(&cases[c].o, s);
            assert_string_equal(group, cases[c].group[s]);
            const void *at = !strcmp(group, "optimizer/m")   ? item.m
                             : !strcmp(group, "optimizer/v") ? item.v
                                                             : item.mean;
            assert_ptr_equal(at, array[s]);
        }
        assert_null(cases[c].group[states]);
        assert_int_equal(!!item.m + !!item.v + !!item.mean, states);
    }
}

/* A key of one optimiser is refused with another. */
static void test_optimizer_keys(void **state)
{
    (void)state;
    nami_optim_options o = defaults();
    nami_test_set(&nami_optim_option_table, &o, "nesterov", "yes");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "not to adamw");
    nami_test_set(&nami_optim_option_table, &o, "optimizer", "sgd");
    assert_ok(nami_optim_resolve(&o));
    nami_test_set(&nami_optim_option_table, &o, "momentum", "0");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.momentum above 0");
    nami_test_set(&nami_optim_option_table, &o, "nesterov", "no");
    nami_test_set(&nami_optim_option_table, &o, "centered", "yes");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "not to sgd");
    nami_test_set(&nami_optim_option_table, &o, "optimizer", "rmsprop");
    assert_ok(nami_optim_resolve(&o));
    nami_test_set(&nami_optim_option_table, &o, "alpha", "1");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.alpha");
    nami_test_set(&nami_optim_option_table, &o, "alpha", "0");
    nami_test_set(&nami_optim_option_table, &o, "eps", "0");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.eps is 0");
    nami_test_set(&nami_optim_option_table, &o, "optimizer", "sgd");
    nami_test_set(&nami_optim_option_table, &o, "centered", "no");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.alpha is set, but");
    nami_test_set(&nami_optim_option_table, &o, "alpha", "0.99");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.eps is set, but");
    nami_test_set(&nami_optim_option_table, &o, "eps", "1e-8");
    assert_ok(nami_optim_resolve(&o));
    release(&o);
}

static void test_betas(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "0.9", "0.9 1", "-0.1 0.9", "0.9 0.95 0.99", "a b", "nan 0", "0.9 0.9x"};
    nami_optim_options o = defaults();
    nami_test_set(&nami_optim_option_table, &o, "betas", "0.8,  0.99");
    assert_ok(nami_optim_resolve(&o));
    assert_true(o.beta1 == 0.8 && o.beta2 == 0.99);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        nami_test_set(&nami_optim_option_table, &o, "betas", bad[i]);
        assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.betas");
    }
    release(&o);
}

static void test_cross_checks(void **state)
{
    (void)state;
    nami_optim_options o = defaults();
    nami_test_set(&nami_optim_option_table, &o, "min_lr", "1");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.min_lr");
    nami_test_set(&nami_optim_option_table, &o, "rate", "constant");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.min_lr is set, but");
    nami_test_set(&nami_optim_option_table, &o, "min_lr", "1e-4");
    assert_ok(nami_optim_resolve(&o));
    nami_test_set(&nami_optim_option_table, &o, "rate_steps", "10");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.rate_steps");
    release(&o);
}

static void test_rate(void **state)
{
    (void)state;
    nami_optim_options o = {
        .lr = 1e-3, .min_lr = 1e-4, .warmup = 10, .rate = NAMI_RATE_COSINE};
    assert_true(fabs(nami_optim_rate(&o, 0, 110) - 1e-3 / 11) < 1e-18);
    assert_true(fabs(nami_optim_rate(&o, 9, 110) - 1e-3 * 10 / 11) < 1e-18);
    assert_true(nami_optim_rate(&o, 10, 110) == 1e-3);
    assert_true(fabs(nami_optim_rate(&o, 60, 110) - 5.5e-4) < 1e-15); /* half way */
    assert_true(fabs(nami_optim_rate(&o, 35, 110) - (1e-4 + 4.5e-4 * (1 + sqrt(0.5)))) <
                1e-15);
    assert_true(nami_optim_rate(&o, 110, 110) == 1e-4);
    assert_true(nami_optim_rate(&o, 1000, 110) == 1e-4);
    o.rate_steps = 60;
    assert_true(nami_optim_rate(&o, 60, 110) == 1e-4);
    for (int s = 11; s < 60; s++)
        assert_true(nami_optim_rate(&o, s, 110) < nami_optim_rate(&o, s - 1, 110));
    o.rate = NAMI_RATE_CONSTANT;
    assert_true(nami_optim_rate(&o, 5, 110) < 1e-3 &&
                nami_optim_rate(&o, 99, 110) == 1e-3);
    o.warmup = 0;
    assert_true(nami_optim_rate(&o, 0, 110) == 1e-3);
}

/* Behind a warm-up of 10 steps: intervals count from its end, milestones from the start of the run. */
static void test_other_rates(void **state)
{
    (void)state;
    int milestones[] = {10, 15};
    nami_optim_options o = {.lr = 0.8,
                            .min_lr = 0.1,
                            .warmup = 10,
                            .rate = NAMI_RATE_STEP,
                            .rate_factor = 0.5,
                            .rate_every = 4};
    assert_true(fabs(nami_optim_rate(&o, 4, 99) - 0.8 * 5 / 11) < 1e-15);
    assert_true(nami_optim_rate(&o, 10, 99) == 0.8);
    assert_true(nami_optim_rate(&o, 13, 99) == 0.8);
    assert_true(nami_optim_rate(&o, 14, 99) == 0.4);
    assert_true(nami_optim_rate(&o, 18, 99) == 0.2);
    o.rate = NAMI_RATE_EXPONENTIAL;
    assert_true(nami_optim_rate(&o, 10, 99) == 0.8);
    assert_true(fabs(nami_optim_rate(&o, 12, 99) - 0.8 * sqrt(0.5)) < 1e-15);
    assert_true(fabs(nami_optim_rate(&o, 18, 99) - 0.2) < 1e-15);
    o.rate = NAMI_RATE_STEP;
    o.milestones = (nami_ints){2, milestones};
    assert_true(fabs(nami_optim_rate(&o, 9, 99) - 0.8 * 10 / 11) < 1e-15);
    assert_true(nami_optim_rate(&o, 10, 99) == 0.4);
    assert_true(nami_optim_rate(&o, 14, 99) == 0.4);
    assert_true(nami_optim_rate(&o, 15, 99) == 0.2);
    assert_true(nami_optim_rate(&o, 1000, 99) == 0.2);
    o.rate = NAMI_RATE_POLYNOMIAL;
    o.rate_power = 2;
    assert_true(nami_optim_rate(&o, 10, 30) == 0.8);
    assert_true(fabs(nami_optim_rate(&o, 20, 30) - (0.1 + 0.7 / 4)) < 1e-15);
    assert_true(nami_optim_rate(&o, 30, 30) == 0.1 &&
                nami_optim_rate(&o, 40, 30) == 0.1);
}

/* A rate has its own keys and refuses the others'. */
static void test_rate_keys(void **state)
{
    (void)state;
    static const struct {
        const char *rate, *key, *value, *sentence; /* NULL: it is right */
    } cases[] = {
        {"constant", "rate_steps", "200", "has no end"},
        {"step", "rate_steps", "200", "has no end"},
        {"cosine", "rate_steps", "200", NULL},
        {"polynomial", "rate_steps", "200", NULL},
        {"polynomial", "min_lr", "1", "train.min_lr"},
        {"cosine", "rate_every", "5", "step or exponential, not cosine"},
        {"step", "rate_every", "5", NULL},
        {"exponential", "rate_every", "5", NULL},
        {"exponential", "milestones", "200", "not exponential"},
        {"exponential", "momentum", "0", "needs train.rate_every"},
        {"step", "momentum", "0", "needs one of"},
        {"step", "milestones", "100, 200 300", NULL},
        {"step", "milestones", "99 200", "begin at 99"},
        {"step", "milestones", "200 200", "200 follows 200"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        nami_optim_options o = defaults();
        nami_test_set(&nami_optim_option_table, &o, "rate", cases[c].rate);
        nami_test_set(&nami_optim_option_table, &o, cases[c].key, cases[c].value);
        if (cases[c].sentence)
            assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, cases[c].sentence);
        else
            assert_ok(nami_optim_resolve(&o));
        release(&o);
    }
    nami_optim_options o = defaults();
    nami_test_set(&nami_optim_option_table, &o, "rate", "step");
    nami_test_set(&nami_optim_option_table, &o, "rate_every", "5");
    nami_test_set(&nami_optim_option_table, &o, "rate_factor", "0");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "train.rate_factor");
    nami_test_set(&nami_optim_option_table, &o, "rate_factor", "1");
    nami_test_set(&nami_optim_option_table, &o, "milestones", "500");
    assert_fails(nami_optim_resolve(&o), NAMI_EINPUT, "needs one of");
    release(&o);
}

static void test_clip(void **state)
{
    (void)state;
    nami_optim_options o = {.clip = 2};
    assert_true(nami_optim_clip(&o, 0) == 1);
    assert_true(nami_optim_clip(&o, 1.9) == 1);
    assert_true(nami_optim_clip(&o, 8) == 2 / (8 + 1e-6));
    o.clip = 0;
    assert_true(nami_optim_clip(&o, 1e30) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_states),
        cmocka_unit_test(test_optimizer_keys), cmocka_unit_test(test_betas),
        cmocka_unit_test(test_cross_checks),   cmocka_unit_test(test_rate),
        cmocka_unit_test(test_other_rates),    cmocka_unit_test(test_rate_keys),
        cmocka_unit_test(test_clip),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
