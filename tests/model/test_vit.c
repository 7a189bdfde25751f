/* SPDX-License-Identifier: MIT */
/* test_vit.c - vision transformers: published sizes and work, refusals, keys, the gradient by finite differences. */
#include <math.h>
#include <string.h>

#include "family.h"
#include "nami_test.h"
#include "ways.h"

/* What a deck gives: all keys as they are, but for these. */
static nami_model_options vit(int64_t size, int64_t patch, int64_t layers,
                              int64_t width, int64_t heads)
{
    static char as_ever[] = "100ms";
    nami_model_options o = {0};
    assert_ok(nami_option_defaults(&nami_model_option_table, &o));
    nami_option_release(&nami_model_option_table, &o);
    o.synthetic_forward = o.synthetic_input = o.synthetic_weight = as_ever;
    o.family = family_named("vit");
    o.image_height = o.image_width = size;
    o.image_channels = 3;
    o.classes = 1000;
    o.patch = patch;
    o.layers = layers;
    o.width = width;
    o.heads = heads;
    return o;
}

/* Parameters and multiply-adds of torchvision's table; of the two small ones as of DeiT (Touvron et al., 2021). */
static void test_published(void **state)
{
    (void)state;
    static const struct {
        int64_t patch, layers, width, heads, count;
        double giga;
    } size[] = {
        {16, 12, 768, 12, 86567656, 17.56},   {32, 12, 768, 12, 88224232, 4.41},
        {16, 24, 1024, 16, 304326632, 61.55}, {32, 24, 1024, 16, 306535400, 15.38},
        {16, 12, 192, 3, 5717416, 1.25},      {16, 12, 384, 6, 22050664, 4.6}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        const nami_model_options o =
            vit(224, size[i].patch, size[i].layers, size[i].width, size[i].heads);
        nami_model *m;
        double work = 0;
        assert_ok(nami_model_new(&o, 0, &m));
        assert_int_equal(nami_model_count(m), size[i].count);
        assert_int_equal(m->blocks, 2 * size[i].layers + 2);
        for (int b = 0; b < m->blocks; b++)
            work += nami_model_block_flops(m, b, 1) / 2e9;
        if (!(fabs(work - size[i].giga) < 0.01 * size[i].giga))
            fail_msg("%.3f billion multiply-adds, published are %.2f", work,
                     size[i].giga);
        nami_model_free(m);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    nami_model *m;
    char name[32];
    nami_model_options o = vit(224, 16, 12, 768, 12);
    assert_ok(nami_model_new(&o, 0, &m));
    const nami_model_sample s = nami_model_sample_of(m, 1);
    assert_true(s.kind == NAMI_SAMPLE_IMAGE && s.words == 224 * 224 * 3);
    assert_int_equal(nami_model_boundary(m, 1, 1), 197 * 768);
    assert_int_equal(nami_model_boundary(m, 25, 1), 197 * 768);
    assert_string_equal(nami_model_block_name(m, 0, name), "embedding");
    assert_string_equal(nami_model_block_name(m, 24, name), "11.mlp");
    assert_string_equal(nami_model_block_name(m, 25, name), "head");
    assert_fails(nami_model_slices(m, 1, 2), NAMI_EPLAN, "a causal model");
    nami_model_free(m);
    o.image_height = 32; /* no square */
    assert_ok(nami_model_new(&o, 0, &m));
    assert_int_equal(nami_model_boundary(m, 1, 1), (2 * 14 + 1) * 768);
    nami_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    nami_model *m;
    nami_model_options o = vit(30, 16, 2, 12, 3);
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT,
                 "model.image_height = 30 is not a multiple of model.patch = 16");
    o = vit(32, 16, 2, 12, 5);
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT,
                 "model.width = 12 is not a multiple of model.heads = 5");
    o = vit(4096, 1, 2, 768, 12);
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "16777217 tokens");
    o = vit(32, 16, 2, 12, 3);
    o.mlp_width = 1 << 23;
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "model.mlp_width = 8388608");
    o = vit(0, 16, 2, 12, 3);
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, "model.image_height is 0");
}

/* Keys that it reads, and those that only others do. */
static void test_keys(void **state)
{
    (void)state;
    nami_model_options o = vit(28, 7, 3, 24, 4);
    o.mlp_width = 50;
    assert_ok(nami_model_check_keys(&o));
    o.context = 10;
    assert_fails(nami_model_check_keys(&o), NAMI_EINPUT, "model.context is set");
    o = vit(28, 7, 3, 24, 4);
    o.stem = 1;
    assert_fails(nami_model_check_keys(&o), NAMI_EINPUT,
                 "model.stem is set, but family vit does not read it");
    for (int f = 0; f < 2; f++) { /* gpt and an image model without them */
        o = vit(28, 7, 6, 384, 6);
        if (f == 0)
            o.image_height = o.image_width = o.image_channels = o.classes = 0;
        o.family = family_named(f ? "lenet" : "gpt");
        assert_fails(nami_model_check_keys(&o), NAMI_EINPUT, "model.patch is set");
        o.patch = 16;
        o.mlp_width = f ? 10 : 0;
        if (f)
            assert_fails(nami_model_check_keys(&o), NAMI_EINPUT, "mlp_width is set");
        else
            assert_ok(nami_model_check_keys(&o));
    }
}

static void check_gradient(double dropout, uint64_t seed)
{
    nami_model_options o = vit(8, 4, 1, 6, 2);
    nami_model *m;
    o.image_channels = 2;
    o.image_height = 12;
    o.classes = 5;
    o.mlp_width = 7;
    o.label_smoothing = dropout;
    assert_ok(nami_model_new(&o, dropout, &m));
    ways_gradient(m, 2, 1, 3, seed);
}

static void test_gradient(void **state)
{
    (void)state;
    const uint64_t seed = nami_test_seed(11);
    check_gradient(0, seed);
    check_gradient(0.25, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_keys),
        cmocka_unit_test(test_gradient),
    };
    return cmocka_run_group_tests_name("vit", tests, NULL, nami_test_balance);
}
