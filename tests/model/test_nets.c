/* SPDX-License-Identifier: MIT */
/* test_nets.c - image families: published sizes, chains from a deck, the same bits however they are cut, cpu and ref. */
#include <math.h>

#include "family.h"
#include "chain.h"
#include "model/net.h"
#include "nami_test.h"

static uint64_t seed;

/* Options of `name` for images of `size` pixels. */
static nami_model_options options_of(const char *name, int64_t size, int64_t channels,
                                     int64_t classes)
{
    return (nami_model_options){.family = family_named(name),
                                .layers = 2,
                                .width = 512,
                                .image_height = size,
                                .image_width = size,
                                .image_channels = channels,
                                .classes = classes};
}

/* What the papers' authors or torchvision give as the number of parameters. */
static const struct {
    const char *name;
    int64_t size, channels, classes;
    int stem;
    bool batch_norm;
    int64_t count;
    int blocks;
} published[] = {
    {"mlp", 28, 1, 10, 0, false, 669706, 3}, /* PyTorch's quickstart */
    {"lenet", 28, 1, 10, 0, false, 61706, 5},
    {"alexnet", 224, 3, 1000, 0, false, 61100840, 8},
    {"vgg11", 224, 3, 1000, 0, false, 132863336, 11},
    {"vgg11", 224, 3, 1000, 0, true, 132868840, 11},
    {"vgg13", 224, 3, 1000, 0, false, 133047848, 13},
    {"vgg13", 224, 3, 1000, 0, true, 133053736, 13},
    {"vgg16", 224, 3, 1000, 0, false, 138357544, 16},
    {"vgg16", 224, 3, 1000, 0, true, 138365992, 16},
    {"vgg19", 224, 3, 1000, 0, false, 143667240, 19},
    {"vgg19", 224, 3, 1000, 0, true, 143678248, 19},
    {"vgg16", 32, 3, 10, 1, true, 14728266, 14}, /* the CIFAR variant in wide use */
    {"resnet20", 32, 3, 10, 0, false, 272474, 11},
    {"resnet32", 32, 3, 10, 0, false, 466906, 17}, /* 464154 without projections */
    {"resnet44", 32, 3, 10, 0, false, 661338, 23},
    {"resnet56", 32, 3, 10, 0, false, 855770, 29},
    {"resnet110", 32, 3, 10, 0, false, 1730714, 56},
    {"resnet18", 224, 3, 1000, 0, false, 11689512, 10},
    {"resnet18", 32, 3, 10, 1, false, 11173962, 10}, /* the CIFAR variant in wide use */
    {"resnet34", 224, 3, 1000, 0, false, 21797672, 18},
    {"resnet50", 224, 3, 1000, 0, false, 25557032, 18},
    {"resnet101", 224, 3, 1000, 0, false, 44549160, 35},
    {"resnet152", 224, 3, 1000, 0, false, 60192808, 52},
    {"resnext50", 224, 3, 1000, 0, false, 25028904, 18},
    {"densenet121", 224, 3, 1000, 0, false, 7978856, 63},
    {"efficientnetv2", 384, 3, 1000, 0, false, 21458488, 42},
    {"inception", 299, 3, 1000, 0, false, 23834568, 15},
    {"mobilenetv2", 224, 3, 1000, 0, false, 3504872, 19},
    {"squeezenet", 224, 3, 1000, 0, false, 1235496, 10},
};

static void test_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        nami_model *m;
        nami_model_options o = options_of(published[i].name, published[i].size,
                                          published[i].channels, published[i].classes);
        o.stem = published[i].stem;
        o.batch_norm = published[i].batch_norm;
        assert_ok(nami_model_new(&o, 0, &m));
        if (nami_model_count(m) != published[i].count)
            fail_msg("%s has %lld parameters, published are %lld", published[i].name,
                     (long long)nami_model_count(m), (long long)published[i].count);
        assert_int_equal(m->blocks, published[i].blocks);
        nami_model_free(m);
    }
}

/* Multiplications and additions of one image, as papers and torchvision count them (two here for each). */
static void test_work(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t size;
        double giga; /* multiply-adds */
    } work[] = {{"resnet18", 224, 1.814},      {"resnet50", 224, 4.089},
                {"resnet152", 224, 11.51},     {"vgg16", 224, 15.47},
                {"alexnet", 224, 0.714},       {"mobilenetv2", 224, 0.3008},
                {"squeezenet", 224, 0.349},    {"densenet121", 224, 2.834},
                {"resnext50", 224, 4.230},     {"inception", 299, 5.713},
                {"efficientnetv2", 384, 8.366}};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
        nami_model *m;
        const nami_model_options o = options_of(work[i].name, work[i].size, 3, 1000);
        double sum = 0;
        assert_ok(nami_model_new(&o, 0, &m));
        for (int b = 0; b < m->blocks; b++)
            sum += nami_model_block_flops(m, b, 1) / 2e9;
        if (fabs(sum - work[i].giga) > 0.005 * work[i].giga)
            fail_msg("%s takes %g billion multiply-adds, published are %g",
                     work[i].name, sum, work[i].giga);
        nami_model_free(m);
    }
}

static void test_sample(void **state)
{
    (void)state;
    nami_model *m;
    const nami_model_options o = options_of("resnet18", 224, 3, 1000);
    assert_true(nami_model_takes_images(&o));
    assert_ok(nami_model_new(&o, 0, &m));
    const nami_model_sample s = nami_model_sample_of(m, 1);
    assert_true(s.kind == NAMI_SAMPLE_IMAGE && s.words == 224 * 224 * 3 &&
                s.targets == 1);
    assert_int_equal(s.classes, 1000);
    assert_int_equal(nami_model_boundary(m, 1, 1), 56 * 56 * 64);
    assert_int_equal(nami_model_boundary(m, 9, 1), 7 * 7 * 512);
    assert_true(m->param[nami_model_find(m, "bn1.running_var")].statistic);
    assert_false(m->param[nami_model_find(m, "bn1.weight")].statistic);
    nami_model_free(m);
}

static void expect_refusal(const char *name, const char *layers, int64_t size,
                           int64_t classes, const char *words)
{
    nami_model *m;
    nami_model_options o = options_of(name, size, 3, classes);
    char text[256] = "";
    if (layers)
        strcpy(text, layers);
    o.chain = text;
    assert_fails(nami_model_new(&o, 0, &m), NAMI_EINPUT, words);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal("resnet18", NULL, 0, 10, "model.image_height is 0");
    expect_refusal("resnet18", NULL, 32, 0, "model.classes is 0");
    expect_refusal("alexnet", NULL, 32, 10, "too small for this model.family");
    expect_refusal("vgg16", NULL, 100, 10, "model.stem = small");
    expect_refusal("chain", "", 8, 10, "a layer is missing");
    expect_refusal("chain", "flatten,", 8, 10, "a layer is missing");
    expect_refusal("chain", "flatten, linear 10, |", 8, 10, "a layer is missing");
    expect_refusal("chain", "flatten, curl 10", 8, 10,
                   "layer 1 ('curl'): is not a layer");
    expect_refusal("chain", "linear 10", 8, 10, "comes before flatten");
    expect_refusal("chain", "flatten, conv 4 3", 8, 10, "comes behind flatten");
    expect_refusal("chain", "conv 4", 8, 10, "a number from 1");
    expect_refusal("chain", "conv 4 -3", 8, 10, "a number from 1");
    expect_refusal("chain", "conv 4 3 step 2", 8, 10, "not known");
    expect_refusal("chain", "conv 4 3 stride", 8, 10, "the value of the last word");
    expect_refusal("chain", "conv 4 3 bias maybe", 8, 10, "yes or no");
    expect_refusal("chain", "conv 4 9", 8, 10, "too small");
    expect_refusal("chain", "conv 4 3 groups 2", 8, 10, "in 2 groups");
    expect_refusal("chain", "max 2 pad 2", 8, 10, "half the kernel");
    expect_refusal("chain", "flatten, linear 12", 8, 10, "there are 10 classes");
    expect_refusal("chain", "conv 4 3", 8, 10, "144 numbers of a sample");
    expect_refusal("chain", "a b c d e f g h i j k l m n", 8, 10, "'a'");
}

static nami_model *chain_model(const char *layers)
{
    nami_model *m;
    nami_model_options o = options_of("chain", 8, 3, 5);
    char text[256];
    strcpy(text, layers);
    o.chain = text;
    assert_ok(nami_model_new(&o, 0, &m));
    memset(text, 'x', sizeof text); /* nothing of it is kept */
    return m;
}

static void test_chain(void **state)
{
    (void)state;
    char buf[32];
    nami_model *m = chain_model("conv 6 3 pad 1 bias no, norm, relu, max 2, "
                                "conv 12 3 groups 3 stride 2, silu, global, flatten, "
                                "dropout, linear classes");
    assert_int_equal(m->blocks, 3);
    assert_string_equal(nami_model_block_name(m, 1, buf), "layer 4");
    assert_int_equal(nami_model_count(m), 6 * 3 * 9 + 12 + 12 * 2 * 9 + 12 + 65);
    assert_int_equal(nami_model_boundary(m, 1, 1), 4 * 4 * 6);
    assert_int_equal(m->param[nami_model_find(m, "4.weight")].shape.dim[1], 2);
    nami_model_free(m);
    m = chain_model("conv 6 3 | sigmoid, conv 6 3, relu6|mean 2 pad 1|flatten,linear "
                    "classes");
    assert_int_equal(m->blocks, 4);
    assert_int_equal(nami_model_boundary(m, 3, 1), 3 * 3 * 6);
    nami_model_free(m);
}

/* A random start, then all micro-batches forward and back. */
static void run(chain *c, const nami_model *m, chain_options o, int stages)
{
    int cut[CHAIN_STAGES + 1];
    assert_ok(nami_model_cuts(m, 1, stages, cut));
    o.stages = stages;
    o.cut = cut;
    o.time = 1;
    o.seed = seed;
    chain_open(c, m, &o);
    chain_tokens(c, seed);
    chain_forward(c);
    chain_backward(c);
}

static nami_model *small_model(int which)
{
    static const char *const name[] = {"lenet", "resnet20", "mobilenetv2", "squeezenet",
                                       "vit"};
    nami_model *m;
    nami_model_options o = options_of(name[which], which == 0 ? 28 : 16, 1, 4);
    o.stem = 1;
    if (which == 4) {
        o.width = 12;
        o.heads = 3;
        o.mlp_width = 20;
        o.patch = 4;
    }
    assert_ok(nami_model_new(&o, 0.25, &m));
    return m;
}

/* Cut, split and recomputed: nothing changes a bit, statistics included. */
static void test_bits(void **state)
{
    (void)state;
    static const chain_options ways[] = {
        {.backend = "cpu", .act = NAMI_F32, .batch = 3, .micro = 2},
        {.backend = "cpu", .act = NAMI_F32, .batch = 3, .micro = 2, .split = true},
        {.backend = "cpu", .act = NAMI_F32, .batch = 3, .micro = 2, .recompute = true},
        {.backend = "cpu", .act = NAMI_BF16, .batch = 3, .micro = 1},
        {.backend = "cpu", .act = NAMI_BF16, .batch = 3, .micro = 1, .split = true}};
    for (int which = 0; which < 5; which++) {
        nami_model *m = small_model(which);
        for (int w = 0; w < 5; w += w < 3 ? 3 : 2) {
            chain whole, cut;
            run(&whole, m, ways[w], 1);
            for (int v = w; v < (w < 3 ? 3 : 5); v++) {
                run(&cut, m, ways[v], v % 2 ? 3 : 5);
                chain_assert_equal(&whole, &cut);
                chain_close(&cut);
            }
            chain_close(&whole);
        }
        nami_model_free(m);
    }
}

/* A block of dropout alone is a stage like any other, also where nothing is dropped. */
static void test_handed_on(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) {
        const chain_options o = {.backend = "cpu",
                                 .act = way & 1 ? NAMI_BF16 : NAMI_F32,
                                 .batch = 3,
                                 .micro = 2,
                                 .split = way & 2,
                                 .recompute = way & 4};
        nami_model *with =
            chain_model("dropout | conv 6 3 | dropout | dropout | flatten, linear 5 | "
                        "dropout | linear classes");
        chain whole, cut;
        run(&whole, with, o, 1);
        run(&cut, with, o, with->blocks);
        chain_assert_equal(&whole, &cut);
        chain_close(&whole);
        chain_close(&cut);
        nami_model_free(with);
    }
}

/* Gradients of the cpu backend in f32 against those of the reference in double. */
static void test_reference(void **state)
{
    (void)state;
    nami_model *m =
        chain_model("conv 6 3 pad 1 bias no, norm, relu, max 3 stride 2 pad 1 |"
                    "conv 12 3 groups 3, silu, mean 2, flatten, linear classes");
    chain ref, cpu;
    run(&ref, m,
        (chain_options){.backend = "ref", .act = NAMI_F64, .batch = 5, .micro = 2}, 2);
    run(&cpu, m,
        (chain_options){.backend = "cpu", .act = NAMI_F32, .batch = 5, .micro = 2}, 1);
    assert_true(fabs(chain_loss(&ref) - chain_loss(&cpu)) < 1e-5);
    for (int p = 0; p < m->params; p++) {
        double most = 0, worst = 0;
        for (int64_t e = 0; e < chain_count(&ref, p); e++) {
            const double want = chain_grad(&ref, p, e), got = chain_grad(&cpu, p, e);
            most = fmax(most, fabs(want));
            worst = fmax(worst, fabs(got - want));
        }
        if (!(worst <= 1e-5 * fmax(most, 1e-3)))
            fail_msg("gradient of %s is off by %g of %g", m->param[p].name, worst,
                     most);
    }
    chain_close(&ref);
    chain_close(&cpu);
    nami_model_free(m);
}

int main(void)
{
    seed = nami_test_seed(11);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published), cmocka_unit_test(test_work),
        cmocka_unit_test(test_sample),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_chain),     cmocka_unit_test(test_bits),
        cmocka_unit_test(test_handed_on), cmocka_unit_test(test_reference),
    };
    return cmocka_run_group_tests_name("nets", tests, NULL, nami_test_balance);
}
