/* SPDX-License-Identifier: MIT */
/* ways.c - steps of transformers of two layers, whole and cut. */
#include "ways.h"

#include <math.h>

#include "nami_test.h"

void ways_gradient(nami_model *m, int64_t batch, int64_t time, int64_t step,
                   uint64_t seed)
{
    const int cut[] = {0, m->blocks};
    chain c;
    chain_open(&c, m,
               &(chain_options){.backend = "ref",
                                .act = NAMI_F64,
                                .batch = batch,
                                .time = time,
                                .micro = 1,
                                .stages = 1,
                                .cut = cut,
                                .seed = seed});
    chain_spread(&c);
    chain_tokens(&c, seed);
    c.step = step;
    chain_forward(&c);
    chain_backward(&c);
    chain_assert_differences(&c, 1);
    chain_close(&c);
    nami_model_free(m);
}

void ways_begin(chain *c, const nami_model *m, const char *backend, nami_dtype act,
                int way)
{
    static const int whole[] = {0, 6}, everywhere[] = {0, 1, 2, 3, 4, 5, 6},
                     some[] = {0, 2, 5, 6};
    static const struct {
        const int *cut;
        int stages;
    } cuts[] = {{whole, 1}, {everywhere, 6}, {some, 3}};
    assert_int_equal(m->blocks, 6);
    chain_open(c, m,
               &(chain_options){.backend = backend,
                                .act = act,
                                .batch = 3,
                                .time = 11,
                                .micro = 2,
                                .stages = cuts[way / 4].stages,
                                .cut = cuts[way / 4].cut,
                                .split = way & 1,
                                .recompute = way & 2,
                                .seed = 42});
    chain_tokens(c, 7);
    c->step = 5;
    c->first_sample = 60;
}

void ways_run(chain *c, const nami_model *m, const char *backend, nami_dtype act,
              int way)
{
    ways_begin(c, m, backend, act, way);
    chain_forward(c);
    chain_backward(c);
}

static void check_sane(const chain *c, double loss)
{
    double norm = 0;
    for (int p = 0; p < c->model->params; p++)
        for (int64_t e = 0; e < chain_count(c, p); e++)
            norm += pow(chain_grad(c, p, e), 2);
    assert_true(fabs(chain_loss(c) - loss) < 0.1 * loss);
    assert_true(norm > 1e-4 && norm < 1e4);
}

void ways_check(nami_model *m, const char *backend, nami_dtype act, double loss)
{
    chain first, other;
    ways_run(&first, m, backend, act, 0);
    check_sane(&first, loss);
    for (int way = 1; way < WAYS; way++) {
        ways_run(&other, m, backend, act, way);
        chain_assert_equal(&first, &other);
        chain_close(&other);
    }
    chain_close(&first);
    nami_model_free(m);
}
