/* SPDX-License-Identifier: MIT */
/* test_bert.c - BERT: published sizes; gradient by finite differences; the same bits however it is cut, split, recomputed;
 * padding that nothing depends on. */
#include <math.h>

#include "model/family.h"
#include "nami_test.h"
#include "ways.h"

static nami_model *make(bool tied, double dropout, int64_t width, int64_t vocabulary)
{
    nami_model_options o = {.layers = 2,
                            .width = width,
                            .heads = 3,
                            .context = 13,
                            .vocabulary = vocabulary,
                            .mlp_width = 2 * width,
                            .tied = tied,
                            .type_vocabulary = 2,
                            .predictions = 3};
    nami_model *m;
    assert_ok(nami_model_of(&nami_family_bert, &o, dropout, &m));
    return m;
}

/* Hugging Face's BertForPreTraining of bert-base-uncased and bert-large-uncased; the encoder with pooler of
 * all-MiniLM-L6-v2. */
static void test_counts(void **state)
{
    (void)state;
    static const struct {
        int64_t layers, width, heads, count, encoder;
    } size[] = {{12, 768, 12, 110106428, 109482240},
                {24, 1024, 16, 336226108, 335141888},
                {6, 384, 12, 0, 22713216}};
    for (int i = 0; i < 3; i++) {
        nami_model_options o = {.layers = size[i].layers,
                                .width = size[i].width,
                                .heads = size[i].heads,
                                .context = 512,
                                .vocabulary = 30522,
                                .tied = true,
                                .type_vocabulary = 2};
        nami_model *m;
        assert_ok(nami_model_of(&nami_family_bert, &o, 0, &m));
        int64_t encoder = 0;
        for (int p = 0; p < m->params; p++)
            encoder += strncmp(m->param[p].name, "bert.", 5) == 0
                           ? nami_shape_count(&m->param[p].shape)
                           : 0;
        assert_int_equal(encoder, size[i].encoder);
        if (size[i].count > 0)
            assert_int_equal(nami_model_count(m), size[i].count);
        assert_int_equal(m->blocks, 2 * size[i].layers + 2);
        assert_int_equal(m->options.predictions, 77); /* 15 % of 512 */
        nami_model_free(m);
    }
}

static void test_sample(void **state)
{
    (void)state;
    nami_model *m = make(true, 0, 6, 7);
    const nami_model_sample s = nami_model_sample_of(m, 11);
    int64_t counted[NAMI_MODEL_LOSSES] = {0};
    int32_t token[23], target[7];
    assert_true(s.kind == NAMI_SAMPLE_MASKED && s.words == 23 && s.targets == 7);
    assert_true(s.time == 11 && s.masked == 3 && s.side == 1 && s.losses == 2);
    const int32_t some[2][7] = {{4, 0, 0, 6, 0, -1, 1}, {1, 2, 3, 4, 5, 6, -1}};
    nami_model_counted(&s, some[0], 2, counted);
    assert_true(counted[0] == 5 && counted[1] == 1);
    nami_model_blank(&s, token, target);
    nami_model_counted(&s, target, 1, counted);
    assert_true(counted[0] == 5 && counted[1] == 1 && token[22] == 1);
    for (uint64_t seed = 0; seed < 50; seed++) {
        nami_model_make_up(&s, seed, token, target);
        assert_true(token[22] >= 1 && token[22] <= 11);
        for (int k = 0; k < 3; k++)
            assert_true(target[k] >= 0 && target[k] < token[22] && target[3 + k] < 7);
        for (int k = 0; k < 22; k++)
            assert_true(token[k] >= 0 && token[k] < (k < 11 ? 7 : 2));
        assert_true(target[6] >= -1 && target[6] <= 1);
    }
    nami_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_model *m;
    nami_model_options o = {.layers = 1,
                            .width = 8,
                            .heads = 3,
                            .context = 4,
                            .vocabulary = 5,
                            .type_vocabulary = 2};
    assert_fails(nami_model_of(&nami_family_bert, &o, 0, &m), NAMI_EINPUT,
                 "not a multiple of model.heads = 3");
    o.heads = 2;
    o.predictions = 5;
    assert_fails(nami_model_of(&nami_family_bert, &o, 0, &m), NAMI_EINPUT,
                 "model.predictions = 5 is more than model.context = 4");
    o.predictions = 1;
    o.type_vocabulary = 1;
    assert_fails(nami_model_of(&nami_family_bert, &o, 0, &m), NAMI_EINPUT,
                 "samples have the types 0 and 1");
    o.type_vocabulary = 2;
    assert_ok(nami_model_of(&nami_family_bert, &o, 0, &m));
    assert_fails(nami_model_slices(m, 4, 2), NAMI_EPLAN, "need a causal model");
    nami_model_free(m);
}

static void test_gradient(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(13);
    ways_gradient(make(false, 0, 6, 7), 3, 7, 0, seed);
    ways_gradient(make(true, 0.25, 6, 7), 3, 7, 0, seed + 1);
}

/* ln V + ln 2 at the start. */
static void check_ways(const char *backend, nami_dtype act, double dropout)
{
    ways_check(make(dropout > 0, dropout, 24, 37), backend, act, log(37) + log(2));
}

static void test_ways(void **state)
{
    (void)state;
    check_ways("ref", NAMI_F32, 0.2);
    check_ways("cpu", NAMI_F32, 0.2);
    check_ways("cpu", NAMI_F32, 0);
    check_ways("cpu", NAMI_BF16, 0.2);
}

/* Other tokens and types behind a sample's length: the same bits; before it: others. */
static void test_padding(void **state)
{
    (void)state;
    nami_model *m = make(true, 0.2, 24, 37);
    chain a, b;
    ways_begin(&a, m, "cpu", NAMI_F32, 8);
    chain_forward(&a);
    chain_backward(&a);
    ways_begin(&b, m, "cpu", NAMI_F32, 8);
    for (int i = 0; i < 6; i++) {
        int32_t *word = b.token + 23 * i;
        for (int t = word[22]; t < 11; t++) {
            word[t] = (word[t] + 1) % 37;
            word[11 + t] = 1 - word[11 + t];
        }
    }
    chain_forward(&b);
    chain_backward(&b);
    chain_assert_equal(&a, &b);
    b.token[0] = (b.token[0] + 1) % 37;
    chain_forward(&b);
    assert_true(chain_loss(&a) != chain_loss(&b));
    chain_close(&a);
    chain_close(&b);
    nami_model_free(m);
}

/* Masked positions in another order: the same loss and gradients, to rounding. */
static void test_order(void **state)
{
    (void)state;
    nami_model *m = make(true, 0.2, 24, 37);
    chain a, b;
    ways_begin(&a, m, "ref", NAMI_F64, 8);
    chain_forward(&a);
    chain_backward(&a);
    ways_begin(&b, m, "ref", NAMI_F64, 8);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k += 3) { /* the first becomes the last */
            int32_t *slot = b.target + 7 * i + k, last = slot[2];
            slot[2] = slot[0];
            slot[0] = last;
        }
    assert_true(memcmp(a.target, b.target, 42 * sizeof *a.target) != 0);
    chain_forward(&b);
    chain_backward(&b);
    assert_true(fabs(chain_loss(&a) - chain_loss(&b)) < 1e-12 * chain_loss(&a));
    for (int p = 0; p < m->params; p++)
        for (int64_t e = 0; e < chain_count(&a, p); e++) {
            const double x = chain_grad(&a, p, e), y = chain_grad(&b, p, e);
            assert_true(fabs(x - y) <= 1e-10 * (1e-3 + fabs(x)));
        }
    chain_close(&a);
    chain_close(&b);
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_sample),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_ways),     cmocka_unit_test(test_padding),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
