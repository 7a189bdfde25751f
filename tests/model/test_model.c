/* SPDX-License-Identifier: MIT */
/* test_model.c - the catalogue of the GPT family: counts, names, initial values, options. */
#include <math.h>

#include "base/rng.h"
#include "family.h"
#include "nami_test.h"

static const nami_model_options gpt2 = {.layers = 12,
                                        .width = 768,
                                        .heads = 12,
                                        .context = 1024,
                                        .vocabulary = 50257,
                                        .tied = true,
                                        .bias = true};

static nami_model *make(nami_model_options o, double dropout)
{
    nami_model *m;
    assert_ok(nami_model_new(&o, dropout, &m));
    return m;
}

/* Published sizes of GPT-2 (OpenAI's four checkpoints, tied, with biases). */
static void test_counts(void **state)
{
    (void)state;
    static const struct {
        int64_t layers, width, heads, count;
    } size[] = {{12, 768, 12, 124439808},
                {24, 1024, 16, 354823168},
                {36, 1280, 20, 774030080},
                {48, 1600, 25, 1557611200}};
    for (int i = 0; i < 4; i++) {
        nami_model_options o = gpt2;
        o.layers = size[i].layers;
        o.width = size[i].width;
        o.heads = size[i].heads;
        nami_model *m = make(o, 0);
        assert_int_equal(nami_model_count(m), size[i].count);
        assert_int_equal(m->blocks, 2 * size[i].layers + 2);
        nami_model_free(m);
    }
}

static nami_model_options llama(int64_t layers, int64_t width, int64_t heads,
                                int64_t kv_heads, int64_t mlp_width)
{
    nami_model_options o = {0};
    assert_ok(nami_option_defaults(&nami_model_option_table, &o));
    nami_option_release(&nami_model_option_table, &o);
    o.family = family_named("llama");
    o.layers = layers;
    o.width = width;
    o.heads = heads;
    o.kv_heads = kv_heads;
    o.mlp_width = mlp_width;
    o.vocabulary = 32000;
    o.tied = false;
    return o;
}

/* Published sizes of LLaMA (which Llama 2 has too), TinyLlama and Llama 3. */
static void test_llama_counts(void **state)
{
    (void)state;
    const struct {
        nami_model_options o;
        int64_t vocabulary, count;
    } size[] = {{llama(32, 4096, 32, 0, 0), 32000, 6738415616},
                {llama(40, 5120, 40, 0, 0), 32000, 13015864320},
                {llama(22, 2048, 32, 4, 5632), 32000, 1100048384},
                {llama(32, 4096, 32, 8, 14336), 128256, 8030261248}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        nami_model_options o = size[i].o;
        o.vocabulary = size[i].vocabulary;
        nami_model *m = make(o, 0);
        assert_int_equal(nami_model_count(m), size[i].count);
        assert_int_equal(m->blocks, 2 * o.layers + 2);
        nami_model_free(m);
        o.tied = true;
        m = make(o, 0);
        assert_int_equal(nami_model_count(m),
                         size[i].count - size[i].vocabulary * o.width);
        nami_model_free(m);
    }
}

/* FLOPs are two a weight and token, but for the embedding, and those of attention. */
static void test_llama_flops(void **state)
{
    (void)state;
    enum { TIME = 100 };
    nami_model *m = make(llama(3, 96, 6, 2, 160), 0);
    double sum = 0, weights = 0;
    for (int b = 1; b < m->blocks; b++)
        sum += nami_model_block_flops(m, b, TIME);
    for (int p = 1; p < m->params; p++)
        if (m->param[p].shape.rank > 1)
            weights += (double)nami_shape_count(&m->param[p].shape);
    assert_true(sum == 2 * weights * TIME + 3 * 4.0 * TIME * TIME * 96);
    nami_model_free(m);
}

static void test_llama_refusals(void **state)
{
    (void)state;
    nami_model *m;
    nami_model_options o = llama(2, 12, 4, 0, 0);
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT,
                 "model.width = 12 over model.heads = 4 is odd");
    o = llama(2, 24, 6, 4, 0);
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT,
                 "model.heads = 6 is not a multiple of model.kv_heads = 4");
    o = llama(2, 24, 6, 3, 0);
    o.rope_theta = 0;
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "model.rope_theta is 0");
    o.rope_theta = 1e4;
    o.norm_eps = 0;
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "model.norm_eps is 0");
}

/* Keys that do nothing for a family are refused. */
static void test_keys(void **state)
{
    (void)state;
    nami_model_options own = {0};
    assert_ok(nami_option_defaults(&nami_model_option_table, &own));
    nami_model_options o = own, gpt = own;
    o.family = llama(2, 24, 6, 3, 0).family;
    o.kv_heads = 3;
    o.mlp_width = 100;
    o.norm_eps = 1e-6;
    o.rope_theta = 5e5;
    assert_ok(nami_model_check_keys(&o));
    assert_fails(nami_model_check_bias(&o), NAMI_EINPUT,
                 "model.bias = yes, but family llama has no biases");
    nami_model_settle(&o);
    assert_false(o.bias);
    assert_ok(nami_model_check_bias(&o));
    assert_ok(nami_model_check_keys(&o));
    static const char *const key[] = {"kv_heads", "mlp_width", "rope_theta",
                                      "norm_eps"};
    for (int i = 0; i < 4; i++) {
        assert_ok(nami_model_check_keys(&gpt));
        gpt.kv_heads = i == 0 ? 3 : 0;
        gpt.mlp_width = i == 1 ? 100 : 0;
        gpt.rope_theta = i == 2 ? 5e5 : 10000;
        gpt.norm_eps = i == 3 ? 1e-6 : 1e-5;
        assert_fails(nami_model_check_keys(&gpt), NAMI_EINPUT, key[i]);
        gpt = own;
    }
    nami_option_release(&nami_model_option_table, &own);
}

/* A model by what of it depends on sizes: names and shapes of its parameters, its blocks. */
static uint64_t print_of(const nami_model_options *o)
{
    nami_model *m;
    uint64_t sum = 0;
    if (nami_model_new(o, 0, &m) != NAMI_OK) {
        nami_fail_clear();
        return 0;
    }
    for (int p = 0; p < m->params; p++) {
        sum = nami_mix(sum, nami_hash_name(m->param[p].name));
        for (int d = 0; d < m->param[p].shape.rank; d++)
            sum = nami_mix(sum, (uint64_t)m->param[p].shape.dim[d]);
    }
    sum = nami_mix(sum, (uint64_t)m->blocks);
    nami_model_free(m);
    return sum;
}

static void set_key(nami_model_options *o, const char *key, const char *value)
{
    const nami_option *row = nami_model_option_table.row;
    while (strcmp(row->key, key) != 0)
        row++;
    assert_ok(nami_option_set(row, o, value, "test"));
}

/* No family refuses a key that makes another model of it. */
static void test_read_keys(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
    } set[] = {{"layers", "3"},          {"width", "48"},     {"heads", "3"},
               {"context", "32"},        {"tied", "no"},      {"bias", "no"},
               {"kv_heads", "2"},        {"mlp_width", "40"}, {"patch", "8"},
               {"type_vocabulary", "3"}, {"stem", "small"},   {"batch_norm", "no"}};
    int checked = 0;
    for (int f = 0; nami_family_names[f]; f++)
        for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
            nami_model_options o = {0};
            assert_ok(nami_option_defaults(&nami_model_option_table, &o));
            o.family = f;
            if (nami_families[f]->images) {
                o.image_height = o.image_width = 96;
                o.image_channels = 3;
                o.classes = 10;
            } else {
                o.vocabulary = 101;
            }
            if (strcmp(nami_family_names[f], "chain") == 0)
                set_key(&o, "chain",
                        "conv 4 3, relu | global, flatten, linear classes");
            const uint64_t before = print_of(&o);
            assert_ok(nami_model_check_keys(&o));
            set_key(&o, set[k].key, set[k].value);
            const uint64_t after = print_of(&o);
            if (before && after && before != after) {
                assert_ok(nami_model_check_keys(&o));
                checked++;
            }
            nami_option_release(&nami_model_option_table, &o);
        }
    assert_true(checked >= 25);
}

static void test_variants(void **state)
{
    (void)state;
    nami_model_options o = gpt2;
    o.tied = false;
    nami_model *m = make(o, 0);
    assert_int_equal(nami_model_count(m), 124439808 + 50257LL * 768);
    assert_string_equal(m->param[m->params - 1].name, "lm_head.weight");
    assert_int_equal(m->param[0].uses, 1);
    nami_model_free(m);
    o.tied = true;
    o.bias = false; /* nanoGPT: 12 layers x (2+3+1+4+1) C biases and C of ln_f less */
    m = make(o, 0);
    assert_int_equal(nami_model_count(m), 124439808 - 12 * 11 * 768 - 768);
    assert_int_equal(m->param[0].uses, 2);
    nami_model_free(m);
}

static void test_catalogue(void **state)
{
    (void)state;
    nami_model *m = make(gpt2, 0.1);
    char buf[32];
    assert_string_equal(m->param[0].name, "transformer.wte.weight");
    assert_string_equal(m->param[1].name, "transformer.wpe.weight");
    int i = nami_model_find(m, "transformer.h.7.attn.c_attn.weight");
    assert_int_equal(m->param[i].shape.dim[0], 3 * 768);
    assert_int_equal(m->param[i].shape.dim[1], 768);
    assert_int_equal(m->param[i].block, 15);
    assert_true(m->param[i].decay && fabs(m->param[i].deviation - 0.02) < 1e-15);
    i = nami_model_find(m, "transformer.h.7.mlp.c_proj.weight");
    assert_true(fabs(m->param[i].deviation - 0.02 / sqrt(24)) < 1e-15);
    assert_int_equal(m->param[i].block, 16);
    i = nami_model_find(m, "transformer.ln_f.weight");
    assert_true(!m->param[i].decay && m->param[i].init == NAMI_INIT_ONE);
    assert_int_equal(m->param[i].block, 25);
    assert_string_equal(nami_model_block_name(m, 0, buf), "embedding");
    assert_string_equal(nami_model_block_name(m, 1, buf), "0.attention");
    assert_string_equal(nami_model_block_name(m, 24, buf), "11.mlp");
    assert_string_equal(nami_model_block_name(m, 25, buf), "head");
    for (int p = 1; p < m->params; p++)
        assert_true(m->param[p].block >= m->param[p - 1].block);
    nami_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_model *m;
    nami_model_options o = gpt2;
    o.heads = 7;
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "model.heads = 7");
    o = gpt2;
    o.vocabulary = 0;
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "model.vocabulary");
    assert_fails(nami_model_new(&gpt2, 1, &m), NAMI_EINPUT, "dropout");
    assert_fails(nami_model_new(&gpt2, NAN, &m), NAMI_EINPUT, "dropout");
    assert_null(m);
}

static void test_options(void **state)
{
    (void)state;
    nami_model_options o = {0};
    assert_ok(nami_option_defaults(&nami_model_option_table, &o));
    assert_int_equal(o.layers, 6);
    assert_true(o.tied && o.bias && o.vocabulary == 0);
    for (int i = 0; i < nami_model_option_table.rows; i++)
        if (strcmp(nami_model_option_table.row[i].key, "family") == 0)
            assert_int_equal(
                nami_option_set(&nami_model_option_table.row[i], &o, "gtp", "x"),
                NAMI_EINPUT);
    nami_fail_clear();
    nami_option_release(&nami_model_option_table, &o);
}

/* Initial values depend on seed, name and element alone, and have the asked-for moments. */
static void test_init(void **state)
{
    (void)state;
    enum { N = 20000 };
    static float whole[N], part[N], other[N];
    nami_model *m = make(gpt2, 0);
    int i = nami_model_find(m, "transformer.h.3.attn.c_proj.weight");
    nami_model_init(m, i, 5, 0, N, whole);
    nami_model_init(m, i, 5, 777, 1000, part);
    assert_memory_equal(part, whole + 777, 1000 * sizeof(float));
    nami_model_init(m, i, 6, 0, N, other);
    assert_memory_not_equal(other, whole, sizeof whole);
    double sum = 0, squares = 0;
    for (int e = 0; e < N; e++) {
        sum += whole[e];
        squares += (double)whole[e] * whole[e];
    }
    double dev = 0.02 / sqrt(24);
    assert_true(fabs(sum / N) < 5 * dev / sqrt(N));
    assert_true(fabs(sqrt(squares / N) / dev - 1) < 5 / sqrt(2.0 * N));
    nami_model_init(m, nami_model_find(m, "transformer.ln_f.weight"), 5, 3, 10, part);
    assert_true(part[0] == 1 && part[9] == 1);
    nami_model_init(m, nami_model_find(m, "transformer.ln_f.bias"), 5, 3, 10, part);
    assert_true(part[0] == 0 && part[9] == 0);
    nami_model_free(m);
}

/* 6 N tokens and the attention term of GPT-2 124M, B=4, T=256: 788 GFLOP for forward and backward. */
static void test_flops(void **state)
{
    (void)state;
    nami_model *m = make(gpt2, 0);
    double sum = 0;
    for (int b = 0; b < m->blocks; b++)
        sum += nami_model_block_flops(m, b, 256);
    assert_true(fabs(3 * 4 * sum / 788e9 - 1) < 0.005);
    assert_int_equal(nami_model_boundary(m, 1, 256), 256 * 768);
    nami_model_free(m);
}

static void test_template(void **state)
{
    (void)state;
    nami_model_options o = {
        .layers = 3, .width = 5, .heads = 1, .context = 7, .vocabulary = 11};
    nami_model *m;
    char buf[32];
    assert_ok(nami_model_of(&nami_family_template, &o, 0, &m));
    assert_int_equal(nami_model_count(m), 11 * 5 + 7 * 5 + 3 * 30 + 11 * 5);
    assert_int_equal(m->blocks, 5);
    assert_string_equal(nami_model_block_name(m, 2, buf), "layer 1");
    nami_model_free(m);
    o.width = 0;
    assert_fails(nami_model_of(&nami_family_template, &o, 0, &m), NAMI_EINPUT,
                 "model.width");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),         cmocka_unit_test(test_variants),
        cmocka_unit_test(test_catalogue),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_options),        cmocka_unit_test(test_init),
        cmocka_unit_test(test_flops),          cmocka_unit_test(test_template),
        cmocka_unit_test(test_llama_counts),   cmocka_unit_test(test_llama_flops),
        cmocka_unit_test(test_llama_refusals), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_read_keys),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
