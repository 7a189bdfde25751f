/* SPDX-License-Identifier: MIT */
/* test_bert_torch.c - BERT against Hugging Face's: logits with padding, both losses, every gradient.
 *
 * The numbers were made in double by validation/torch/bert.py; shapes, formulas and constants here are its.
 */
#include <math.h>

#include "chain.h"
#include "model/family.h"
#include "numbers.h"

enum { BATCH = 3, TIME = 11, MASKED = 3, VOCABULARY = 37, COUNT = BATCH * TIME };

static void compare(const numbers *n, const char *name, nami_dtype d, const void *ours,
                    int64_t count, double tolerance)
{
    double *copy = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *copy);
    for (int64_t i = 0; i < count; i++)
        copy[i] = d == NAMI_BF16 ? (double)nami_bf16_to_f32(((const uint16_t *)ours)[i])
                                 : chain_get(d, ours, i);
    numbers_compare(n, name, copy, count, tolerance);
    nami_free(copy);
}

static void fill_parameters(chain *c)
{
    for (int p = 0; p < c->model->params; p++)
        for (int64_t e = 0; e < chain_count(c, p); e++) {
            double u = numbers_uniform((uint64_t)p, (uint64_t)e);
            bool one = c->model->param[p].init == NAMI_INIT_ONE;
            chain_set(c->wide, c->param[p], e, (float)(one ? 1 + u / 2 : u));
        }
    chain_pack(c);
}

static void fill_samples(chain *c)
{
    static const int32_t length[BATCH] = {11, 7, 4}, next[BATCH] = {0, 1, -1};
    static const int32_t row[BATCH][MASKED] = {{1, 4, 9}, {0, 5, 6}, {2, 3, 0}};
    int64_t counted[NAMI_MODEL_LOSSES] = {0};
    for (uint64_t b = 0; b < BATCH; b++) {
        int32_t *word = c->token + b * (2 * TIME + 1),
                *target = c->target + b * (2 * MASKED + 1);
        for (uint64_t t = 0; t < TIME; t++) {
            word[t] = (int32_t)(numbers_hash(1000, b * TIME + t) % VOCABULARY);
            word[TIME + t] = (int32_t)t >= length[b] / 2;
        }
        word[2 * TIME] = length[b];
        for (uint64_t k = 0; k < MASKED; k++) {
            target[k] = row[b][k];
            target[MASKED + k] =
                b == 2 && k == 2
                    ? -1
                    : (int32_t)(numbers_hash(1001, b * MASKED + k) % VOCABULARY);
        }
        target[2 * MASKED] = next[b];
    }
    nami_model_counted(&c->sample, c->target, BATCH, counted);
    assert_true(counted[0] == 8 && counted[1] == 2);
    c->scale = 1.0 / 8;
    c->second_scale = 1.0 / 2;
}

static void check_logits(const chain *c, const numbers *n, double tolerance)
{
    nami_graph *g;
    const int32_t side[BATCH] = {11, 7, 4};
    assert_ok(nami_model_graph_logits(c->model, c->backend, c->o.act, BATCH, TIME, &g));
    assert_ok(nami_graph_plan(g, false, false, false));
    const nami_graph_sizes *z = nami_graph_bytes(g);
    const int uses = nami_graph_uses(g);
    void **param = nami_calloc(NAMI_MEM_OTHER, (size_t)uses, sizeof *param);
    for (int u = 0; u < uses; u++)
        param[u] = c->param[nami_graph_use_param(g, u)];
    nami_graph_call call = {
        .input = c->token,
        .side = side,
        .output = nami_alloc(NAMI_MEM_MESSAGE,
                             (size_t)COUNT * VOCABULARY * nami_dtype_size(c->o.act)),
        .transient = nami_alloc(NAMI_MEM_TRANSIENT, z->transient),
        .packed = nami_alloc(NAMI_MEM_PACKED, z->packed),
        .param = param};
    for (int kind = 0; kind < 2; kind++) {
        nami_walk w = {0};
        nami_walk_begin(&w, g, kind ? NAMI_WALK_F : NAMI_WALK_PACK, &call);
        while (nami_walk_next(&w)) {
        }
    }
    compare(n, "logits", c->o.act, call.output, (int64_t)COUNT * VOCABULARY, tolerance);
    nami_free(call.output);
    nami_free(call.transient);
    nami_free(call.packed);
    nami_free(param);
    nami_graph_free(g);
}

static void check_losses(const chain *c, const numbers *n, double tolerance)
{
    double sum[2] = {0}, loss = chain_loss(c);
    for (int b = 0; b < BATCH; b++) {
        sum[0] += c->loss[b] * c->scale;
        sum[1] += c->second[b] * c->second_scale;
    }
    compare(n, "masked", NAMI_F64, &sum[0], 1, tolerance);
    compare(n, "next", NAMI_F64, &sum[1], 1, tolerance);
    compare(n, "loss", NAMI_F64, &loss, 1, tolerance);
}

/* `tolerance` is relative to a tensor's largest number. */
static void check_gradients(const chain *c, const numbers *n, double tolerance)
{
    for (int p = 0; p < c->model->params; p++) {
        int64_t count = chain_count(c, p);
        char *name = nami_strf("gradient/%s", c->model->param[p].name);
        double *g = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *g);
        for (int64_t e = 0; e < count; e++)
            g[e] = chain_grad(c, p, e);
        numbers_compare(n, name, g, count, tolerance);
        nami_free(g);
        nami_free(name);
    }
}

static void check(const char *backend, nami_dtype act, double tolerance)
{
    static const int whole[] = {0, 6}, cut[] = {0, 2, 6};
    nami_model_options o = {.layers = 2,
                            .width = 12,
                            .heads = 3,
                            .mlp_width = 24,
                            .context = 13,
                            .vocabulary = VOCABULARY,
                            .type_vocabulary = 2,
                            .predictions = MASKED,
                            .tied = true};
    numbers n = numbers_read("tests/data/torch-bert.txt");
    nami_model *m;
    chain c;
    assert_ok(nami_model_of(&nami_family_bert, &o, 0, &m));
    for (int stages = 1; stages <= 2; stages++) {
        chain_open(&c, m,
                   &(chain_options){.backend = backend,
                                    .act = act,
                                    .batch = BATCH,
                                    .time = TIME,
                                    .micro = 1,
                                    .stages = stages,
                                    .cut = stages == 1 ? whole : cut});
        fill_parameters(&c);
        fill_samples(&c);
        if (stages == 1)
            check_logits(&c, &n, tolerance);
        chain_forward(&c);
        chain_backward(&c);
        check_losses(&c, &n, tolerance);
        check_gradients(&c, &n, tolerance);
        chain_close(&c);
    }
    nami_model_free(m);
    numbers_free(&n);
}

static void test_double(void **state)
{
    (void)state;
    check("ref", NAMI_F64, 1e-8);
}

static void test_float(void **state)
{
    (void)state;
    check("ref", NAMI_F32, 1e-5);
    check("cpu", NAMI_F32, 1e-5);
}

/* Products of numbers rounded to 8 bits, half a unit of 2^-8 each, through some twenty of them one after the other. */
static void test_bf16(void **state)
{
    (void)state;
    check("ref", NAMI_BF16, 20 * 0x1p-9);
    check("cpu", NAMI_BF16, 20 * 0x1p-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
